//! Tests of `crash`: the data that survives a power cut, each fault, and the log.

use super::recorder::Recorder;
use crate::target::{TargetOptions, open_target};
use std::fs;
use std::path::Path;
use ugeom_format::crash_log::{self, Entry, HEADER_BYTES, Header, RECORD_BYTES, Record};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Delta, Errno, Flags, Opened, Stack};

const SECTOR: usize = 512;
/// Sectors of the disks here.
const SECTORS: usize = 64;

fn stack_of(text: &str) -> (Stack, ugeom_stack::ProviderId) {
    // Without tasting, whose reads would count as operations.
    let options = TargetOptions::untasted();
    let target = open_target(text, &options);
    let target = target.unwrap_or_else(|error| panic!("{text}: {error}"));
    (target.stack, target.top)
}

/// An open disk, which can be closed and opened again.
struct Disk {
    stack: Stack,
    top: ugeom_stack::ProviderId,
    channel: Channel,
    opened: Option<Opened>,
}

impl Disk {
    fn new(text: &str) -> Self {
        let (stack, top) = stack_of(text);
        let channel = stack.channel(4).expect("a channel");
        let opened = stack.open(top, Delta::READ_WRITE).expect("opens");
        Self {
            stack,
            top,
            channel,
            opened: Some(opened),
        }
    }

    /// Closes it, and opens it again: its power is on then.
    fn reopen(&mut self) {
        self.opened = None;
        let opened = self.stack.open(self.top, Delta::READ_WRITE);
        self.opened = Some(opened.expect("opens again"));
    }

    fn write(&mut self, sector: usize, byte: u8, count: usize) -> Result<usize, Errno> {
        let data = vec![byte; SECTOR * count];
        let opened = self.opened.as_ref().expect("open");
        let written = self.channel.write(opened, (sector * SECTOR) as u64, &data);
        written.map_err(|error| error.errno)
    }

    fn read(&mut self, sector: usize, count: usize) -> Result<Vec<u8>, Errno> {
        let mut data = vec![0xee; SECTOR * count];
        let opened = self.opened.as_ref().expect("open");
        let read = self
            .channel
            .read(opened, (sector * SECTOR) as u64, &mut data);
        read.map(|_| data).map_err(|error| error.errno)
    }

    fn flush(&mut self) -> Result<(), Errno> {
        let opened = self.opened.as_ref().expect("open");
        self.channel.flush(opened).map_err(|error| error.errno)
    }

    /// The first byte of each sector.
    fn bytes(&mut self) -> Vec<u8> {
        let all = self.read(0, SECTORS).expect("reads");
        all.chunks(SECTOR).map(|sector| sector[0]).collect()
    }
}

/// Writes every sector twice, with a FLUSH in between; the power goes with the last request.
fn after_a_cut(options: &str) -> Vec<u8> {
    let cut = 2 * SECTORS + 2;
    let mut disk = Disk::new(&format!("md:32k | crash:cut=op{cut}{options}"));
    for sector in 0..SECTORS {
        disk.write(sector, 1, 1).expect("writes");
    }
    disk.flush().expect("flushes");
    for sector in 0..SECTORS {
        disk.write(sector, 2, 1).expect("writes");
    }
    assert_eq!(disk.bytes_error(), Errno::IO);
    assert_eq!(disk.write(0, 3, 1), Err(Errno::IO), "it is off");
    disk.reopen();
    disk.bytes()
}

impl Disk {
    fn bytes_error(&mut self) -> Errno {
        self.read(0, 1).expect_err("the power is gone")
    }
}

#[test]
fn what_was_flushed_survives_and_what_was_not_may_be_lost() {
    for seed in 0..20 {
        let found = after_a_cut(&format!(",seed={seed}"));
        assert!(found.iter().all(|byte| [1, 2].contains(byte)), "{found:?}");
        let kept = found.iter().filter(|byte| **byte == 2).count();
        assert!((8..=56).contains(&kept), "seed {seed} kept {kept}");
    }
}

#[test]
fn the_same_seed_loses_the_same_writes() {
    assert_eq!(after_a_cut(",seed=7"), after_a_cut(",seed=7"));
    assert_ne!(after_a_cut(",seed=7"), after_a_cut(",seed=8"));
}

#[test]
fn a_write_tears_at_the_granularity() {
    for (tear, sectors) in [(512, 1), (4096, 8), (16384, 32)] {
        let mut torn = 0;
        for seed in 0..40 {
            let text = format!("md:32k | crash:cut=op2,tear={tear},seed={seed}");
            let mut disk = Disk::new(&text);
            disk.write(0, 1, SECTORS).expect("writes");
            assert_eq!(disk.bytes_error(), Errno::IO);
            disk.reopen();
            let bytes = disk.bytes();
            let units: Vec<&[u8]> = bytes.chunks(sectors).collect();
            let whole = units
                .iter()
                .all(|unit| unit.iter().all(|byte| *byte == unit[0]));
            assert!(whole, "seed {seed} tears inside {tear} bytes: {bytes:?}");
            torn += usize::from(units.iter().any(|unit| unit[0] != units[0][0]));
        }
        assert!((1..30).contains(&torn), "{tear}: {torn} of 40 seeds tear");
    }
}

/// The results of a fixed sequence of requests: writes, a FLUSH, other writes, reads.
fn answers(options: &str) -> Vec<String> {
    let mut disk = Disk::new(&format!("md:32k | crash:{options}"));
    let mut found = Vec::new();
    for sector in 0..SECTORS {
        found.push(format!("{:?}", disk.write(sector, sector as u8 + 1, 1)));
    }
    found.push(format!("{:?}", disk.flush()));
    for sector in 0..SECTORS {
        found.push(format!("{:?}", disk.write(sector, sector as u8 + 101, 1)));
    }
    found.push(format!("{:?}", disk.flush()));
    for sector in 0..SECTORS {
        let answer = disk.read(sector, 1);
        let answer = answer.map(|bytes| bytes.into_iter().map(u32::from).sum::<u32>());
        found.push(format!("{answer:?}"));
    }
    found
}

#[test]
fn each_fault_happens_by_a_rate_and_a_seed_and_by_numbers() {
    let clean = answers("seed=0");
    for (_, name) in super::faults::Fault::ALL {
        // Three spikes in a hundred requests would be no more to see, but would take their time.
        if name == "spike" {
            continue;
        }
        let of = |seed: u32| answers(&format!("{name}=40%,seed={seed}"));
        assert_eq!(of(1), of(1), "{name}: the same seed");
        let others = (2..8).filter(|seed| of(*seed) != of(1)).count();
        assert!(others > 0, "{name}: another seed");
        // All requests that the fault can meet, by their numbers.
        let numbers: Vec<String> = (1..=2 * SECTORS + 2 + SECTORS)
            .map(|number| format!("op{number}"))
            .collect();
        let by_number = answers(&format!("{name}={}", numbers.join("+")));
        assert_ne!(by_number, clean, "{name}: by numbers");
    }
}

#[test]
fn each_fault_that_has_a_place_stays_in_its_range() {
    let clean = answers("seed=0");
    for name in ["eio", "enospc", "lost", "stale", "rot", "latent"] {
        let found = answers(&format!("{name}=100%,from=8k,to=12k,seed=3"));
        let changed = (0..found.len()).filter(|at| found[*at] != clean[*at]);
        // The place of a request in the sequence, without the FLUSHes, is its sector.
        let sector = |at: usize| {
            (at - usize::from(at > SECTORS) - usize::from(at > 2 * SECTORS + 1)) % SECTORS
        };
        let sectors: Vec<usize> = changed.map(sector).collect();
        assert!(!sectors.is_empty(), "{name}");
        assert!(
            sectors.iter().all(|it| (16..24).contains(it)),
            "{name}: {sectors:?}"
        );
    }
}

#[test]
fn a_spike_takes_its_delay_and_nothing_else() {
    let mut disk = Disk::new("md:32k | crash:spike=op2,delay=60ms");
    let took = |disk: &mut Disk| {
        let started = std::time::Instant::now();
        disk.write(0, 1, 1).expect("writes");
        started.elapsed()
    };
    let (first, second) = (took(&mut disk), took(&mut disk));
    assert!(second >= std::time::Duration::from_millis(60), "{second:?}");
    assert!(first < second, "{first:?}");
    assert_eq!(disk.read(0, 1).expect("reads")[0], 1);
}

#[test]
fn a_full_cache_writes_its_oldest() {
    let mut disk = Disk::new("md:32k | crash:cache=4k,cut=op65");
    for sector in 0..SECTORS {
        disk.write(sector, 1, 1).expect("writes");
    }
    assert_eq!(disk.bytes_error(), Errno::IO);
    disk.reopen();
    let bytes = disk.bytes();
    assert!(
        bytes[..SECTORS - 8].iter().all(|byte| *byte == 1),
        "{bytes:?}"
    );
}

#[test]
fn what_is_closed_is_not_lost() {
    let mut disk = Disk::new("md:32k | crash");
    disk.write(3, 9, 1).expect("writes");
    disk.reopen();
    assert_eq!(disk.bytes()[3], 9);
}

#[test]
fn a_lost_write_is_acknowledged_and_not_done() {
    let mut disk = Disk::new("md:32k | crash:lost=op2");
    disk.write(0, 1, 1).expect("writes");
    disk.write(0, 2, 1).expect("is acknowledged");
    assert_eq!(disk.bytes()[0], 1);
}

#[test]
fn a_misdirected_write_is_somewhere_else_and_a_duplicated_one_twice() {
    for (fault, there) in [("misdirected", 0), ("duplicated", 1)] {
        let mut disk = Disk::new(&format!("md:32k | crash:{fault}=op1,seed=5"));
        disk.write(10, 7, 1).expect("is acknowledged");
        let bytes = disk.bytes();
        assert_eq!(usize::from(bytes[10] == 7), there, "{fault}");
        let count = bytes.iter().filter(|byte| **byte == 7).count();
        assert_eq!(count, there + 1, "{fault}");
    }
}

#[test]
fn a_stale_read_shows_what_was_there_before_and_only_once() {
    let mut disk = Disk::new("md:32k | crash:stale=op3");
    disk.write(0, 1, 1).expect("writes");
    disk.write(0, 2, 1).expect("writes");
    assert_eq!(disk.read(0, 1).expect("reads")[0], 1);
    assert_eq!(disk.read(0, 1).expect("reads")[0], 2);
}

#[test]
fn rot_changes_one_bit_and_stays() {
    let mut disk = Disk::new("md:32k | crash:rot=op2,seed=1");
    disk.write(0, 0, 4).expect("writes");
    let first = disk.read(0, 4).expect("reads");
    let ones: u32 = first.iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(ones, 1);
    assert_eq!(disk.read(0, 4).expect("reads"), first);
}

#[test]
fn a_latent_error_lasts_until_the_sector_is_written() {
    let mut disk = Disk::new("md:32k | crash:latent=op1");
    assert_eq!(disk.read(5, 1), Err(Errno::IO));
    assert_eq!(disk.read(5, 1), Err(Errno::IO));
    assert!(disk.read(6, 1).is_ok());
    disk.write(5, 1, 1).expect("writes");
    assert!(disk.read(5, 1).is_ok());
}

#[test]
fn a_transient_error_is_gone_the_next_time() {
    let mut disk = Disk::new("md:32k | crash:eio=op1+op3,enospc=op5");
    assert_eq!(disk.read(0, 1), Err(Errno::IO));
    assert!(disk.read(0, 1).is_ok());
    assert_eq!(disk.write(0, 1, 1), Err(Errno::IO));
    assert!(disk.write(0, 1, 1).is_ok());
    assert_eq!(disk.write(0, 1, 1), Err(Errno::NOSPC));
    assert!(disk.write(0, 1, 1).is_ok());
}

#[test]
fn a_flush_that_failed_once_covers_nothing_afterwards() {
    let mut disk = Disk::new("md:32k | crash:flushfail=op2,cut=op5");
    disk.write(0, 1, 1).expect("writes");
    assert_eq!(disk.flush(), Err(Errno::IO));
    assert_eq!(disk.flush(), Ok(()));
    assert_eq!(disk.read(0, 1).expect("reads")[0], 1, "it is in the cache");
    assert_eq!(disk.bytes_error(), Errno::IO);
    disk.reopen();
    assert_eq!(disk.bytes()[0], 0);
}

#[test]
fn what_is_written_after_a_failed_flush_is_read_and_survives() {
    let mut disk = Disk::new("md:32k | crash:flushfail=op2,cut=op7");
    disk.write(0, 1, 3).expect("writes");
    assert_eq!(disk.flush(), Err(Errno::IO));
    disk.write(1, 2, 1).expect("writes");
    assert_eq!(disk.flush(), Ok(()));
    assert_eq!(
        disk.bytes()[..4],
        [1, 2, 1, 0],
        "what was lost is still in the cache"
    );
    disk.write(5, 3, 1).expect("writes");
    assert_eq!(disk.bytes_error(), Errno::IO);
    disk.reopen();
    assert_eq!(disk.bytes()[..4], [0, 2, 0, 0]);
}

#[test]
fn what_a_failed_flush_has_lost_is_read_until_the_disk_is_closed() {
    for command in [Command::Zero, Command::Delete] {
        let mut disk = Disk::new("md:32k | crash:flushfail=op2,cache=2k");
        disk.write(0, 1, 4).expect("writes");
        assert_eq!(disk.flush(), Err(Errno::IO));
        let opened = disk.opened.as_ref().expect("open");
        let sector = SECTOR as u64;
        let discarded = disk.channel.discard(opened, command, sector, sector);
        discarded.expect("discards");
        let fua = disk.channel.bio().expect("a bio");
        let fua = fua.write(2 * sector, Buffer::from_slice(&[7; SECTOR]));
        disk.channel.submit(opened, fua.flags(Flags::FUA));
        while disk.channel.finished().is_none() {
            disk.channel.wait(None);
        }
        disk.write(10, 2, 4).expect("writes");
        assert_eq!(disk.bytes()[..5], [1, 0, 7, 1, 0], "{command:?}");
        disk.reopen();
        assert_eq!(disk.bytes()[..5], [0, 0, 7, 0, 0], "{command:?}");
    }
}

#[test]
fn a_disk_that_is_only_read_loses_power_and_rots_as_others_do() {
    for (options, expected) in [("cut=op2", Err(Errno::IO)), ("rot=op2", Ok(()))] {
        let (stack, top) = stack_of(&format!("md:32k | crash:{options}"));
        let mut channel = stack.channel(4).expect("a channel");
        let opened = stack.open(top, Delta::READ).expect("opens");
        let mut read = || {
            let mut data = [0; SECTOR];
            let read = channel.read(&opened, 0, &mut data);
            read.map(|_| data).map_err(|error| error.errno)
        };
        assert_eq!(read(), Ok([0; SECTOR]));
        let second = read();
        assert_eq!(second.map(drop), expected, "{options}");
        let third = read();
        assert_eq!(second, third, "{options}");
    }
}

#[test]
fn a_flush_that_failed_once_is_told_to_every_writer_whoever_flushes_first() {
    for layers in ["", " | nop", " | nop | nop"] {
        for order in [[0, 1, 2], [1, 2, 0], [2, 1, 0]] {
            let (stack, top) = stack_of(&format!("md:32k | crash:flushfail=op4{layers}"));
            let writer = |_| {
                let opened = stack.open(top, Delta::READ_WRITE).expect("opens");
                (opened, stack.channel(4).expect("a channel"))
            };
            let mut writers: Vec<(Opened, Channel)> = (0..3).map(writer).collect();
            for (sector, (opened, channel)) in (0..).zip(&mut writers) {
                let written = channel.write(opened, sector * SECTOR as u64, &[1; SECTOR]);
                written.expect("writes");
            }
            for round in 0..3 {
                for at in order {
                    let (opened, channel) = &mut writers[at];
                    let flushed = channel.flush(opened).map_err(|error| error.errno);
                    let expected = if round == 0 { Err(Errno::IO) } else { Ok(()) };
                    assert_eq!(flushed, expected, "{layers}, {order:?}, {at}, {round}");
                }
            }
        }
    }
}

#[test]
fn faults_stay_in_their_range() {
    let mut disk = Disk::new("md:32k | crash:eio=100%,from=8k,to=12k");
    for sector in 0..SECTORS {
        let inside = (16..24).contains(&sector);
        assert_eq!(disk.read(sector, 1).is_err(), inside, "sector {sector}");
    }
}

#[test]
fn a_wrong_option_is_pointed_at() {
    for (text, problem) in [
        ("crash:tear=1000", "one of 512, 4096, 16384"),
        ("crash:cut=sometimes", "op17+op40"),
        ("crash:cut=op0", "from op1"),
        ("crash:from=8k,to=4k", "empty"),
        ("crash:cache=1", "a sector at least"),
    ] {
        let options = TargetOptions::default();
        let error = open_target(&format!("md:32k | {text}"), &options).err();
        let error = error.expect("it is wrong").to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

/// The records of a log, with their data.
fn records(path: &Path) -> (Header, Vec<(Entry, Vec<u8>)>) {
    let bytes = fs::read(path).expect("the log");
    let header = Header::decode(&bytes).expect("a header");
    let mut rest = &bytes[HEADER_BYTES..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let record = Record::decode(rest, found.len() as u64, &header).expect("a record");
        let data = &rest[RECORD_BYTES..][..record.stored_bytes as usize];
        record.check(data).expect("its data");
        found.push((record.entry, data.to_vec()));
        rest = &rest[RECORD_BYTES + data.len()..];
    }
    (header, found)
}

#[test]
fn the_log_has_what_was_written_in_its_order() {
    let folder = tempfile::tempdir().expect("a folder");
    for more in ["", ",seed=1"] {
        let path = folder.path().join("log");
        let mut disk = Disk::new(&format!("md:32k | crash:log={}{more}", path.display()));
        disk.write(1, 0xab, 2).expect("writes");
        disk.flush().expect("flushes");
        disk.write(8, 0, 1).expect("writes");
        let opened = disk.opened.as_ref().expect("open");
        let zeroed = disk.channel.discard(opened, Command::Zero, 0, 4096);
        zeroed.expect("zeroes");
        drop(disk);
        let (header, found) = records(&path);
        assert_eq!((header.media_bytes, header.sector_bytes), (32 << 10, 512));
        let write = |offset_bytes, length_bytes| Entry::Write {
            offset_bytes,
            length_bytes,
            fua: false,
        };
        let zero = Entry::Zero {
            offset_bytes: 0,
            length_bytes: 4096,
        };
        let expected = [
            (write(512, 1024), vec![0xab; 1024]),
            (Entry::Barrier { covers: 1 }, vec![]),
            (write(4096, 512), vec![]),
            (zero, vec![]),
        ];
        assert_eq!(found, expected, "{more}");
    }
}

#[test]
fn the_flush_of_a_client_that_has_gone_is_no_barrier() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut disk = Disk::new(&format!("md:32k | crash:log={}", path.display()));
    disk.write(1, 0xab, 2).expect("writes");
    let opened = disk.opened.as_ref().expect("open");
    disk.channel.last_flush(opened).expect("flushes");
    disk.write(3, 0xab, 1).expect("writes");
    drop(disk);
    let (_, found) = records(&path);
    let barriers = |(entry, _): &&(Entry, Vec<u8>)| matches!(entry, Entry::Barrier { .. });
    assert_eq!(
        (found.len(), found.iter().filter(barriers).count()),
        (2, 0),
        "{found:?}"
    );
}

#[test]
fn a_barrier_does_not_cover_what_was_in_flight() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let header = Header {
        media_bytes: 4096,
        sector_bytes: 512,
    };
    let recorder = Recorder::create(&path, header).expect("a log");
    let write = |fua| Entry::Write {
        offset_bytes: 0,
        length_bytes: 512,
        fua,
    };
    let submit = |fua| {
        recorder
            .submitted(write(fua), |with| with(&[1]))
            .expect("goes")
    };
    let (done, flying) = (submit(false), submit(true));
    recorder.completed(done, false);
    let ticket = recorder.flush();
    let later = submit(false);
    recorder.completed(flying, true);
    recorder.flushed(ticket, true);
    recorder.completed(later, false);
    recorder.promise(b"ack 1");
    recorder.begin();
    recorder.write_out().expect("is written");
    let (_, found) = records(&path);
    let expected = [
        (write(false), vec![1]),
        (write(true), vec![1]),
        (write(false), vec![1]),
        (Entry::Durable { write: 1 }, vec![]),
        (Entry::Barrier { covers: 2 }, 1_u64.to_le_bytes().to_vec()),
        (Entry::Promise, b"ack 1".to_vec()),
        (Entry::Begin, vec![]),
    ];
    assert_eq!(found, expected);
    assert_eq!(crash_log::numbers(&found[4].1).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_log_that_cannot_be_written_fails_writes() {
    let mut disk = Disk::new("md:8m | crash:log=/dev/full");
    // The thread of the log reports the error at the latest when all buffers were full.
    let results: Vec<_> = (0..200).map(|_| disk.write(0, 1, 100)).collect();
    assert!(results.contains(&Err(Errno::IO)), "{results:?}");
}
