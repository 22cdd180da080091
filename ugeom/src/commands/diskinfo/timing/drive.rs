//! A way into the stack for the measurements: reads one by one and many in flight, and writes that
//! are durable when they return.

use super::DiskinfoError;
use std::sync::Arc;
use ugeom_load::Failure;
use ugeom_load::door::{Direct, Door, Explain, Kind, Request, StackCalls, StackDoor};
use ugeom_load::drive::{Queue, one_by_one};
use ugeom_load::recorder::Unwatched;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Errno, Opened, Stack};

/// How many random reads are in flight, as FreeBSD's `NAIO`.
const DEPTH: u32 = 128;
/// A larger write goes out in pieces of this size at once, bytes, as FreeBSD's `MAXIO`.
const PIECE_BYTES: u64 = 128 << 10;

/// Whether writes are followed by a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushing {
    Wanted,
    /// The provider has none: it keeps nothing back.
    Unsupported,
}

pub(super) struct Drive {
    stack: Stack,
    opened: Arc<Opened>,
    /// For reads one by one.
    channel: Channel,
    buffer: Buffer,
}

/// Writes of one size, each in pieces that are in flight together.
pub(super) struct Writes {
    queue: Queue<StackDoor>,
    bytes: u64,
}

impl Drive {
    pub(super) fn new(stack: &Stack, opened: &Arc<Opened>) -> Result<Self, DiskinfoError> {
        Ok(Self {
            stack: stack.clone(),
            opened: Arc::clone(opened),
            channel: stack.channel(1)?,
            buffer: Buffer::new(super::MEGA_BYTES as usize),
        })
    }

    /// Reads so many bytes, at most a megabyte, at each of these places; how often.
    pub(super) fn read(
        &mut self,
        step: &str,
        places: impl Iterator<Item = u64>,
        length_bytes: u64,
    ) -> Result<u64, DiskinfoError> {
        let mut door = StackCalls::new(&mut self.channel, &self.opened, &mut self.buffer);
        let requests = places.map(|place| Request::read(place, length_bytes as u32));
        let done = one_by_one(&mut door, requests, &mut Unwatched);
        Ok(done.map_err(|failure| failed(step, failure))?.requests)
    }

    /// Keeps 128 reads in flight until `over`, which is asked when one has ended, and waits for the
    /// last. Returns how many there were.
    pub(super) fn read_many(
        &mut self,
        step: &str,
        bytes: u64,
        place: &mut dyn FnMut() -> u64,
        over: &mut dyn FnMut() -> bool,
    ) -> Result<u64, DiskinfoError> {
        let mut queue = self.queue(DEPTH, bytes)?;
        let going = |index: &u32| *index < DEPTH || !over();
        // The index of a read counts to the depth only.
        let indices = (0..DEPTH).chain(std::iter::repeat(DEPTH));
        let requests = indices.take_while(going);
        let requests = requests.map(|_| Request::read(place(), bytes as u32));
        let done = queue.run(requests, &mut Unwatched);
        Ok(done.map_err(|failure| failed(step, failure))?.requests)
    }

    fn queue(&self, slots: u32, bytes: u64) -> Result<Queue<StackDoor>, DiskinfoError> {
        let channel = self.stack.channel(slots as usize)?;
        let opened = Arc::clone(&self.opened);
        let door = StackDoor::new(channel, opened, slots, bytes as usize);
        Ok(Queue::new(door, slots))
    }

    /// Writes of so many bytes, of random content.
    pub(super) fn writes(
        &self,
        bytes: u64,
        random: &mut fastrand::Rng,
    ) -> Result<Writes, DiskinfoError> {
        let slots = bytes.div_ceil(PIECE_BYTES) as u32;
        let mut queue = self.queue(slots, bytes.min(PIECE_BYTES))?;
        for slot in 0..slots {
            random.fill(queue.door().buffer(slot));
        }
        Ok(Writes { queue, bytes })
    }
}

impl Writes {
    /// Writes all pieces at once, waits for them, and makes them durable.
    pub(super) fn write(
        &mut self,
        step: &str,
        offset_bytes: u64,
        flushing: &mut Flushing,
    ) -> Result<(), DiskinfoError> {
        let bytes = self.bytes;
        let pieces = (0..bytes).step_by(PIECE_BYTES as usize).map(|at| {
            let length = (bytes - at).min(PIECE_BYTES);
            Request::write(offset_bytes + at, length as u32)
        });
        let written = self.queue.run(pieces, &mut Unwatched);
        written.map_err(|failure| failed(step, failure))?;
        if *flushing == Flushing::Unsupported {
            return Ok(());
        }
        let flush = Request::of(Kind::DataSync, 0, 0);
        let door = self.queue.door();
        match door.call(&flush) {
            Ok(_) => Ok(()),
            Err(Errno::OPNOTSUPP) => {
                *flushing = Flushing::Unsupported;
                Ok(())
            }
            Err(errno) => {
                let layers = door.explain().map(Box::new);
                let request = flush;
                Err(failed(
                    step,
                    Failure::Failed {
                        request,
                        errno,
                        layers,
                    },
                ))
            }
        }
    }
}

fn failed(step: &str, failure: Failure) -> DiskinfoError {
    let step = step.to_owned();
    match failure {
        Failure::Failed {
            layers: Some(source),
            ..
        } => DiskinfoError::Io {
            step,
            source: *source,
        },
        Failure::Short { request, done } => DiskinfoError::Short {
            step,
            offset_bytes: request.offset,
            wanted_bytes: u64::from(request.length),
            got_bytes: done,
        },
        Failure::Lost(lost) => DiskinfoError::Lost { step, lost },
        other => DiskinfoError::Other(other.in_case(&step)),
    }
}
