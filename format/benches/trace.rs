//! `cargo bench -p ugeom-format --bench trace`: how fast traces are read, in records a second, the
//! median of 15 rounds and its 95 % interval by order statistics, for each form. Started as a test
//! it reads each once.

use std::io::Write as _;
use std::time::Instant;

use ugeom_format::trace::Reader;

const RECORDS: u64 = 200_000;
const ROUNDS: usize = 15;
/// The ranks of the interval of a median of 15 values: 96.5 %.
const INTERVAL: (usize, usize) = (3, 11);

/// A record of each form; numbers are as long as those of published traces.
fn line(form: &str, number: u64) -> Vec<u8> {
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (offset, write) = ((random >> 26) & !511, random & 1 == 1);
    let us = 1_577_808_144_360_767 + number * 13;
    let pick = |read: &'static str, other: &'static str| if write { other } else { read };
    match form {
        "fio 3" => format!("{us} /dev/sda {} {offset} 4096\n", pick("read", "write")),
        "MSR" => format!(
            "{us}00,usr,0,{},{offset},24576,41286\n",
            pick("Read", "Write")
        ),
        "Alibaba" => format!("419,{},{offset},16384,{us}\n", pick("R", "W")),
        "vscsi" => format!(
            "{number},4096,1,{},{},{us}\n",
            pick("read", "write"),
            offset / 512
        ),
        "blkparse" => {
            let (s, ns) = (number / 1000, number % 1000 * 1_000_000);
            let (kind, sector) = (pick("R", "WS"), offset / 512);
            format!(
                "  8,0    1 {number:8} {s:5}.{ns:09}   697  Q {kind:>3} {sector} + 8 [kjournald]\n"
            )
        }
        _ => return record(us * 1000, offset / 512, write),
    }
    .into_bytes()
}

/// A record of blktrace.
fn record(ns: u64, sector: u64, write: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0x6561_7407_u32.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(ns.to_le_bytes());
    bytes.extend(sector.to_le_bytes());
    let kind = if write { 1 << 17 } else { 1 << 16 };
    for number in [4096, kind | 1, 697, 8 << 20, 1, 0_u32] {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

/// Reads the whole trace; the rate in records per second.
fn round(trace: &[u8]) -> f64 {
    let begun = Instant::now();
    let mut records = 0;
    let mut sum = 0_u64;
    let mut reader = Reader::new(trace).expect("a trace");
    while let Some(record) = reader.next_record().expect("a record") {
        records += 1;
        sum = sum.wrapping_add(record.offset_bytes ^ record.at_ns);
    }
    std::hint::black_box(sum);
    assert_eq!(records, RECORDS);
    records as f64 / begun.elapsed().as_secs_f64()
}

fn main() -> std::io::Result<()> {
    let measures = ugeom_testkit::is_bench();
    let mut out = std::io::stdout();
    for form in ["fio 3", "MSR", "Alibaba", "vscsi", "blkparse", "blktrace"] {
        let header: &[u8] = match form {
            "fio 3" => b"fio version 3 iolog\n",
            _ => b"",
        };
        let records = (0..RECORDS).flat_map(|number| line(form, number));
        let trace: Vec<u8> = header.iter().copied().chain(records).collect();
        let rounds = if measures { ROUNDS } else { 1 };
        let mut rates: Vec<f64> = (0..rounds).map(|_| round(&trace) / 1e6).collect();
        rates.sort_by(f64::total_cmp);
        if measures {
            let (low, high) = INTERVAL;
            let (low, middle, high) = (rates[low], rates[ROUNDS / 2], rates[high]);
            writeln!(
                out,
                "{form:<9} {middle:6.1} million records/s (95 % CI {low:.1} to {high:.1})"
            )?;
        }
    }
    Ok(())
}
