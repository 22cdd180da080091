//! The data path of `disk`: requests wait among the timers of their thread until the model says
//! that they are finished, and move their data then.

use super::drive::{Drive, Parameters, Work};
use super::state::{Poll, Queue};
use std::sync::{Mutex, MutexGuard, PoisonError};
use ugeom_machine::clock;
use ugeom_machine::region::Region;
use ugeom_stack::{
    AttributeValue, BioId, Command, Cx, Errno, Extent, ExtentKind, Geom, Next, Request,
};

/// The most lateness that is made up for, ns. What is later than this was not a sleep that took
/// too long, but a machine that did something else.
const LATE_MAX_NS: u64 = 10_000_000;

/// The geom of a simulated drive.
pub struct Disk {
    parameters: Parameters,
    region: Option<Region>,
    simulation: Mutex<Simulation>,
}

/// The model, and how it lies to the clock.
struct Simulation {
    queue: Queue<BioId>,
    /// How much later than it was due the last request was seen to be finished, ns. Timers wake up
    /// late, by 50 us and more; a drive does not. So the model's time is behind the clock by as
    /// much: the next request counts as asked at the moment at which its caller would have asked,
    /// and a stream of requests keeps the drive's pace.
    late_ns: u64,
}

impl Disk {
    /// A drive with its data in `region`, or without data: it reads as zeroes.
    #[must_use]
    pub const fn new(parameters: Parameters, region: Option<Region>) -> Self {
        let queue = Queue::new(Drive::new(parameters));
        Self {
            parameters,
            region,
            simulation: Mutex::new(Simulation { queue, late_ns: 0 }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Simulation> {
        // The model has no step at which it could panic.
        self.simulation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on what the model says about `now_ns`.
    fn follow(&self, request: Request<'_>, poll: Poll, now_ns: u64) -> Next {
        match poll {
            Poll::NotBefore(due_ns) => request.delay(due_ns.saturating_sub(now_ns)),
            Poll::Finished(due_ns) => {
                self.lock().late_ns = now_ns.saturating_sub(due_ns).min(LATE_MAX_NS);
                self.transfer(request)
            }
            Poll::Unknown => request.fail(Errno::CANCELED, "the drive let go of it"),
        }
    }

    /// Does what was asked, now that it is due.
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

    /// What the drive knows by itself, and answers at once.
    fn answer(&self, mut request: Request<'_>) -> Next {
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
        let (mut at, end) = (request.offset(), request.offset() + request.length());
        let mut wanted = true;
        while wanted && at < end {
            let (length_bytes, written) = match &self.region {
                Some(region) => region.next_extent(at),
                None => (end - at, false),
            };
            let kind = if written {
                ExtentKind::Data
            } else {
                ExtentKind::Hole
            };
            wanted = request.add_extent(Extent { length_bytes, kind });
            at += length_bytes;
        }
        request.finish()
    }
}

impl Geom for Disk {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
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
        let mut simulation = self.lock();
        let asked_ns = now_ns.saturating_sub(simulation.late_ns);
        simulation.queue.arrive(request.id(), work, asked_ns);
        let poll = simulation.queue.poll(request.id(), now_ns);
        drop(simulation);
        self.follow(request, poll, now_ns)
    }

    fn resume(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        let now_ns = clock::now_ns();
        let poll = self.lock().queue.poll(request.id(), now_ns);
        self.follow(request, poll, now_ns)
    }

    fn cancel(&self, id: BioId) {
        self.lock().queue.cancel(id);
    }

    fn config(&self) -> Vec<(String, String)> {
        let Parameters {
            size_bytes: _,
            overhead_ns,
            rate_bytes_per_second,
            seek_ns,
            seek_track_ns,
            revolutions_per_minute,
            buffer_bytes,
            queue,
        } = self.parameters;
        vec![
            ("OverheadNs".into(), overhead_ns.to_string()),
            (
                "RateBytesPerSecond".into(),
                rate_bytes_per_second.to_string(),
            ),
            ("SeekNs".into(), seek_ns.to_string()),
            ("SeekTrackNs".into(), seek_track_ns.to_string()),
            (
                "RevolutionsPerMinute".into(),
                revolutions_per_minute.to_string(),
            ),
            ("BufferBytes".into(), buffer_bytes.to_string()),
            ("Queue".into(), queue.to_string()),
            ("Data".into(), u8::from(self.region.is_some()).to_string()),
        ]
    }
}
