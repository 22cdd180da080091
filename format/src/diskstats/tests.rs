//! Lines of real kernels, damage, round trips.

use super::*;
use proptest::prelude::*;

/// Linux 6: a loop device that was never used, and a disk.
const LINUX_6: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 64129 18609 10844695 41074 41705 111496 40299592 242890 3 27768 286382 13444 60 \
2026848 2205 4677 212
";

#[test]
fn a_disk_of_linux_6_is_read_column_by_column() {
    let devices = parse(LINUX_6).unwrap();
    let [unused, disk] = &devices[..] else {
        panic!("{devices:?}");
    };
    assert_eq!((unused.major, unused.minor, unused.name), (7, 0, "loop0"));
    assert_eq!((disk.major, disk.minor, disk.name), (254, 0, "vda"));
    let stat = &disk.stat;
    let reads = Requests {
        completed: 64_129,
        merged: 18_609,
        sectors: 10_844_695,
        time_ms: 41_074,
    };
    assert_eq!(stat.reads, reads);
    assert_eq!(
        (stat.writes.completed, stat.writes.sectors),
        (41_705, 40_299_592)
    );
    assert_eq!(
        (stat.in_flight, stat.busy_ms, stat.queue_ms),
        (3, 27_768, 286_382)
    );
    assert_eq!(
        stat.discards.map(|discards| discards.sectors),
        Some(2_026_848)
    );
    assert_eq!(
        stat.flushes,
        Some(Flushes {
            completed: 4677,
            time_ms: 212
        })
    );
}

#[test]
fn older_kernels_have_fewer_columns() {
    let old = "8 0 sda 1 2 3 4 5 6 7 8 0 9 10\n\n8 1 sda1 1 2 3 4 5 6 7 8 0 9 10 1 2 3 4\n";
    let devices = parse(old).unwrap();
    assert_eq!(devices.len(), 2, "the empty line is passed over");
    assert_eq!(devices[0].stat.discards, None);
    assert_eq!(devices[1].stat.discards.map(|one| one.time_ms), Some(4));
    assert_eq!(devices[1].stat.flushes, None);
    let later = format!("{} 77 88", LINUX_6.lines().next().unwrap_or(""));
    assert_eq!(parse(&later).unwrap()[0].name, "loop0");
}

#[test]
fn the_file_of_one_device_has_no_name() {
    let stat = parse_stat(" 1 2 3 4 5 6 7 8 0 9 10 0 0 0 0 11 12\n").unwrap();
    assert_eq!((stat.reads.completed, stat.queue_ms), (1, 10));
    assert_eq!(stat.flushes.map(|flushes| flushes.completed), Some(11));
}

#[test]
fn damage_is_named_with_its_line_and_column() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(
        error("3 1 hda1 1 2 3 4\n"),
        "line 1: 7 columns, at least 14 were expected"
    );
    let text = format!("{LINUX_6}8 0 sda 1 x 3 4 5 6 7 8 0 9 10\n");
    assert_eq!(error(&text), "line 3, column 5: `x` is no number");
    assert_eq!(
        error("8 0 sda 1 -1 3 4 5 6 7 8 0 9 10"),
        "line 1, column 5: `-1` is no number"
    );
    let huge = "9".repeat(500);
    assert!(error(&format!("{huge} 0 sda 1 1 3 4 5 6 7 8 0 9 10")).len() < 90);
    assert_eq!(parse(&"\n".repeat(LINES_MAX + 1)), Err(Error::Long));
    assert!(matches!(parse_stat(""), Err(Error::Short { found: 0, .. })));
}

fn requests() -> impl Strategy<Value = Requests> {
    any::<[u64; 4]>().prop_map(|[completed, merged, sectors, time_ms]| Requests {
        completed,
        merged,
        sectors,
        time_ms,
    })
}

fn stats() -> impl Strategy<Value = Stat> {
    let flushes =
        any::<(u64, u64)>().prop_map(|(completed, time_ms)| Flushes { completed, time_ms });
    let later = prop::option::of((requests(), prop::option::of(flushes)));
    (requests(), requests(), any::<[u64; 3]>(), later).prop_map(|(reads, writes, now, later)| {
        Stat {
            reads,
            writes,
            in_flight: now[0],
            busy_ms: now[1],
            queue_ms: now[2],
            discards: later.map(|(discards, _)| discards),
            flushes: later.and_then(|(_, flushes)| flushes),
        }
    })
}

fn lines() -> impl Strategy<Value = Vec<(u32, u32, String, Stat)>> {
    let line = (any::<u32>(), any::<u32>(), "[a-z!0-9-]{1,20}", stats());
    prop::collection::vec(line, 0..8)
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(lines in lines()) {
        let devices: Vec<Device<'_>> = lines
            .iter()
            .map(|(major, minor, name, stat)| Device {
                major: *major,
                minor: *minor,
                name,
                stat: *stat,
            })
            .collect();
        let text: String = devices.iter().map(|device| format!("{device}\n")).collect();
        prop_assert_eq!(&parse(&text).unwrap(), &devices);
        for device in &devices {
            prop_assert_eq!(parse_stat(&device.stat.to_string()).unwrap(), device.stat);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ 0-9a-z\n\t-]{0,300}") {
        let _ = (parse(&text), parse_stat(&text));
    }
}
