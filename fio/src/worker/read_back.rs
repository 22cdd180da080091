//! Reading back and checking written blocks.

use std::sync::atomic::Ordering::Relaxed;

use ugeom_load::door::{Door, Kind, Request};
use ugeom_machine::clock;

use super::super::content::Label;
use super::super::content::Mismatch;
use super::super::places::Place;
use super::super::tally::{Live, Phase};
use super::Worker;
use super::written::Written;
use ugeom_job::settings::{READ, WRITE};

impl<D: Door> Worker<'_, D> {
    /// `verify_only`: the places that an earlier run of the job wrote, in the same order.
    pub(super) fn suppose_written(&mut self) {
        while !self.finished && !self.task.stop.load(Relaxed) {
            let kind = self.choose_kind();
            let Some((kind, place)) = self.next_place(kind) else {
                return;
            };
            if kind == WRITE {
                self.write_number += 1;
                self.states.wrote(&place);
            }
            if let (true, Some(written)) = (kind != READ, &mut self.written) {
                match kind {
                    WRITE => {
                        written.add(place, 0);
                    }
                    _ => written.forget(place),
                }
            }
        }
    }

    /// Reads every block that was written.
    pub(super) fn read_back(&mut self) {
        let Some(written) = self.written.take() else {
            return;
        };
        self.task.live.enter(Phase::Verifying);
        let bytes = match self.task.job.verifying.counted {
            true => written.bytes().saturating_sub(self.checked_bytes),
            false => written.bytes(),
        };
        let live: &Live = self.task.live;
        live.goal_bytes.store(self.moved_bytes() + bytes, Relaxed);
        let begin = clock::ticks();
        self.finished = false;
        self.check_all(&mut written.first(bytes));
        self.checked_bytes += bytes;
        let elapsed_ns = clock::ticks_to_ns(clock::ticks().saturating_sub(begin));
        let reads = &mut self.tally.sides[READ];
        reads.runtime_ns += elapsed_ns;
        self.tally.elapsed_ns += elapsed_ns;
        self.checked_ns += elapsed_ns;
    }

    /// Bytes transferred so far, checks included.
    pub(super) fn moved_bytes(&self) -> u64 {
        let totals = self.task.live.totals();
        totals.iter().map(|(bytes, _)| bytes).sum()
    }

    /// `verify_backlog`: when so many blocks wait to be read back, some of them, or as many as
    /// that, are read back before other requests are made.
    pub(super) fn begin_backlog(&mut self, count: u64) {
        let verifying = &self.task.job.verifying;
        if verifying.backlog > 0 && self.checks_left == 0 && count >= verifying.backlog {
            self.checks_left = match verifying.backlog_batch {
                0 => verifying.backlog,
                batch => batch,
            };
        }
    }

    /// Reads back a block of the backlog, the lowest place first; `false` when none is there yet,
    /// or, as by fio, while it is being written again. One that an earlier job had not written ends
    /// the job.
    pub(super) fn make_check(&mut self, now: u64) -> bool {
        let next = self.written.as_ref().and_then(|it| it.iter().next());
        if next.is_some_and(|(place, _)| self.is_being_written(&read_of(&place))) {
            return false;
        }
        let first = self.written.as_mut().and_then(Written::take_first);
        let Some((place, number)) = first else {
            return false;
        };
        if self.is_unwritten(&read_of(&place)) {
            // As by fio, that ends the requests of the job.
            self.finished = true;
            return true;
        }
        self.checks_left -= 1;
        self.read_block(place, number, now);
        true
    }

    /// Reads blocks and checks them, up to one that an earlier job had not written.
    fn check_all(&mut self, blocks: &mut dyn Iterator<Item = (Place, u16)>) {
        let together = self.together();
        loop {
            let now = self.refill_checks(blocks);
            self.hand_over(now);
            if self.in_flight() == 0 {
                break;
            }
            self.collect_and(together, |it, _| it.refill_checks(blocks));
        }
    }

    /// Reads blocks until enough are in flight; the time after it.
    fn refill_checks(&mut self, blocks: &mut dyn Iterator<Item = (Place, u16)>) -> u64 {
        let mut now = clock::ticks();
        if self.task.stop.load(Relaxed) || now >= self.limits.end {
            self.finished = true;
        }
        while !self.finished && !self.free.is_empty() {
            let block = blocks.next();
            let Some((place, number)) =
                block.filter(|(place, _)| !self.is_unwritten(&read_of(place)))
            else {
                self.finished = true;
                break;
            };
            self.read_block(place, number, now);
            if self.queued.len() >= self.batch() {
                now = self.hand_over(now);
            }
        }
        now
    }

    /// Reads a block into a free slot, to check it.
    fn read_block(&mut self, place: Place, number: u16, now: u64) {
        let Some(slot) = self.free.pop() else {
            return;
        };
        self.checks[slot as usize] = Some(number);
        self.make(slot, read_of(&place), now, now);
        self.read_back_bytes += u64::from(place.length);
        // As by fio, these reads are some of `number_ios`.
        self.limits.requests_left = self.limits.requests_left.saturating_sub(1);
    }

    /// Checks a block that has been read back.
    pub(super) fn check_back(&mut self, slot: u32, place: Place) {
        // Numbers are those of this run's writes.
        let number = self.checks[slot as usize].take();
        if self.trims.as_ref().is_some_and(|it| it.is_zeroed(&place)) {
            return self.check_zero(slot, place);
        }
        let number = number.filter(|_| !self.task.job.verifying.only);
        self.check(slot, place, number);
    }

    /// Checks that a block that was trimmed is zero (`trim_verify_zero`).
    fn check_zero(&mut self, slot: u32, place: Place) {
        let block = &self.door.buffer(slot)[..place.length as usize];
        let Some(at) = block.iter().position(|byte| *byte != 0) else {
            return;
        };
        let name = &self.task.regions[place.file as usize].name;
        let message = format!(
            "trim_verify_zero: {name} is not zero at offset {} after the trim of {} bytes at {}",
            place.offset + at as u64,
            place.length,
            place.offset
        );
        self.wrong_content(message);
    }

    /// Checks the buffer of a slot that has been read.
    pub(super) fn check(&mut self, slot: u32, place: Place, number: Option<u16>) {
        // Nothing keeps what was written: fio takes it for right, too.
        let is_kept = self.task.job.ioengine != "null";
        if self.trouble.is_some() || !is_kept {
            return;
        }
        let block = &self.door.buffer(slot)[..place.length as usize];
        let label = Label {
            offset: place.offset,
            number: number.filter(|_| self.task.job.verifying.in_sequence),
        };
        let Err(wrong) = self.content.check(block, label) else {
            return;
        };
        let name = &self.task.regions[place.file as usize].name;
        let mut message = format!(
            "verify: {name} is wrong at offset {} (byte {} of the block at {}, {} bytes): {}: \
             expected {}, found {}",
            place.offset + wrong.at as u64,
            wrong.at,
            place.offset,
            place.length,
            wrong.what,
            wrong.expected,
            wrong.found
        );
        if self.task.job.verifying.dump {
            message.push_str(&self.dump(slot, place, number, &wrong));
        }
        self.wrong_content(message);
    }

    /// `verify_dump`: writes the wrong part and the right one to files, as fio names them, and
    /// returns the message about it.
    fn dump(&mut self, slot: u32, place: Place, number: Option<u16>, wrong: &Mismatch) -> String {
        let block = &self.door.buffer(slot)[..place.length as usize];
        let (begin, length) = wrong.part;
        let found = &block[begin..begin + length];
        let name = &self.task.regions[place.file as usize].name;
        let name = name.rsplit('/').next().unwrap_or(name);
        let offset = place.offset + begin as u64;
        let label = Label {
            offset: place.offset,
            number,
        };
        let folder = self.task.job.aux_path.as_ref();
        let folder = folder.map_or(String::new(), |folder| format!("{folder}/"));
        let mut said = String::new();
        let mut write = |what: &str, bytes: &[u8]| {
            let path = format!("{folder}{name}.{offset}.{what}");
            let data = if what == "expected" { what } else { "received" };
            let answer = match std::fs::write(&path, bytes) {
                Ok(()) => format!("; {data} data is in {path}"),
                Err(error) => format!("; writing {path}: {error}"),
            };
            said.push_str(&answer);
        };
        if wrong.in_header {
            write("hdr_fail", found);
            return said;
        }
        write("received", found);
        if let Some(expected) = self.content.expected(block, label, wrong.part) {
            write("expected", &expected);
        }
        said
    }
}

/// The request that reads a block.
fn read_of(place: &Place) -> Request {
    Request {
        kind: Kind::Read,
        file: place.file,
        offset: place.offset,
        length: place.length,
    }
}
