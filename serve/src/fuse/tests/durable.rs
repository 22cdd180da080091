//! Writes that reach the device before a file opened with O_DSYNC is answered, by the log of a
//! `crash` layer.

use super::*;
use rustix::fs::OFlags;
use rustix::io::{ReadWriteFlags, pwritev2};
use std::io::IoSlice;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use ugeom_format::crash_log::{Entry, HEADER_BYTES, Header, RECORD_BYTES, Record};

fn entries(log: &Path) -> Vec<Entry> {
    let bytes = std::fs::read(log).expect("a log");
    let header = Header::decode(&bytes).expect("a header");
    let (mut at, mut entries) = (HEADER_BYTES, Vec::new());
    while at < bytes.len() {
        let number = entries.len() as u64;
        let record = Record::decode(&bytes[at..], number, &header).expect("a record");
        at += RECORD_BYTES + record.stored_bytes as usize;
        entries.push(record.entry);
    }
    entries
}

#[test]
fn what_a_file_with_o_dsync_changes_is_durable_before_the_answer() {
    for transport in [Transport::Classic, Transport::Ring] {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("crash.log");
        let target = format!("md:1m | crash:log={}", log.display());
        let started = start(&target, |settings| settings.transport = transport);
        let mut running = match started {
            Ok(running) => running,
            Err(error) => {
                ugeom_testkit::skip(&format!("{transport:?}: {error}"));
                continue;
            }
        };
        let name = running.names().into_iter().find(|it| it.contains("crash"));
        let mut options = OpenOptions::new();
        let options = options
            .write(true)
            .custom_flags(OFlags::DSYNC.bits() as i32);
        let path = running.path(&name.expect("the layer's file"));
        let file = options.open(path).expect("an open file");
        file.write_all_at(&[1; 4096], 4096).expect("whole sectors");
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, hole, 4096, 4096).expect("a hole");
        file.write_all_at(&[2; 1000], 100)
            .expect("parts of sectors");
        drop(file);
        running.stop();
        drop(running);
        let found = entries(&log);
        let [
            Entry::Write { fua: true, .. },
            Entry::Durable { .. },
            Entry::Delete { .. },
            Entry::Barrier { .. },
            Entry::Write { fua: false, .. },
            Entry::Barrier { .. },
            ..,
        ] = found[..]
        else {
            panic!("{found:?}");
        };
    }
}

/// A durable write of part of a sector sends a FLUSH. Its error fails that write; fsync reports
/// the loss of earlier writes.
#[test]
fn a_failed_durable_write_takes_no_report_of_lost_writes_from_the_next_fsync() {
    // Its tasting counts, too.
    let failing: Vec<String> = (1..60).map(|number| format!("op{number}")).collect();
    let target = format!("md:1m | crash:flushfail={}", failing.join("+"));
    each_as_usual(&target, |mut running| {
        let name = running.names().into_iter().find(|it| it.contains("crash"));
        let path = running.path(&name.expect("the layer's file"));
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.expect("an open file");
        let durable = || {
            let bytes = [IoSlice::new(&[2; 100])];
            pwritev2(&file, &bytes, 4100, ReadWriteFlags::DSYNC)
        };
        file.write_all_at(&[1; 4096], 0).expect("written");
        assert_eq!(durable(), Err(Errno::IO));
        for _ in 0..60 {
            file.write_all_at(&[1; 4096], 8192).expect("written");
        }
        assert!(file.sync_all().is_err(), "the first write may be lost");
        file.sync_all().expect("it was reported");
        assert_eq!(durable(), Ok(100));
        drop(file);
        running.stop();
    });
}

#[test]
fn close_reports_what_could_not_be_written() {
    let failing: Vec<String> = (1..60).map(|number| format!("op{number}")).collect();
    for (faults, succeeds) in [(failing.join("+"), false), ("op60".to_owned(), true)] {
        let target = format!("md:1m | crash:flushfail={faults}");
        each_as_usual(&target, |running| {
            let name = running.names().into_iter().find(|it| it.contains("crash"));
            let path = running.path(&name.expect("the layer's file"));
            let mut dd = std::process::Command::new("dd");
            dd.args(["if=/dev/zero", "bs=4096", "count=1", "conv=notrunc"]);
            let dd = dd.arg(format!("of={}", path.display())).output();
            let dd = dd.expect("dd");
            assert_eq!(dd.status.success(), succeeds, "{dd:?}");
        });
    }
}
