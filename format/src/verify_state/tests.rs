//! States that fio 3.33 wrote are read and written to the byte; damage is refused with its place.

use super::*;
use proptest::prelude::*;

/// The file that fio 3.33 leaves after `--name=a --rw=randwrite --size=16k --bs=4k
/// --verify=crc32c --ioengine=libaio --iodepth=4 --do_verify=0`.
fn of_fio() -> Vec<u8> {
    let mut file = vec![0; 240];
    let words: [(usize, &[u8]); 12] = [
        (0, &[3]),
        (8, &[0xd8]),
        (16, &[0x2a, 0x6c, 0xd0, 0x75]),
        (24, &[4]),
        (32, &[4]),
        (36, &[1]),
        (40, &[4]),
        (
            64,
            &[
                0xc5, 0xed, 0xf4, 0x26, 0x7d, 0x99, 0xf8, 0x27, 0xdb, 0xab, 0x5e, 0x79,
            ],
        ),
        (112, b"a"),
        (184, &[0, 0x10]),
        (200, &[0, 0x30]),
        (216, &[0, 0x20]),
    ];
    for (at, bytes) in words {
        file[at..at + bytes.len()].copy_from_slice(bytes);
    }
    file
}

#[test]
fn a_state_of_fio_is_read_and_written_to_the_byte() {
    let state = VerifyState::decode(&of_fio()).unwrap();
    let completion = |offset| Completion { file: 0, offset };
    let expected = VerifyState {
        depth: 4,
        files: 1,
        writes: 4,
        index: 0,
        generator: Generator::Short([0x26f4_edc5, 0x27f8_997d, 0x795e_abdb, 0]),
        name: b"a".to_vec(),
        completions: [0x1000, 0x3000, 0x2000, 0].map(completion).to_vec(),
    };
    assert_eq!(state, expected);
    assert_eq!(state.encode().unwrap(), of_fio());
    let longer = [of_fio(), vec![7; 9]].concat();
    assert_eq!(VerifyState::decode(&longer), Ok(state));
}

#[test]
fn each_damaged_byte_is_refused() {
    let good = of_fio();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x80;
        let error = VerifyState::decode(&bad).expect_err("a byte has changed");
        assert!(!error.to_string().is_empty(), "{at}");
        assert!(VerifyState::decode(&good[..at]).is_err(), "cut at {at}");
    }
    let message = |file: &[u8]| VerifyState::decode(file).unwrap_err().to_string();
    assert_eq!(
        message(&good[..20]),
        "the file ends at byte 20: a verify state has 176 bytes"
    );
    assert_eq!(
        message(&good[..239]),
        "the file ends at byte 239: a verify state has 240 bytes"
    );
    let other = [&[2_u8, 0, 0, 0, 0, 0, 0, 0], &good[8..]].concat();
    assert_eq!(
        message(&other),
        "version 2 at byte 0: this program reads version 3, that of fio 3.33"
    );
}

#[test]
fn more_completions_than_there_is_room_for_are_refused() {
    let mut file = of_fio();
    put_u64_le(&mut file, 24, 5);
    let sum = checksum(&file[HEADER_BYTES..]);
    put_u64_le(&mut file, 16, sum);
    let (completions, room) = (5, 4);
    let error = Error::Completions { completions, room };
    assert_eq!(VerifyState::decode(&file), Err(error));
    let huge = VerifyState {
        depth: u32::MAX,
        files: u32::MAX,
        ..VerifyState::decode(&of_fio()).unwrap()
    };
    assert!(matches!(huge.encode(), Err(Error::TooLong(_))));
}

#[test]
fn names_of_files_are_those_of_fio() {
    let name = |job: &str| VerifyState::file_name(job, 3);
    assert_eq!(name("a"), "local-a-3-verify.state");
    assert_eq!(name("/dev/sdx"), "local-.dev.sdx-3-verify.state");
    let long = "\u{e9}".repeat(40);
    assert_eq!(name(&long), name(&long[..62]));
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        depth in 0..40_u32,
        files in 0..3_u32,
        (writes, index) in any::<(u64, u64)>(),
        long in any::<Option<[u64; 6]>>(),
        short in any::<[u32; 4]>(),
        name in proptest::collection::vec(1..=255_u8, 0..64),
        completions in proptest::collection::vec(any::<(u64, u64)>(), 0..50),
    ) {
        let completion = |(file, offset)| Completion { file, offset };
        let state = VerifyState {
            depth,
            files,
            writes,
            index,
            generator: long.map_or(Generator::Short(short), Generator::Long),
            name,
            completions: completions.into_iter().map(completion).collect(),
        };
        let file = state.encode().unwrap();
        prop_assert_eq!(VerifyState::decode(&file), Ok(state));
    }

    #[test]
    fn any_bytes_are_a_state_or_an_error(
        mut file in proptest::collection::vec(any::<u8>(), 0..400),
        seal in any::<bool>(),
    ) {
        if seal && file.len() >= HEADER_BYTES {
            put_u64_le(&mut file, 0, VERSION);
            let length = (file.len() - HEADER_BYTES) as u64;
            put_u64_le(&mut file, 8, length);
            let sum = checksum(&file[HEADER_BYTES..]);
            put_u64_le(&mut file, 16, sum);
        }
        let _ = VerifyState::decode(&file);
    }
}
