//! FLUSHes over a link that no request of its thread has asked for, but one of another thread's:
//! their place among the requests, and their answers.

use super::{Flushed, Link, NONSENSE};
use ugeom_format::wire::nbd::{
    ChunkHeader, ErrorChunk, Request, SimpleReply, chunk, command, error,
};
use ugeom_machine::clock;
use ugeom_stack::{Command, Errno};

/// The name of such a FLUSH. No flight has it: their slots are fewer.
pub(in crate::nbd) const COOKIE: u64 = u64::MAX;

/// Why a FLUSH fails that the server has answered well.
const OVERLAPPED: &str =
    "the server failed a FLUSH in flight with it, and may report that only once";

const SHUTTING_DOWN: &str = "the server is shutting down";

/// The FLUSHes of others over a link, by their numbers.
#[derive(Default)]
pub(in crate::nbd) struct Asked {
    /// The last one that is wanted.
    wanted: u64,
    /// The last one that was answered, or that has nothing to cover any more.
    done: u64,
    /// The one in flight, or answered and held back.
    sent: Option<Sent>,
    /// One has ended since that was asked last, or one of another link that waited for it.
    ended: bool,
}

struct Sent {
    number: u64,
    /// How many writes it covers.
    covers: u64,
    generation: u64,
    answered: bool,
}

impl Asked {
    pub fn is_waiting(&self) -> bool {
        self.done < self.wanted
    }

    /// There is nothing to flush over this link any more: its connection is gone.
    pub fn end_all(&mut self) {
        self.ended |= self.is_waiting();
        self.done = self.wanted;
        self.sent = None;
    }
}

impl Link {
    /// Wants a FLUSH that covers everything acknowledged so far; its number.
    pub fn ask_flush(&mut self) -> u64 {
        if !self.is_busy() {
            self.now_ns = clock::now_ns();
            self.heard_ns = self.now_ns;
        }
        self.asked.wanted += 1;
        self.asked.wanted
    }

    /// True when it is answered, or has nothing to cover any more.
    pub fn has_flushed(&self, number: u64) -> bool {
        self.asked.done >= number
    }

    /// True once after each FLUSH of others that has ended, over this link or beside it.
    pub fn flush_has_ended(&mut self) -> bool {
        std::mem::take(&mut self.asked.ended)
    }

    /// The bytes of the next one, if it is its turn.
    pub fn next_flush(&mut self) -> Option<[u8; ugeom_format::wire::nbd::REQUEST_BYTES]> {
        if !self.asked.is_waiting() || self.asked.sent.is_some() {
            return None;
        }
        self.asked.sent = Some(Sent {
            number: self.asked.wanted,
            covers: self.durability.covers(),
            generation: self.together.begin(),
            answered: false,
        });
        let request = Request {
            flags: 0,
            command: command::FLUSH,
            cookie: COOKIE,
            offset_bytes: 0,
            length_bytes: 0,
        };
        Some(request.encode())
    }

    /// The answer as a simple reply.
    pub fn flush_replied(&mut self, reply: SimpleReply) -> Result<(), &'static str> {
        self.flush_answered(reply.error)
    }

    /// The answer as a chunk, with its data behind the header.
    pub fn flush_chunk(&mut self, header: ChunkHeader, data: &[u8]) -> Result<(), &'static str> {
        match header.kind {
            chunk::NONE if header.is_last() => self.flush_answered(0),
            chunk::ERROR | chunk::ERROR_OFFSET if header.is_last() => {
                let failed = ErrorChunk::decode(data).map_err(|_| NONSENSE)?;
                self.flush_answered(failed.error)
            }
            _ => Err(NONSENSE),
        }
    }

    fn flush_answered(&mut self, errno: u32) -> Result<(), &'static str> {
        let sent = self.asked.sent.as_mut().filter(|sent| !sent.answered);
        let Some(sent) = sent else {
            return Err("the server sent a reply to no request");
        };
        let (number, covers, generation) = (sent.number, sent.covers, sent.generation);
        self.heard_ns = self.now_ns;
        match errno {
            0 => {
                sent.answered = true;
                self.flush_succeeded(generation, Flushed::Asked(number, covers));
            }
            error::ESHUTDOWN => return Err(SHUTTING_DOWN),
            _ => {
                self.together.failed(generation);
                self.asked_has_ended(number, covers);
                self.release_flushes();
            }
        }
        Ok(())
    }

    /// A FLUSH for others is over. Writes that it could not cover have been reported as lost.
    fn asked_has_ended(&mut self, number: u64, covers: u64) {
        self.asked.sent = None;
        self.durability.flushed(covers);
        self.asked.done = self.asked.done.max(number);
        self.asked.ended = true;
    }

    /// A FLUSH was answered well. It counts when those beside it have been, too.
    pub fn flush_succeeded(&mut self, generation: u64, flushed: Flushed) {
        self.held += 1;
        self.together.succeeded(self.number, generation, flushed);
        self.release_flushes();
    }

    /// Completes the FLUSHes that were answered well and wait for no other one any more.
    pub fn release_flushes(&mut self) {
        while let Some((flushed, good)) = self.together.take(self.number) {
            self.held -= 1;
            let index = match flushed {
                Flushed::Flight(index) => index,
                Flushed::Asked(number, covers) => {
                    self.asked_has_ended(number, covers);
                    continue;
                }
            };
            if let Some(flight) = &self.flights[index as usize] {
                let length = flight.bio.length();
                // A durable write may have been lost with a FLUSH that failed before its own.
                let kept = !flight.flushing || flight.failures == self.together.failures().count();
                self.durability.flushed(flight.covers);
                let outcome = (good && kept)
                    .then_some(length)
                    .ok_or((Errno::IO, OVERLAPPED));
                self.finish(index, outcome);
            }
        }
        let others = self.together.released_of_others(Some(self.number));
        self.asked.ended |= others.is_some();
    }

    /// True while the server owes nothing: requests in flight wait for FLUSHes over other links.
    pub fn owes_nothing(&self) -> bool {
        self.held == self.in_flight() + usize::from(self.asked.is_waiting())
    }

    /// The connection is gone, or the link: FLUSHes that were not answered may have failed.
    pub fn forget_flushes(&mut self) {
        self.together.forget(self.number);
        self.held = 0;
        let flights = self.flights.iter().flatten();
        let flights = flights.filter(|flight| {
            flight.asked && (flight.flushing || flight.bio.command() == Command::Flush)
        });
        for flight in flights {
            self.together.failed(flight.generation);
        }
        if let Some(sent) = &self.asked.sent
            && !sent.answered
        {
            self.together.failed(sent.generation);
        }
        let others = self.together.released_of_others(Some(self.number));
        self.asked.ended |= others.is_some();
    }
}
