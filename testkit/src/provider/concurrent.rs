//! Cases with many requests at once, from one thread and from two, and with requests that are
//! cancelled or lose their provider.

use super::Bench;
use std::time::Duration;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Command, Errno, Finished, Stack};

/// How long anything may take that should take next to nothing. Only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// The content of the sector `number` in these cases.
fn pattern(number: u64, sector: u64) -> Vec<u8> {
    let word = (number ^ 0x5bd1_e995)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_le_bytes();
    word.into_iter().cycle().take(sector as usize).collect()
}

/// Sends `count` requests of one sector each, all before the first is collected, and collects them.
fn storm(bench: &mut Bench<'_>, command: Command, count: u64) -> Vec<Finished> {
    let (sector, sectors) = (bench.sector(), bench.media() / bench.sector());
    for number in 0..count {
        let at = number % sectors;
        let draft = bench.channel.bio();
        let draft = draft.unwrap_or_else(|| panic!("{}: no bio is left", bench.about()));
        let draft = if command == Command::Write {
            draft.write(at * sector, Buffer::from_slice(&pattern(at, sector)))
        } else {
            draft.read(at * sector, Buffer::new(sector as usize))
        };
        bench.channel.submit(&bench.opened, draft.cookie(number));
    }
    collect(bench, count)
}

/// Waits for `count` requests, each of which must complete once.
fn collect(bench: &mut Bench<'_>, count: u64) -> Vec<Finished> {
    let mut all = Vec::new();
    let mut seen = vec![false; count as usize];
    while (all.len() as u64) < count {
        if bench.channel.wait(Some(HANG_TIMEOUT)) == 0 {
            panic!("{}: {} of {count} came home", bench.about(), all.len());
        }
        while let Some(finished) = bench.channel.finished() {
            let cookie = finished.cookie() as usize;
            let first = seen
                .get_mut(cookie)
                .is_some_and(|seen| !std::mem::replace(seen, true));
            bench.check(first, "a request came home twice");
            all.push(finished);
        }
    }
    let more = bench.channel.poll();
    bench.check(more == 0, "more came home than was sent");
    all
}

pub(super) fn thousand(bench: &mut Bench<'_>) {
    const COUNT: u64 = 1000;
    let (sector, sectors) = (bench.sector(), bench.media() / bench.sector());
    let keeps = bench.subject.promises.keeps_data;
    if bench.subject.promises.writable {
        for finished in storm(bench, Command::Write, COUNT) {
            bench.check(finished.result() == Ok(sector), "one of many writes failed");
            bench.channel.recycle(finished);
        }
    }
    for finished in storm(bench, Command::Read, COUNT) {
        bench.check(finished.result() == Ok(sector), "one of many reads failed");
        let number = finished.cookie() % sectors;
        let same = finished
            .buffer()
            .is_some_and(|b| b[..] == pattern(number, sector)[..]);
        bench.check(same || !keeps, "one of many reads has the wrong data");
        bench.channel.recycle(finished);
    }
}

pub(super) fn two_threads(bench: &mut Bench<'_>) {
    let stack = bench.device.stack.clone();
    let (sector, sectors) = (bench.sector(), bench.playground() / bench.sector());
    if sectors < 2 {
        return;
    }
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = [0, sectors / 2]
            .map(|first| {
                let (stack, bench) = (&stack, &*bench);
                let share = Share {
                    first,
                    count: sectors / 2,
                    sector,
                };
                let opened = &bench.opened;
                let writes = bench.subject.promises.writable;
                let keeps = bench.subject.promises.keeps_data;
                scope.spawn(move || share.work(stack, opened, writes, keeps))
            })
            .into();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<(), String>>| {
            thread.join().unwrap_or_else(|_| Err("it panicked".into()))
        };
        threads.into_iter().map(join).collect()
    });
    for outcome in outcomes {
        if let Err(why) = outcome {
            panic!("{}: {why}", bench.about());
        }
    }
}

/// The part of the media that one thread works on, in sectors.
#[derive(Clone, Copy)]
struct Share {
    first: u64,
    count: u64,
    sector: u64,
}

impl Share {
    fn work(
        self,
        stack: &Stack,
        opened: &ugeom_stack::Opened,
        writes: bool,
        keeps: bool,
    ) -> Result<(), String> {
        let text = |error: ugeom_stack::IoError| error.to_string();
        let mut channel = stack.channel(1).map_err(|error| error.to_string())?;
        let mut bytes = vec![0; self.sector as usize];
        for number in self.first..self.first + self.count {
            let wanted = pattern(number, self.sector);
            let at = number * self.sector;
            if writes {
                channel.write(opened, at, &wanted).map_err(text)?;
            }
            channel.read(opened, at, &mut bytes).map_err(text)?;
            if keeps && bytes != wanted {
                return Err(format!("sector {number} has the data of another"));
            }
        }
        Ok(())
    }
}

pub(super) fn cancel(bench: &mut Bench<'_>) {
    const COUNT: u64 = 64;
    let (sector, sectors) = (bench.sector(), bench.media() / bench.sector());
    let mut ids = Vec::new();
    for number in 0..COUNT {
        let draft = bench.channel.bio();
        let draft = draft.unwrap_or_else(|| panic!("{}: no bio is left", bench.about()));
        let at = number % sectors * sector;
        let draft = draft.read(at, Buffer::new(sector as usize)).cookie(number);
        ids.push(bench.channel.submit(&bench.opened, draft));
    }
    for id in ids.iter().step_by(2) {
        bench.channel.cancel(*id);
    }
    for finished in collect(bench, COUNT) {
        let cancelled = finished.result() == Err(Errno::CANCELED);
        let done = finished.result() == Ok(sector);
        let asked = finished.cookie().is_multiple_of(2);
        bench.check(done || (cancelled && asked), "a request ended neither way");
        bench.channel.recycle(finished);
    }
    for id in ids {
        // Void by now: it must not touch whatever lives there next.
        bench.channel.cancel(id);
    }
    let _ = bench.read(0, sector);
}

pub(super) fn orphan(bench: &mut Bench<'_>) {
    const COUNT: u64 = 16;
    let (sector, sectors) = (bench.sector(), bench.media() / bench.sector());
    for number in 0..COUNT {
        let draft = bench.channel.bio();
        let draft = draft.unwrap_or_else(|| panic!("{}: no bio is left", bench.about()));
        let at = number % sectors * sector;
        let draft = draft.read(at, Buffer::new(sector as usize)).cookie(number);
        bench.channel.submit(&bench.opened, draft);
    }
    let orphaned = bench
        .device
        .stack
        .orphan(bench.device.provider, Errno::NXIO);
    bench.check(orphaned.is_ok(), "it could not be orphaned");
    for finished in collect(bench, COUNT) {
        let ended =
            matches!(finished.result(), Err(Errno::NXIO)) || finished.result() == Ok(sector);
        bench.check(ended, "a request in flight ended with another error");
        bench.channel.recycle(finished);
    }
    let mut bytes = vec![0; sector as usize];
    let result = bench.channel.read(&bench.opened, 0, &mut bytes);
    bench.refused(result, Errno::NXIO);
    let open = bench
        .device
        .stack
        .open(bench.device.provider, ugeom_stack::Delta::READ);
    bench.check(open.is_err(), "an orphaned provider was opened");
}
