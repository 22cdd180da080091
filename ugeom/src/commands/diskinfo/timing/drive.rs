//! A way into the stack for the measurements: reads one by one and at a queue depth, and writes
//! that are durable when they return.

use super::DiskinfoError;
use std::time::Duration;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Draft, Errno, Finished, Opened, Stack};

/// Queue depth of random reads, as FreeBSD's `NAIO`.
const DEPTH: usize = 128;
/// A larger write goes out in concurrent pieces of this size, bytes, as FreeBSD's `MAXIO`.
const PIECE_BYTES: u64 = 128 << 10;
/// No request takes longer than this, or something is lost.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Whether writes are followed by a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushing {
    /// They are.
    Wanted,
    /// The provider has none: it keeps nothing back.
    Unsupported,
}

pub(super) struct Drive<'a> {
    channel: Channel,
    opened: &'a Opened,
    /// For reads one by one.
    buffer: Buffer,
}

/// The pieces of a write while they are not in flight.
pub(super) struct Pieces(Vec<Draft>);

impl<'a> Drive<'a> {
    pub(super) fn new(stack: &Stack, opened: &'a Opened) -> Result<Self, DiskinfoError> {
        Ok(Self {
            channel: stack.channel(DEPTH)?,
            opened,
            buffer: Buffer::new(super::MEGA_BYTES as usize),
        })
    }

    /// Reads so many bytes, at most a megabyte.
    pub(super) fn read(
        &mut self,
        step: &str,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), DiskinfoError> {
        let into = &mut self.buffer[..length_bytes as usize];
        let got = self.channel.read(self.opened, offset_bytes, into);
        let got = got.map_err(|source| DiskinfoError::Io {
            step: step.to_owned(),
            source,
        })?;
        whole(step, offset_bytes, length_bytes, got as u64)
    }

    /// Keeps 128 reads in flight until `over`, and waits for the last. Returns how many there
    /// were.
    pub(super) fn read_many(
        &mut self,
        step: &str,
        bytes: u64,
        place: &mut dyn FnMut() -> u64,
        over: &mut dyn FnMut() -> bool,
    ) -> Result<u64, DiskinfoError> {
        let mut under_way = 0;
        while under_way < DEPTH
            && let Some(draft) = self.channel.bio()
        {
            let buffer = Buffer::new(bytes as usize);
            self.channel
                .submit(self.opened, draft.read(place(), buffer));
            under_way += 1;
        }
        let mut done = 0;
        let mut ending = false;
        while under_way > 0 {
            let finished = self.next(step, under_way)?;
            done += 1;
            ending = ending || over();
            if ending {
                self.channel.recycle(finished);
                under_way -= 1;
            } else {
                let again = finished.again().at(place());
                self.channel.submit(self.opened, again);
            }
        }
        Ok(done)
    }

    /// The pieces of a write of so many bytes, of random content.
    pub(super) fn pieces(&mut self, bytes: u64, random: &mut fastrand::Rng) -> Pieces {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < bytes
            && let Some(draft) = self.channel.bio()
        {
            let length = (bytes - at).min(PIECE_BYTES);
            let mut buffer = Buffer::new(length as usize);
            random.fill(&mut buffer);
            pieces.push(draft.write(0, buffer).cookie(at));
            at += length;
        }
        Pieces(pieces)
    }

    /// Writes all pieces concurrently, waits for them, and makes them durable.
    pub(super) fn write(
        &mut self,
        step: &str,
        offset_bytes: u64,
        pieces: &mut Pieces,
        flushing: &mut Flushing,
    ) -> Result<(), DiskinfoError> {
        let mut under_way = 0;
        for piece in pieces.0.drain(..) {
            let place = offset_bytes + piece.number();
            self.channel.submit(self.opened, piece.at(place));
            under_way += 1;
        }
        while under_way > 0 {
            let finished = self.next(step, under_way)?;
            under_way -= 1;
            pieces.0.push(finished.again());
        }
        if *flushing == Flushing::Unsupported {
            return Ok(());
        }
        match self.channel.flush(self.opened) {
            Ok(()) => Ok(()),
            Err(error) if error.errno == Errno::OPNOTSUPP => {
                *flushing = Flushing::Unsupported;
                Ok(())
            }
            Err(source) => Err(DiskinfoError::Io {
                step: step.to_owned(),
                source,
            }),
        }
    }

    /// The next request that completes, with all its bytes.
    fn next(&mut self, step: &str, under_way: usize) -> Result<Finished, DiskinfoError> {
        let finished = loop {
            if let Some(finished) = self.channel.finished() {
                break finished;
            }
            if self.channel.wait(Some(TIMEOUT)) == 0 {
                return Err(DiskinfoError::Lost {
                    step: step.to_owned(),
                    lost: under_way,
                });
            }
        };
        if let Some(source) = self.channel.explain(&finished) {
            return Err(DiskinfoError::Io {
                step: step.to_owned(),
                source,
            });
        }
        let got = finished.result().unwrap_or(0);
        whole(step, finished.offset(), finished.length(), got)?;
        Ok(finished)
    }
}

fn whole(
    step: &str,
    offset_bytes: u64,
    wanted_bytes: u64,
    got_bytes: u64,
) -> Result<(), DiskinfoError> {
    if got_bytes == wanted_bytes {
        return Ok(());
    }
    Err(DiskinfoError::Short {
        step: step.to_owned(),
        offset_bytes,
        wanted_bytes,
        got_bytes,
    })
}
