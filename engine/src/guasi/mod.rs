//! The engine `guasi`: each step of an operation is a blocking system call that a thread of a pool
//! makes (crate `guasi`); or the kernel through a ring, with `backend=ring` or `auto`.
//!
//! ```text
//!   submit --> backlog --> staged --submit_batch--> workers --collect--> ready --> reap
//! ```
//!
//! It needs nothing of the kernel but threads, works on every file, and reaches at any file system
//! what that file system does for many threads. It costs two hand-overs between threads for each
//! call, and as many threads as calls that wait.

mod calls;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ugeom_guasi::{Backend, Context, GuasiError, Info, Io, IoCall, RequestId, Settings, Status};
use ugeom_machine::buffer::IoMemory;
use ugeom_machine::cpu::Usage;

use crate::choice::EngineError;
use crate::op::{Completion, Engine, Errno, FileId, Op, Ticket};
use crate::queue::{Queue, by_queue};

/// Most operations that are with the workers at a time.
const DEPTH_MAX: u32 = 32_768;

/// Most operations that the kernel has at a time through a ring: as many as the queue of a device
/// usually has room for. The rest is made by threads of the kernel, at twice the cost.
const RING_DEPTH: u32 = 128;

/// The most workers unless something else is said: as fio had it.
const WORKERS_MAX: u32 = 2000;

/// The most workers that can be asked for: as many as operations can be in flight.
const THREADS_MAX: u32 = DEPTH_MAX;

/// The stack of a worker, which makes nothing but system calls, bytes.
const STACK_BYTES: usize = 128 << 10;

/// How soon to offer a batch again that the context had no room for, when nothing else may end.
const OFFER_AGAIN: Duration = Duration::from_millis(1);

/// How many workers: the least are started at once and stay, the most when that many calls wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Workers {
    /// The least number, at least 1.
    pub min: u32,
    /// The largest number, at least `min`.
    pub max: u32,
}

impl FromStr for Workers {
    type Err = String;

    /// `MIN..MAX`, or `MAX` alone for 1 to that many.
    fn from_str(text: &str) -> Result<Workers, String> {
        let wrong = || {
            format!(
                "`{text}` is not MIN..MAX or MAX, with 1 <= MIN <= MAX <= {THREADS_MAX} workers"
            )
        };
        let (min, max) = text.split_once("..").unwrap_or(("1", text));
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (min, max) = (number(min)?, number(max)?);
        if (1..=max).contains(&min) && max <= THREADS_MAX {
            Ok(Workers { min, max })
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.min, self.max)
    }
}

/// How the calls of the engine `guasi` are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GuasiOptions {
    /// How many workers. Unless set: one, and up to as many as operations may be in flight, at
    /// most 2000.
    pub workers: Option<Workers>,
    /// How long a thread without work polls before it sleeps; zero: not at all. Unless set:
    /// [`ugeom_guasi::SPIN`].
    pub spin: Option<Duration>,
    /// Executor of the calls that an io_uring could make; default: workers.
    pub backend: Backend,
}

impl GuasiOptions {
    fn workers(self, depth: u32) -> Workers {
        let unset = Workers {
            min: 1,
            max: depth.min(WORKERS_MAX),
        };
        let Workers { min, max } = self.workers.unwrap_or(unset);
        // Without a worker that stays, the end of the last one could leave no thread to go on.
        let min = min.max(1);
        Workers {
            min,
            max: max.max(min),
        }
    }
}

/// Runs operations in threads.
pub struct GuasiEngine<M: IoMemory + 'static> {
    context: Context,
    queue: Queue<M>,
    /// Operations that the next batch hands over, and their calls.
    staged: Vec<(u32, IoCall)>,
    /// The request of each operation that was handed over, by the operation's index.
    requests: Vec<Option<RequestId>>,
}

impl<M: IoMemory + 'static> GuasiEngine<M> {
    /// Starts the least number of workers, for `depth` (1 to 32768) operations at a time.
    ///
    /// # Errors
    /// When they cannot be started.
    pub fn open(depth: u32, options: GuasiOptions) -> Result<GuasiEngine<M>, EngineError> {
        let depth = depth.clamp(1, DEPTH_MAX);
        let Workers { min, max } = options.workers(depth);
        // A cancelled operation takes room until a worker removes it: twice as many as can be in
        // use.
        let settings = Settings::new()
            .workers(min, max)
            .backend(options.backend)
            .ring_depth(depth.min(RING_DEPTH))
            .one_thread(true)
            .stack_bytes(STACK_BYTES)
            .requests(2 * depth)
            .spin(options.spin.unwrap_or(ugeom_guasi::SPIN));
        let context = settings.open().map_err(|error| refused(error, min))?;
        Ok(GuasiEngine {
            context,
            queue: Queue::new(depth),
            staged: Vec::with_capacity(depth as usize),
            requests: Vec::new(),
        })
    }

    /// The executor of the calls, and the reason: `ring: REASON` or `workers: REASON`.
    pub fn backend(&self) -> &str {
        self.context.backend()
    }

    /// Stages operations from the backlog while there is room.
    fn refill(&mut self) {
        while let Some(index) = self.queue.next() {
            if let Some(prepared) = self.queue.prepare(index) {
                let call = calls::call(prepared.fd, &prepared.step, prepared.pieces);
                self.queue.handed_on(index);
                self.staged.push((index, call));
            }
        }
    }

    /// Hands over staged operations, as far as the context has room.
    fn enter(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        let requests = &mut self.requests;
        let largest = self.staged.iter().map(|(index, _)| *index as usize + 1);
        requests.resize(requests.len().max(largest.max().unwrap_or(0)), None);
        let works = self.staged.iter().map(|&(index, call)| {
            // SAFETY: memory and pieces stay valid and untouched until the operation is absorbed
            // (contracts of `IoMemory` and of `Queue::prepare`), and the file is held until then;
            // dropping the engine waits for the end of the request, too.
            (index as usize, unsafe { Io::new(call) })
        });
        let mut order = self.staged.iter();
        let submitted = self.context.submit_batch(0, works, |request| {
            if let Some(&(index, _)) = order.next() {
                requests[index as usize] = Some(request);
            }
        });
        // An error is that there was no room: a worker there is always, since the first one
        // stays. The next call offers the batch again.
        drop(self.staged.drain(..submitted.unwrap_or(0)));
    }

    fn request_cancel(&mut self, index: u32) {
        if let Some(at) = self.staged.iter().position(|&(staged, _)| staged == index) {
            self.staged.remove(at);
            self.queue.absorb(index, Err(Errno::CANCELED));
        } else if let Some(request) = self.requests[index as usize] {
            self.context.cancel(request);
        }
    }

    /// Takes completed operations: waits for the first until `timeout`, if one is given.
    fn collect(&mut self, timeout: Option<Option<Duration>>) {
        let Self {
            context,
            queue,
            requests,
            ..
        } = self;
        let (min, timeout) = match timeout {
            Some(timeout) => (1, timeout),
            None => (0, Some(Duration::ZERO)),
        };
        context.collect(min, usize::MAX, timeout, |info| {
            requests[info.tag] = None;
            queue.absorb(info.tag as u32, result(&info));
        });
    }
}

/// How a request ended, as the engines tell it.
fn result(info: &Info) -> Result<u64, Errno> {
    match u64::try_from(info.result) {
        _ if info.status == Status::Canceled => Err(Errno::CANCELED),
        Ok(count) => Ok(count),
        Err(_) => Err(Errno::from_raw_os_error(info.error)),
    }
}

impl<M: IoMemory + 'static> Engine<M> for GuasiEngine<M> {
    by_queue!(files);

    fn submit(&mut self, op: Op, memory: M) -> Ticket {
        let ticket = self.queue.submit(op, memory);
        self.refill();
        ticket
    }

    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        self.enter();
        self.collect(None);
        self.refill();
        self.enter();
        self.queue.deliver(done, |_, _| {});
    }

    by_queue!(flush and cancel);

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        // Without a descriptor (EMFILE) the caller reaps again and again, and gets on.
        self.context.event_fd().ok()
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.refill();
        self.enter();
        if self.queue.has_ready() || self.queue.outside() == 0 {
            return Ok(());
        }
        let soon = |timeout: Duration| timeout.min(OFFER_AGAIN);
        let timeout = if self.staged.is_empty() {
            timeout
        } else {
            Some(timeout.map_or(OFFER_AGAIN, soon))
        };
        self.collect(Some(timeout));
        Ok(())
    }

    fn helpers_usage(&mut self, ended: bool) -> Usage {
        if ended {
            self.context.close();
        }
        self.context.workers_usage()
    }

    fn name(&self) -> &'static str {
        "guasi"
    }
}

impl<M: IoMemory + 'static> Drop for GuasiEngine<M> {
    /// Cancels waiting calls, interrupts running ones, and waits for their end: it uses our memory
    /// until then.
    fn drop(&mut self) {
        self.context.close();
    }
}

/// Why there are no workers, in plain words.
fn refused(error: GuasiError, workers: u32) -> EngineError {
    let reason = match &error {
        GuasiError::NoWorker(_) => format!(
            "{workers} threads cannot be started (limits: ulimit -u, \
             sysctl kernel.threads-max, the pids of the control group)"
        ),
        other => other.to_string(),
    };
    let source = match error {
        GuasiError::NoWorker(source)
        | GuasiError::System(source)
        | GuasiError::NoRing { source, .. } => source,
        _ => io::ErrorKind::InvalidInput.into(),
    };
    EngineError::Refused {
        engine: "guasi",
        reason,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_workers_are_read_back_and_nonsense_is_refused() {
        let workers: Workers = "32..2000".parse().unwrap();
        assert_eq!((workers.min, workers.max), (32, 2000));
        assert_eq!(workers.to_string().parse(), Ok(workers));
        assert_eq!("7".parse(), Ok(Workers { min: 1, max: 7 }));
        for text in [
            "", "0", "0..4", "5..4", "..", "1..", "-1", "x", "1..40000", "1...4",
        ] {
            let error = text.parse::<Workers>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
