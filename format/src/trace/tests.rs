//! Traces as their authors publish them, and any text.

use super::*;
use proptest::prelude::*;

fn all(text: &str) -> Result<(Vec<Record>, Vec<String>), Error> {
    let mut reader = Reader::new(text.as_bytes())?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok((records, reader.files().to_vec()))
}

fn record(at_ns: u64, action: Action, file: u32, offset_bytes: u64, length_bytes: u32) -> Record {
    Record {
        at_ns,
        action,
        file,
        offset_bytes,
        length_bytes,
    }
}

#[test]
fn logs_of_fio_have_times_or_pauses() {
    // The lines of version 3 are those that fio 3.33 wrote.
    let text = "fio version 3 iolog\n23 b.0.0 add\n27 b.0.1 add\n142 b.0.0 read 0 4096\n\
                2663 b.0.0 close\n2839 b.0.1 write 4096 512\n2840 b.0.1 datasync 0 0\n";
    let (records, files) = all(text).unwrap();
    assert_eq!(files, ["b.0.0", "b.0.1"]);
    assert_eq!(
        records,
        [
            record(0, Action::Read, 0, 0, 4096),
            record(2_697_000, Action::Write, 1, 4096, 512),
            record(2_698_000, Action::Sync, 1, 0, 0),
        ]
    );
    let text =
        "fio version 2 iolog\n/f add\n/f read 0 512\n/f wait 250 0\n/f trim 512 512\n/f sync";
    assert_eq!(
        all(text).unwrap().0,
        [
            record(0, Action::Read, 0, 0, 512),
            record(250_000, Action::Trim, 0, 512, 512),
            record(250_000, Action::Sync, 0, 0, 0),
        ]
    );
}

#[test]
fn traces_of_msr_and_alibaba_are_known_by_their_first_line() {
    let msr = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
               128166372003062629,usr,1,Write,0,512,7\n";
    let (records, files) = all(msr).unwrap();
    assert_eq!(files, ["usr,0", "usr,1"]);
    assert_eq!(
        records[0],
        record(0, Action::Read, 0, 7_014_609_920, 24_576)
    );
    assert_eq!(records[1], record(100_000, Action::Write, 1, 0, 512));
    let alibaba = "419,W,8792731648,16384,1577808144360767\n725,R,59,512,1577808144360768\n";
    let (records, files) = all(alibaba).unwrap();
    assert_eq!(files, ["419", "725"]);
    assert_eq!(
        records[0],
        record(0, Action::Write, 0, 8_792_731_648, 16_384)
    );
    assert_eq!(records[1], record(1000, Action::Read, 1, 59, 512));
}

#[test]
fn errors_name_the_line_and_the_reason() {
    for (text, expected) in [
        ("", "line 1: the trace is empty"),
        ("x\n", "line 1: this is neither `fio version 2 iolog`"),
        (
            "fio version 3 iolog\n1 f read 0\n",
            "line 2: the length is missing",
        ),
        (
            "fio version 3 iolog\nx f read 0 1\n",
            "line 2: this is no decimal number",
        ),
        (
            "fio version 3 iolog\n\n1 f jump 0 1\n",
            "line 3: this is none of read",
        ),
        (
            "fio version 3 iolog\n1 f wait 0 1\n",
            "line 2: `wait` is of version 2",
        ),
        (
            "fio version 2 iolog\nf read 0 4294967296\n",
            "line 2: the length is 4 GiB",
        ),
        (
            "fio version 2 iolog\nf read 18446744073709551615 1\n",
            "line 2: the request ends",
        ),
        (
            "fio version 2 iolog\nf read 18446744073709551616 1\n",
            "line 2: the number is larger",
        ),
    ] {
        let error = all(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let long = format!("fio version 2 iolog\n{}\n", "f".repeat(LINE_BYTES_MAX + 1));
    assert!(all(&long).unwrap_err().to_string().contains("64 KiB"));
}

proptest! {
    #[test]
    fn what_is_written_as_a_log_is_read_back(
        list in prop::collection::vec(
            (0_u64..1 << 40, 0_u32..3, any::<u32>(), 0_u64..1 << 50),
            1..40
        )
    ) {
        let mut text = "fio version 3 iolog\n".to_owned();
        let (mut us, mut expected) = (list[0].0, Vec::new());
        let begin = us;
        for (step, file, length, offset) in &list {
            us += step % 1000;
            text.push_str(&format!("{us} f{file} read {offset} {length}\n"));
            expected.push(((us - begin) * 1000, format!("f{file}"), *offset, *length));
        }
        let (records, files) = all(&text).unwrap();
        let first = expected[0].0;
        let found: Vec<_> = records.iter().map(|record| {
            let name = files[record.file as usize].clone();
            (record.at_ns + first, name, record.offset_bytes, record.length_bytes)
        }).collect();
        prop_assert_eq!(found, expected);
    }
}
