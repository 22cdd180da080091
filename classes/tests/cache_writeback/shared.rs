//! Several threads on the same sectors. Each write carries a value of its own, and when it began
//! and ended is noted; so is every read. Afterwards each read is held against all writes: what it
//! saw must have begun before the read ended, and must not have been overwritten, as a whole,
//! before the read began.
//!
//! Values are scrambled numbers, so that a word with bytes of two of them is no third one: of plain
//! numbers, one that a ZERO takes a byte of is a number that was written long before.

use crate::user::{Act, SECTOR, open};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Delta, Opened};

#[derive(Clone, Copy)]
struct Span {
    value: u64,
    begun: u64,
    ended: u64,
}

/// The writes and reads of one thread, by sector.
struct Log {
    writes: Vec<Vec<Span>>,
    reads: Vec<Vec<Span>>,
}

struct Worker<'a> {
    channel: Channel,
    opened: &'a Opened,
    clock: &'a AtomicU64,
    log: Log,
    next: u64,
}

impl Worker<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn act(&mut self, act: Act, start: usize, count: usize) {
        let (offset, length) = ((start * SECTOR) as u64, count * SECTOR);
        let draft = self.channel.bio().expect("a bio");
        self.next += 1;
        let (draft, value) = match act {
            Act::Read => (draft.read(offset, Buffer::new(length)), 0),
            Act::Write | Act::Fua | Act::Ordered => {
                let value = scrambled(self.next);
                let bytes = value.to_le_bytes().repeat(length / 8);
                (draft.write(offset, Buffer::from_slice(&bytes)), value)
            }
            Act::Delete => (draft.discard(Command::Delete, offset, length as u64), 0),
            Act::Zero | Act::OrderedZero => {
                (draft.discard(Command::Zero, offset, length as u64), 0)
            }
            Act::Flush => (draft.flush(), 0),
        };
        let begun = self.now();
        self.channel.submit(self.opened, draft.flags(act.flags()));
        while self.channel.wait(None) == 0 {}
        let ended = self.now();
        let finished = self.channel.finished().expect("it is back");
        assert!(
            finished.result().is_ok(),
            "{:?}",
            self.channel.explain(&finished)
        );
        let span = |value| Span {
            value,
            begun,
            ended,
        };
        match (act, finished.buffer()) {
            (Act::Flush, _) => {}
            (Act::Read, Some(bytes)) => {
                for (at, sector) in bytes.chunks(SECTOR).enumerate() {
                    // A sector may be torn where two writes of it meet below.
                    for word in [&sector[..8], &sector[SECTOR - 8..]] {
                        let value = u64::from_le_bytes(word.try_into().expect("eight"));
                        self.log.reads[start + at].push(span(value));
                    }
                }
            }
            _ => {
                let log = &mut self.log.writes[start..start + count];
                log.iter_mut().for_each(|writes| writes.push(span(value)));
            }
        }
    }
}

/// Another number for each, of which every byte depends on the whole (the finalizer of
/// MurmurHash3, which is a bijection).
fn scrambled(mut number: u64) -> u64 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^= number >> 33;
    number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

/// Lets four threads do `requests` each, and judges. How many sectors were read.
pub fn agrees(text: &str, requests: usize, seed: u64) -> u64 {
    const THREADS: u64 = 4;
    let target = open(text);
    let opened = target.open(Delta::READ_WRITE).expect("opens");
    let sectors = opened.view().expect("it").mediasize_bytes as usize / SECTOR;
    let clock = AtomicU64::new(1);
    let logs: Vec<Log> = thread::scope(|scope| {
        let work = |number: u64| {
            let (target, opened, clock) = (&target, &opened, &clock);
            move || {
                let mut random = fastrand::Rng::with_seed(seed * THREADS + number);
                let log = Log {
                    writes: vec![Vec::new(); sectors],
                    reads: vec![Vec::new(); sectors],
                };
                let mut worker = Worker {
                    channel: target.stack.channel(4).expect("a channel"),
                    opened,
                    clock,
                    log,
                    next: (number + 1) << 40,
                };
                for _ in 0..requests {
                    let start = random.usize(0..sectors);
                    let count = random.usize(1..=24).min(sectors - start);
                    worker.act(Act::of(random.u8(..)), start, count);
                }
                worker.log
            }
        };
        let threads: Vec<_> = (0..THREADS)
            .map(|number| scope.spawn(work(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    assert_eq!(target.stack.defects(), 0, "{text}");
    (0..sectors).map(|sector| judge(text, sector, &logs)).sum()
}

fn judge(text: &str, sector: usize, logs: &[Log]) -> u64 {
    let mut writes = vec![Span {
        value: 0,
        begun: 0,
        ended: 0,
    }];
    writes.extend(logs.iter().flat_map(|log| &log.writes[sector]));
    // For each write in the order of the ends: the latest beginning of all that ended by then.
    writes.sort_unstable_by_key(|write| write.ended);
    let mut latest = 0;
    let begun: Vec<u64> = writes
        .iter()
        .map(|write| {
            latest = latest.max(write.begun);
            latest
        })
        .collect();
    let mut count = 0;
    for read in logs.iter().flat_map(|log| &log.reads[sector]) {
        let over = writes.partition_point(|write| write.ended < read.begun);
        let overwritten_by = if over == 0 { 0 } else { begun[over - 1] };
        let allowed = |write: &&Span| write.begun < read.ended && write.ended >= overwritten_by;
        let meant = writes.iter().find(|write| write.value == read.value);
        // Where two writes meet in memory a word may have bytes of both; then no thread wrote it.
        let is_allowed = match meant {
            Some(_) => writes
                .iter()
                .filter(allowed)
                .any(|one| one.value == read.value),
            None => (0..8).all(|byte| {
                let at = |value: u64| value.to_le_bytes()[byte];
                let mut there = writes.iter().filter(allowed);
                there.any(|one| at(one.value) == at(read.value))
            }),
        };
        assert!(
            is_allowed,
            "{text}: sector {sector} was {:#x} from {} to {}; that was written {:?}, and wholly \
             overwritten by a write from {overwritten_by} on",
            read.value,
            read.begun,
            read.ended,
            meant.map(|write| (write.begun, write.ended)),
        );
        count += 1;
    }
    count
}

/// A write of an old value that is over, a newer one, and a ZERO that is in flight when `read` is.
fn judged(read: u64) -> u64 {
    let span = |value, begun, ended| Span {
        value,
        begun,
        ended,
    };
    let (old, new) = (scrambled(0x300_0000_00c4), scrambled(0x300_0000_01c4));
    let writes = vec![span(old, 1, 2), span(new, 3, 4), span(0, 5, 8)];
    let log = Log {
        writes: vec![writes],
        reads: vec![vec![span(read, 6, 7)]],
    };
    judge("made up", 0, &[log])
}

#[test]
fn a_word_that_two_writes_share_is_nobodys_and_allowed() {
    let new = scrambled(0x300_0000_01c4);
    for torn in (0..8).map(|byte| new & !(0xff << (8 * byte))) {
        assert_eq!(judged(torn), 1, "{torn:#x}");
    }
    assert_eq!(judged(new) + judged(0), 2);
}

#[test]
#[should_panic(expected = "wholly overwritten")]
fn a_word_that_was_overwritten_before_is_found() {
    judged(scrambled(0x300_0000_00c4));
}
