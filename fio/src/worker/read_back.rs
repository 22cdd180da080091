//! Reading back what was written, and checking it.

use std::sync::atomic::Ordering::Relaxed;

use ugeom_machine::clock;

use super::super::content::Label;
use super::super::door::{Door, Kind, Request};
use super::super::places::Place;
use super::super::tally::{Live, Phase};
use super::{Trouble, Worker};
use crate::settings::READ;

/// EILSEQ, which fio reports for a block that is not what was written.
const WRONG_CONTENT: i32 = 84;

impl<D: Door> Worker<'_, D> {
    /// Reads every block that was written, in the order of their places.
    pub(super) fn read_back(&mut self) {
        let Some(written) = self.written.take() else {
            return;
        };
        self.task.live.enter(Phase::Verifying);
        let live: &Live = self.task.live;
        let goal = live.totals().iter().map(|(bytes, _)| bytes).sum::<u64>() + written.bytes();
        live.goal_bytes.store(goal, Relaxed);
        let begin = clock::ticks();
        self.finished = false;
        let mut blocks = written.iter();
        let mut numbers = vec![0; self.slots.len()];
        loop {
            let now = clock::ticks();
            if self.task.stop.load(Relaxed) {
                self.finished = true;
            }
            while !self.finished
                && let Some(&slot) = self.free.last()
            {
                let Some((place, number)) = blocks.next() else {
                    self.finished = true;
                    break;
                };
                self.free.pop();
                numbers[slot as usize] = number;
                let request = Request {
                    kind: Kind::Read,
                    file: place.file,
                    offset: place.offset,
                    length: place.length,
                };
                self.make(slot, request, now, now);
            }
            self.hand_over(now);
            if self.in_flight() == 0 {
                break;
            }
            self.collect_and_check(&numbers);
        }
        let elapsed_ns = clock::ticks_to_ns(clock::ticks().saturating_sub(begin));
        let reads = &mut self.tally.sides[READ];
        reads.runtime_ns += elapsed_ns;
        self.tally.elapsed_ns += elapsed_ns;
    }

    fn collect_and_check(&mut self, numbers: &[u16]) {
        let before = self.free.len();
        self.collect();
        // The slots that came back now, whose buffers nobody has touched since.
        let ended: Vec<u32> = self.free[before.min(self.free.len())..].to_vec();
        for slot in ended {
            let Request {
                file,
                offset,
                length,
                ..
            } = self.slots[slot as usize].request;
            let place = Place {
                file,
                offset,
                length,
            };
            self.check(slot, place, Some(numbers[slot as usize]));
        }
    }

    /// Checks the buffer of a slot that has been read.
    pub(super) fn check(&mut self, slot: u32, place: Place, number: Option<u16>) {
        if self.trouble.is_some() {
            return;
        }
        let block = &self.door.buffer(slot)[..place.length as usize];
        let label = Label {
            offset: place.offset,
            number,
        };
        let Err(wrong) = self.content.check(block, label) else {
            return;
        };
        let name = &self.task.regions[place.file as usize].name;
        let message = format!(
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
        self.finished = true;
        self.trouble = Some(Trouble {
            errno: WRONG_CONTENT,
            message,
        });
    }
}
