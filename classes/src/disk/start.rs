//! The data path of `disk`: requests wait among the timers of their thread until the model says
//! that they are finished, and move their data then.

use super::Disk;
use super::drive::{Drive, Parameters, Work};
use super::state::{Poll, Queue};
use crate::extents;
use ugeom_machine::clock;
use ugeom_stack::{AttributeValue, BioId, Command, Errno, Next, Request};

/// The most lateness that is made up for, ns. A longer delay was not a sleep that took too long,
/// but other work of the machine.
const LATE_MAX_NS: u64 = 10_000_000;

/// The model, and how it lies to the clock.
pub(super) struct Simulation {
    queue: Queue<BioId>,
    /// How much later than it was due the last request was seen to be finished, ns. Timers wake up
    /// late, by 50 us and more; a drive does not. So the model's time is behind the clock by as
    /// much: the next request counts as asked at the moment at which its caller would have asked,
    /// and a stream of requests keeps the drive's pace.
    late_ns: u64,
}

impl Simulation {
    /// A drive that nothing was asked of yet.
    pub const fn new(parameters: Parameters) -> Self {
        Self {
            queue: Queue::new(Drive::new(parameters)),
            late_ns: 0,
        }
    }

    pub fn cancel(&mut self, id: BioId) {
        self.queue.cancel(id);
    }
}

impl Disk {
    /// Puts a request in the queue, or completes it where the drive needs no media.
    pub(super) fn submit(&self, request: Request<'_>) -> Next {
        let (offset_bytes, length_bytes) = (request.offset(), request.length());
        let work = match request.command() {
            Command::Read => Work::Read {
                offset_bytes,
                length_bytes,
            },
            Command::Write => Work::Write {
                offset_bytes,
                length_bytes,
            },
            Command::Delete | Command::Zero | Command::Flush => Work::Command,
            Command::GetAttr | Command::Extents => return self.answer(request),
        };
        let now_ns = clock::now_ns();
        let mut simulation = self.simulation.lock();
        let asked_ns = now_ns.saturating_sub(simulation.late_ns);
        simulation.queue.arrive(request.id(), work, asked_ns);
        let poll = simulation.queue.poll(request.id(), now_ns);
        drop(simulation);
        self.follow(request, poll, now_ns)
    }

    /// Asks the model again about a request whose moment may have come.
    pub(super) fn look(&self, request: Request<'_>) -> Next {
        let now_ns = clock::now_ns();
        let poll = self.simulation.lock().queue.poll(request.id(), now_ns);
        self.follow(request, poll, now_ns)
    }

    /// Acts on the state of a request at `now_ns`.
    fn follow(&self, request: Request<'_>, poll: Poll, now_ns: u64) -> Next {
        match poll {
            Poll::NotBefore(due_ns) => request.delay(due_ns.saturating_sub(now_ns)),
            Poll::Finished(due_ns) => {
                self.simulation.lock().late_ns = now_ns.saturating_sub(due_ns).min(LATE_MAX_NS);
                self.transfer(request)
            }
            Poll::Unknown => request.fail(Errno::CANCELED, "the drive released it"),
        }
    }

    /// Does the request, which is due now.
    fn transfer(&self, mut request: Request<'_>) -> Next {
        let offset = request.offset();
        match (request.command(), &self.region) {
            (Command::Read, Some(region)) => {
                request.fill(|at, piece| region.read(offset + at, piece));
            }
            (Command::Read, None) => request.fill(|_, piece| piece.fill(0)),
            (Command::Write, Some(region)) => {
                request.each(|at, piece| region.write(offset + at, piece));
            }
            (Command::Delete | Command::Zero, Some(region)) => {
                // When the system does not take memory back, it reads as zeroes all the same.
                let _ = region.discard(offset, request.length());
            }
            _ => {}
        }
        request.done_in_full()
    }

    /// Answers a request from the drive's own state.
    fn answer(&self, request: Request<'_>) -> Next {
        if request.command() == Command::GetAttr {
            return match request.attribute() {
                "GEOM::candelete" => request.answer(AttributeValue::Number(1)),
                // 0 stands for a drive that does not say (ATA ACS, word 217).
                "GEOM::rotation_rate" => {
                    let rate = self.parameters.revolutions_per_minute;
                    request.answer(AttributeValue::Number(rate as i64))
                }
                _ => request.done(Err(Errno::OPNOTSUPP)),
            };
        }
        extents::all_data(request)
    }
}
