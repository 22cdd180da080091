//! Known answers of the standards. `classes` compares every length with other implementations.

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits
        .chunks(2)
        .map(|pair| byte(pair).expect("hex"))
        .collect()
}

/// True when there is nothing to test: a processor without the instructions.
fn skipped() -> bool {
    let skipped = !is_available();
    if skipped {
        println!("SKIP aes: this processor has no VAES");
    }
    skipped
}

/// IEEE 1619, annex B, vector 2, and the first lines of vectors 4 and 10.
#[test]
fn xts_gives_the_answers_of_ieee_1619() {
    if skipped() {
        return;
    }
    let key = hex(&("11".repeat(16) + &"22".repeat(16)));
    let key = XtsKey::new(&key).expect("a key");
    let sectors = Sectors {
        offset: 0x33_3333_3333,
        sector_bytes: 32,
    };
    let mut out = [0; 32];
    key.encrypt(sectors, &[0x44; 32], &mut out);
    let expected = "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0";
    assert_eq!(out[..], hex(expected));
    key.decrypt(sectors, &mut out);
    assert_eq!(out, [0x44; 32]);

    let plain: Vec<u8> = (0..512).map(|at| at as u8).collect();
    let first = "2718281828459045235360287471352631415926535897932384626433832795";
    let key = XtsKey::new(&hex(first)).expect("a key");
    let sectors = Sectors {
        offset: 0,
        sector_bytes: 512,
    };
    let mut out = vec![0; 512];
    key.encrypt(sectors, &plain, &mut out);
    let expected = "27a7479befa1d476489f308cd4cfa6e2a96e4bbe3208ff25287dd3819616e89c";
    assert_eq!(out[..32], hex(expected));

    let both = "27182818284590452353602874713526624977572470936999595749669676273141592653589\
                79323846264338327950288419716939937510582097494459 2";
    let key = XtsKey::new(&hex(both)).expect("a key");
    let sectors = Sectors {
        offset: 0xff,
        sector_bytes: 512,
    };
    key.encrypt(sectors, &plain, &mut out);
    let expected = "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b";
    assert_eq!(out[..32], hex(expected));
    key.decrypt(sectors, &mut out);
    assert_eq!(out, plain);
}

/// NIST SP 800-38A, F.2.1, F.2.3 and F.2.5: the first two blocks.
#[test]
fn cbc_gives_the_answers_of_sp_800_38a() {
    if skipped() {
        return;
    }
    let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
    let iv: [u8; 16] = hex("000102030405060708090a0b0c0d0e0f")
        .try_into()
        .expect("16");
    let rows = [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2",
        ),
        (
            "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a",
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d",
        ),
    ];
    for (key, expected) in rows {
        let key = CbcKey::new(&hex(key)).expect("a key");
        let mut data = plain.clone();
        key.encrypt(&[iv], 32, &mut data);
        assert_eq!(data, hex(expected));
        key.decrypt(&iv, &mut data);
        assert_eq!(data, plain);
    }
}

#[test]
fn every_sector_size_comes_back_as_it_was() {
    if skipped() {
        return;
    }
    let key: Vec<u8> = (0..64).collect();
    let xts = XtsKey::new(&key).expect("a key");
    let cbc = CbcKey::new(&key[..32]).expect("a key");
    for sector_bytes in (16..1200).step_by(16) {
        for count in [1, 3, 16, 17] {
            let plain: Vec<u8> = (0..sector_bytes * count).map(|at| (at * 7) as u8).collect();
            let sectors = Sectors {
                offset: 1 << 40,
                sector_bytes,
            };
            let mut data = vec![0; plain.len()];
            xts.encrypt(sectors, &plain, &mut data);
            // Each sector alone gives the same.
            for (number, sector) in plain.chunks(sector_bytes).enumerate() {
                let at = number * sector_bytes;
                let alone = Sectors {
                    offset: sectors.offset + at as u64,
                    sector_bytes,
                };
                let mut out = vec![0; sector_bytes];
                xts.encrypt(alone, sector, &mut out);
                assert_eq!(out, data[at..at + sector_bytes], "{sector_bytes} {number}");
            }
            xts.decrypt(sectors, &mut data);
            assert!(data == plain);
            let ivs: Vec<[u8; 16]> = (0..count).map(|number| [number as u8; 16]).collect();
            cbc.encrypt(&ivs, sector_bytes, &mut data);
            for (sector, iv) in data.chunks_mut(sector_bytes).zip(&ivs) {
                cbc.decrypt(iv, sector);
            }
            assert!(data == plain);
        }
    }
}

/// Pieces that lie apart give what each of them gives alone, and nothing else is written.
#[test]
fn pieces_that_lie_apart_are_sectors_of_their_own() {
    if skipped() {
        return;
    }
    let key = XtsKey::new(&(0..64).collect::<Vec<u8>>()).expect("a key");
    for (piece_bytes, length) in [
        (480_usize, 4096_usize),
        (16, 48),
        (480, 480),
        (32, 512),
        (496, 9920),
    ] {
        let strides = Strides {
            offset: 0x1_2345_0000,
            offset_step: 512,
            piece_bytes,
            from_step: piece_bytes,
            to_step: 512,
        };
        let plain: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
        let count = length.div_ceil(piece_bytes);
        let mut sealed = vec![0xa5; 512 * count];
        key.encrypt_apart(strides, length, &plain, &mut sealed);
        for (number, piece) in plain.chunks(piece_bytes).enumerate() {
            let sectors = Sectors {
                offset: strides.offset + 512 * number as u64,
                sector_bytes: piece.len(),
            };
            let mut alone = vec![0; piece.len()];
            key.encrypt(sectors, piece, &mut alone);
            let (found, unused) = sealed[512 * number..][..512].split_at(piece.len());
            assert_eq!(found, alone, "{piece_bytes} {number}");
            assert!(unused.iter().all(|&byte| byte == 0xa5));
        }
        let back = Strides {
            from_step: 512,
            to_step: piece_bytes,
            ..strides
        };
        let mut read = vec![0; length];
        key.decrypt_apart(back, length, &sealed, &mut read);
        assert!(read == plain);
    }
}

/// Steps and the length of the data and of the memory: past the end, or pieces that overlap, of
/// which the first is longer than the memory.
#[test]
fn pieces_outside_their_memory_are_refused() {
    let Some(key) = XtsKey::new(&[1; 64]) else {
        println!("SKIP aes: this processor has no VAES");
        return;
    };
    let cases = [
        (512, 1024, 1024, 1024),
        (1024, 512, 1024, 1024),
        (512, 0, 528, 512),
        (0, 512, 528, 528),
        (0, 0, 528, 16),
    ];
    for (from_step, to_step, length, memory) in cases {
        let strides = Strides {
            offset: 0,
            offset_step: 512,
            piece_bytes: 512,
            from_step,
            to_step,
        };
        let run = || key.decrypt_apart(strides, length, &vec![0; memory], &mut vec![0; memory]);
        let panic = std::panic::catch_unwind(run).expect_err("a panic");
        let message = panic.downcast_ref::<String>().expect("a message");
        assert!(message.contains("do not lie inside"), "{message}");
    }
}

#[test]
fn keys_of_other_lengths_are_refused() {
    for length in [0, 1, 16, 31, 33, 48, 63, 65, 128] {
        assert!(XtsKey::new(&vec![1; length]).is_none(), "{length}");
    }
    for length in [0, 8, 15, 17, 33, 64] {
        assert!(CbcKey::new(&vec![1; length]).is_none(), "{length}");
    }
}

#[test]
#[should_panic(expected = "no whole sectors")]
fn half_a_sector_is_refused() {
    match XtsKey::new(&[1; 64]) {
        Some(key) => {
            let sectors = Sectors {
                offset: 0,
                sector_bytes: 512,
            };
            key.decrypt(sectors, &mut [0; 256]);
        }
        None => panic!("no whole sectors: this processor has no VAES"),
    }
}
