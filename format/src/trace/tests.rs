//! Traces as their authors publish them, and any text.

use super::*;
use proptest::prelude::*;

fn all(text: &str) -> Result<(Vec<Record>, Vec<String>), Error> {
    all_of(text.as_bytes())
}

fn all_of(bytes: &[u8]) -> Result<(Vec<Record>, Vec<String>), Error> {
    let mut reader = Reader::new(bytes)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok((records, reader.files().to_vec()))
}

fn record(at_ns: u64, kind: Kind, file: u32, offset_bytes: u64, length_bytes: u32) -> Record {
    Record {
        at_ns,
        kind,
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
            record(0, Kind::Read, 0, 0, 4096),
            record(2_697_000, Kind::Write, 1, 4096, 512),
            record(2_698_000, Kind::DataSync, 1, 0, 0),
        ]
    );
    let text =
        "fio version 2 iolog\n/f add\n/f read 0 512\n/f wait 250 0\n/f trim 512 512\n/f sync";
    assert_eq!(
        all(text).unwrap().0,
        [
            record(0, Kind::Read, 0, 0, 512),
            record(250_000, Kind::Trim, 0, 512, 512),
            record(250_000, Kind::Sync, 0, 0, 0),
        ]
    );
}

#[test]
fn traces_of_msr_and_alibaba_are_known_by_their_first_line() {
    let msr = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
               128166372003062629,usr,1,Write,0,512,7\n";
    let (records, files) = all(msr).unwrap();
    assert_eq!(files, ["usr,0", "usr,1"]);
    assert_eq!(records[0], record(0, Kind::Read, 0, 7_014_609_920, 24_576));
    assert_eq!(records[1], record(100_000, Kind::Write, 1, 0, 512));
    let alibaba = "419,W,8792731648,16384,1577808144360767\n725,R,59,512,1577808144360768\n";
    let (records, files) = all(alibaba).unwrap();
    assert_eq!(files, ["419", "725"]);
    assert_eq!(records[0], record(0, Kind::Write, 0, 8_792_731_648, 16_384));
    assert_eq!(records[1], record(1000, Kind::Read, 1, 59, 512));
}

#[test]
fn what_vscsi_stats_exports_has_a_header_and_sectors() {
    let text = "#Vscsi Cmd Trace. (Trace Format Version 1)\n\
                #Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,Time Stamp (us)\n\
                2147483692,4096,1,write,24048792,2756778716647\n\
                2147483769,512,1,read,6322464,2756783857269\n";
    let (records, files) = all(text).unwrap();
    assert_eq!(files, ["vscsi"]);
    assert_eq!(
        records,
        [
            record(0, Kind::Write, 0, 24_048_792 * 512, 4096),
            record(5_140_622_000, Kind::Read, 0, 6_322_464 * 512, 512),
        ]
    );
    let body = text.split_inclusive('\n').skip(2).collect::<String>();
    assert_eq!(all(&body).unwrap().0, records);
}

#[test]
fn of_what_blkparse_prints_queued_requests_count() {
    // After the manual page of blkparse, with a flush, a discard and a command of SCSI.
    let text = "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n  \
                8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n  \
                8,0    3        3     0.000002000   697  P   N [kjournald]\n  \
                8,0    3        4     0.000003829   697  Q  RA 8 + 256 [(null)]\n  \
                8,0    3        4     0.000003900   697  Q  FWS [fsync]\n  \
                8,16   3        4     1.000003829     0  Q   D 2048 + 16 [fstrim]\n  \
                8,0    3        5     1.000004000     0  Q   R 36 (12 01 00 00) [smartd]\n  \
                8,0    1       11     1.009507758     0  C   W 223490 + 8 [0]\nCPU0 (sda):\n \
                Reads Queued:           0,        0KiB\t Writes Queued:     3,       12KiB\n\n\
                Throughput (R/W): 0KiB/s / 1KiB/s\nEvents (sda): 3 entries\n";
    let (records, files) = all(text).unwrap();
    assert_eq!(files, ["8,0", "8,16"]);
    assert_eq!(
        records,
        [
            record(0, Kind::Write, 0, 223_490 * 512, 4096),
            record(2000, Kind::Read, 0, 4096, 131_072),
            record(2071, Kind::Sync, 0, 0, 0),
            record(1_000_002_000, Kind::Trim, 1, 1 << 20, 8192),
        ]
    );
}

#[test]
fn columns_of_blkparse_may_be_aligned_in_any_way() {
    let lines = [
        "8,0 1 1 0.000000001 697 Q R 8 + 8 [a]",
        "8,0 1 2 0.000000002 697 Q WS 16 + 16 [a]",
        "8,1 0 123456789 12345678901.000000003 4194304 Q W 24 + 8 [b]",
        "8,1 0 4 12345678902.100000000 1 QX R 24 + 8 [b]",
        "8,10 0 5 12345678903.000000000 0 Q RA 32 + 8 [c]",
        "8,0 1 6 12345678904.000000000 697 Q D 40 + 8 [a]",
        "8,0 1 7 12345678905.000000000 697 Q FWS [a]",
    ];
    let (expected, files) = all(&lines.join("\n")).unwrap();
    assert_eq!(files, ["8,0", "8,1", "8,10"]);
    let begun = [0, 1, 12_345_678_901_000_000_002, 12_345_678_902_999_999_999];
    let found = expected.iter().map(|record| (record.at_ns, record.file));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            (begun[0], 0),
            (begun[1], 0),
            (begun[2], 1),
            (begun[3], 2),
            (begun[3] + 1_000_000_000, 0),
            (begun[3] + 2_000_000_000, 0),
        ]
    );
    for gap in ["  ", "         ", "\t", " \t "] {
        let aligned = lines.map(|line| format!("  {} \n", line.replace(' ', gap)));
        assert_eq!(all(&aligned.concat()).unwrap().0, expected, "{gap:?}");
    }
    for wrong in [
        "8,0 x 1 0.000000001 697 Q R 8 + 8 [a]",
        "8,0 1 1 0.00000001 697 Q R 8 + 8 [a]",
        "8,0 1 1 0.0000000011 697 Q R 8 + 8 [a]",
        "8,0 1 1 0.000000001 -1 Q R 8 + 8 [a]",
    ] {
        let text = format!("{}\n{wrong}\n", lines[0]);
        assert!(
            all(&text).unwrap_err().to_string().starts_with("line 2: "),
            "{wrong}"
        );
    }
}

/// A record of blktrace: `struct blk_io_trace`, and data behind it.
fn blk_io_trace(
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    big: bool,
) -> Vec<u8> {
    const DATA: &[u8] = b"pdu";
    let u16s = |number: u16| {
        if big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let u32s = |number: u32| {
        if big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let u64s = |number: u64| {
        if big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let mut record = Vec::new();
    record.extend(u32s(0x6561_7407));
    record.extend(u32s(7));
    record.extend(u64s(time));
    record.extend(u64s(sector));
    for number in [bytes, action, 697, device, 3] {
        record.extend(u32s(number));
    }
    record.extend(u16s(0));
    record.extend(u16s(DATA.len() as u16));
    record.extend(DATA);
    record
}

#[test]
fn records_of_blktrace_are_read_in_either_order_of_bytes() {
    let sda = 8 << 20;
    for big in [false, true] {
        let parts = [
            // A message, a queued write, its dispatch, a flush, a discard on another device.
            blk_io_trace(5, 0, 0, 1 << 26 | 2, sda, big),
            blk_io_trace(1000, 100, 4096, 1 << 17 | 1, sda, big),
            blk_io_trace(1500, 100, 4096, 1 << 17 | 7, sda, big),
            blk_io_trace(2000, 0, 0, 1 << 18 | 1 << 17 | 1, sda, big),
            blk_io_trace(3000, 8, 8192, 1 << 29 | 1 << 17 | 1, sda | 16, big),
            blk_io_trace(4000, 8, 512, 1 << 16 | 1, sda, big),
        ];
        let bytes = parts.concat();
        let (records, files) = all_of(&bytes).unwrap();
        assert_eq!(files, ["8,0", "8,16"]);
        assert_eq!(
            records,
            [
                record(0, Kind::Write, 0, 51_200, 4096),
                record(1000, Kind::Sync, 0, 0, 0),
                record(2000, Kind::Trim, 1, 4096, 8192),
                record(3000, Kind::Read, 0, 4096, 512),
            ]
        );
        let error = all_of(&bytes[..100]).unwrap_err().to_string();
        assert_eq!(error, "byte 51: the trace ends within the data of a record");
        let mut wrong = bytes.clone();
        wrong[51] ^= 1;
        wrong[54] ^= 1;
        let error = all_of(&wrong).unwrap_err().to_string();
        assert_eq!(error, "byte 51: this is no record of blktrace, version 7");
    }
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
            "line 3: expected one of read",
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

    #[test]
    fn one_request_in_all_forms_is_one_request(
        list in prop::collection::vec(
            (0_u64..1 << 40, prop::bool::ANY, 1_u32..1 << 20, 0_u64..1 << 40),
            1..30
        )
    ) {
        let mut texts = ["fio version 3 iolog\n"; 1].map(str::to_owned).to_vec();
        texts.extend(["", "", "#vscsi\n", ""].map(str::to_owned));
        let mut bytes = Vec::new();
        let mut us = list[0].0;
        for (number, (step, write, sectors, sector)) in list.iter().enumerate() {
            us += step % 100_000;
            let (length, offset) = (u64::from(*sectors) * 512, sector * 512);
            let pick = |read: &'static str, other: &'static str| if *write { other } else { read };
            let (s, ns) = (us / 1_000_000, us % 1_000_000 * 1000);
            let lines = [
                format!("{us} f {} {offset} {length}\n", pick("read", "write")),
                format!("{}0,h,0,{},{offset},{length},9\n", us, pick("Read", "Write")),
                format!("f,{},{offset},{length},{us}\n", pick("R", "W")),
                format!("{number},{length},1,{},{sector},{us}\n", pick("read", "write")),
                format!(
                    "8,0 1 {number} {s}.{ns:09} 7 Q {} {sector} + {sectors} [x]\n",
                    pick("R", "WS")
                ),
            ];
            texts.iter_mut().zip(lines).for_each(|(text, line)| text.push_str(&line));
            let kind = if *write { 1 << 17 } else { 1 << 16 };
            bytes.extend(blk_io_trace(us * 1000, *sector, length as u32, kind | 1, 8 << 20, false));
        }
        let (expected, _) = all(&texts[0]).unwrap();
        prop_assert_eq!(expected.len(), list.len());
        for text in &texts[1..] {
            prop_assert_eq!(&all(text).unwrap().0, &expected);
        }
        prop_assert_eq!(&all_of(&bytes).unwrap().0, &expected);
    }

    /// A blank before a line moves it out of blkparse's columns, and is read field by field.
    #[test]
    fn columns_of_blkparse_are_read_as_fields_are(
        list in prop::collection::vec(
            (
                (
                    prop::sample::select(&[(8, 0), (8, 16), (259, 3), (2590, 1234)]),
                    0_u8..120,
                ),
                (0_u64..200_000_000, 0_u32..150_000, 0_u32..5_000_000),
                prop::sample::select(&["R", "WS", "RA", "W", "D", "FF", "FWFSM", "N"]),
                prop::sample::select(&["Q", "C", "UT"]),
                0_u64..1 << 40,
            ),
            1..12
        ),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let lines = list.iter().map(|((device, cpu), (event, s, pid), kind, action, sector)| {
            let ns = sector % 1_000_000_000;
            format!(
                "{:3},{:<3} {cpu:2} {event:8} {s:5}.{ns:09} {pid:5} {action:>2} {kind:>3} \
                 {sector} + 8 [x]\n",
                device.0, device.1,
            )
        });
        let mut text = lines.collect::<String>().into_bytes();
        for (place, byte) in changes {
            let place = place.index(text.len());
            if text[place] != b'\n' && byte != b'\n' {
                text[place] = byte;
            }
        }
        let mut fields = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            fields.push(b' ');
            fields.extend_from_slice(line);
        }
        let read = |text: &[u8]| all_of(text).map_err(|error| error.to_string());
        prop_assert_eq!(read(&text), read(&fields));
    }

    #[test]
    fn any_bytes_are_records_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let magic = 0x6561_7407_u32.to_le_bytes();
        let texts = ["", "8,0 1 1 0.000000000 1 Q R ", "1,2,3,read,", "1,h,0,Read,"];
        for begin in texts.map(str::as_bytes).into_iter().chain([&magic[..]]) {
            let all = [begin, &bytes].concat();
            let _ = all_of(&all);
        }
    }

    #[test]
    fn numbers_are_those_of_the_library(text in "[0-9]{1,24}[, x]?") {
        let line = format!("fio version 3 iolog\n1 f read {text} 512");
        let digits = text.trim_end_matches([',', ' ', 'x']);
        let plain = text.len() == digits.len() || text.ends_with(' ');
        let number = digits.parse::<u64>().ok().filter(|number| plain && *number < u64::MAX - 512);
        let found = all(&line).ok().map(|(records, _)| records[0].offset_bytes);
        prop_assert_eq!(found, number);
    }
}
