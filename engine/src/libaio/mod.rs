//! The engine `libaio`: the kernel's asynchronous I/O of 2002 (io_submit(2)), without the library
//! of that name, which is a thin layer over the same five system calls.
//!
//! ```text
//!   submit --> backlog --> staged --io_submit--> kernel --> ring in user space --> ready --> reap
//! ```
//!
//! It is asynchronous for files opened with O_DIRECT, mostly; for all others io_submit(2) does the
//! whole work before it returns. Allocating blocks, and a full queue of the device, make it wait
//! as well. That is what the engine is for: to be compared with.
//!
//! The kernel cancels nothing that reads or writes a disk: only operations that were not submitted
//! yet end early. Discarding and zeroing have no request and are made on the spot.

mod abi;
mod ring;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use ugeom_machine::buffer::IoMemory;

use crate::calls;
use crate::choice::EngineError;
use crate::op::{Completion, Engine, Errno, FileId, Op, Ticket};
use crate::priorities::Priorities;
use crate::queue::{Queue, by_queue};
use abi::{Context, Event, FLAG_RESFD, Iocb};
use ring::Ring;

/// Completions taken by one call.
const BATCH: usize = 64;

/// Most requests at a time that a context is made for.
const DEPTH_MAX: u32 = 32_768;

/// How often a batch that finds no resources is offered again when nothing is in flight whose end
/// could free some.
const OFFERS_MAX: u32 = 1000;

/// Runs operations through io_submit(2).
pub struct LibaioEngine<M: IoMemory + 'static> {
    context: Context,
    ring: Option<Ring>,
    queue: Queue<M>,
    priorities: Priorities,
    /// One for each slot, at an address of its own, by which the kernel finds it again to cancel
    /// it. From `Box::into_raw`; given back when the engine is dropped.
    requests: Vec<*mut Iocb>,
    /// Requests that the next io_submit hands over.
    staged: Vec<*mut Iocb>,
    eventfd: OwnedFd,
    /// A thread sleeps on the eventfd: requests are to count there. Costs a system call a reap, so
    /// that it is not done before it is asked for.
    told: Cell<bool>,
    /// Requests in flight that do not count on the eventfd, from before it was asked for.
    untold: usize,
}

// SAFETY: the pointers lead to requests that the engine owns itself.
unsafe impl<M: IoMemory + 'static> Send for LibaioEngine<M> {}

impl<M: IoMemory + 'static> LibaioEngine<M> {
    /// Makes a context for `depth` (1 to 32768) operations at a time.
    ///
    /// # Errors
    /// When the kernel has no AIO, forbids it, or has too many requests reserved already.
    pub fn open(depth: u32) -> Result<LibaioEngine<M>, EngineError> {
        let depth = depth.clamp(1, DEPTH_MAX);
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let eventfd = eventfd.map_err(|errno| refused(errno.into(), depth))?;
        let context = Context::set_up(depth).map_err(|error| refused(error, depth))?;
        Ok(LibaioEngine {
            context,
            ring: Ring::of(context),
            queue: Queue::new(depth),
            priorities: Priorities::default(),
            requests: Vec::new(),
            staged: Vec::with_capacity(depth as usize),
            eventfd,
            told: Cell::new(false),
            untold: 0,
        })
    }

    /// Stages operations from the backlog while there is room.
    fn refill(&mut self) {
        while let Some(index) = self.queue.next() {
            self.launch(index);
        }
    }

    fn launch(&mut self, index: u32) {
        while let Some(prepared) = self.queue.prepare(index) {
            if let Some(mut request) = Iocb::new(prepared.fd, &prepared.step, prepared.pieces) {
                request.data = u64::from(index);
                request.prioritize(self.priorities.of(index));
                if self.told.get() {
                    request.tell(self.eventfd.as_raw_fd());
                } else {
                    self.untold += 1;
                }
                while self.requests.len() <= index as usize {
                    self.requests.push(Box::into_raw(Box::default()));
                }
                let place = self.requests[index as usize];
                // SAFETY: a request of ours, which the kernel does not have: it copies what it is
                // given, and asks for the address alone afterwards.
                unsafe { place.write(request) };
                self.staged.push(place);
                return self.queue.handed_on(index);
            }
            // SAFETY: the file is held until the operation ends; the step has no pieces.
            let result = unsafe { calls::perform(prepared.fd, &prepared.step, &[]) };
            if self.queue.absorb_inline(index, result) {
                return;
            }
        }
    }

    /// Hands over staged operations.
    fn enter(&mut self) {
        let mut offers = 0;
        while !self.staged.is_empty() {
            // SAFETY: memory and pieces stay valid and untouched until the completion (contracts
            // of
            // `IoMemory` and of `Queue::prepare`), for which dropping the engine waits, too.
            match unsafe { self.context.submit(&self.staged) } {
                Ok(0) => return,
                Ok(taken) => drop(self.staged.drain(..taken)),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) if self.queue.outside() > self.staged.len() => return,
                    Some(libc::EAGAIN) if offers < OFFERS_MAX => {
                        offers += 1;
                        std::thread::yield_now();
                    }
                    code => {
                        let errno = Errno::from_raw_os_error(code.unwrap_or(libc::EIO));
                        self.reject_first(errno);
                    }
                },
            }
        }
    }

    /// The first request of the batch cannot be made.
    fn reject_first(&mut self, errno: Errno) {
        let first = self.staged.remove(0);
        // SAFETY: a staged pointer leads to a request of ours that the kernel does not have.
        let index = unsafe { (*first).data } as u32;
        self.ended(index, Err(errno));
    }

    fn request_cancel(&mut self, index: u32) {
        let request = self.requests[index as usize];
        match self.staged.iter().position(|&staged| staged == request) {
            Some(at) => {
                self.staged.remove(at);
                self.ended(index, Err(Errno::CANCELED));
            }
            None => self.context.cancel(request),
        }
    }

    fn ended(&mut self, index: u32, result: Result<u64, Errno>) {
        // SAFETY: a request of ours; nothing writes to it now.
        if unsafe { (*self.requests[index as usize]).flags } & FLAG_RESFD == 0 {
            self.untold -= 1;
        }
        let file = self.queue.table.slot(index).op.file;
        let result = match result {
            // AIO knows only what has a way to be read without sleeping, and calls all else
            // invalid.
            Err(Errno::INVAL) if self.queue.files.held(file).is_directory() => Err(Errno::ISDIR),
            other => other,
        };
        self.queue.absorb(index, result);
    }

    fn absorb(&mut self, event: &Event) {
        let result = match u64::try_from(event.result) {
            Ok(count) => Ok(count),
            Err(_) => Err(Errno::from_raw_os_error(-event.result as i32)),
        };
        self.ended(event.data as u32, result);
    }

    /// Takes completed operations, without a system call where the ring is known.
    fn collect(&mut self) {
        if self.told.get() && self.untold == 0 {
            // Completions from here on count again, so that none is missed. It fails when nothing
            // was counted.
            let _ = rustix::io::read(&self.eventfd, &mut [0_u8; 8]);
        }
        if self.ring.is_none() {
            return self.collect_by_call(Some(Duration::ZERO)).unwrap_or(());
        }
        while let Some(event) = self.ring.as_mut().and_then(Ring::take) {
            self.absorb(&event);
        }
    }

    fn collect_by_call(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let mut events = [Event::default(); BATCH];
        match self.context.wait(&mut events, timeout) {
            Ok(count) => {
                for event in &events[..count] {
                    self.absorb(event);
                }
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl<M: IoMemory + 'static> Engine<M> for LibaioEngine<M> {
    by_queue!(files);

    fn reap(&mut self, done: &mut dyn FnMut(Completion<M>)) {
        self.enter();
        self.collect();
        self.refill();
        self.enter();
        self.queue.deliver(done, |_, _| {});
    }

    by_queue!(submit with priorities);

    by_queue!(flush and cancel);

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        if !self.told.replace(true) && self.untold > 0 {
            // Those in flight will not count: until the last of them has ended, a thread that looks
            // at the descriptor is told to reap.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
        Some(self.eventfd.as_fd())
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.refill();
        self.enter();
        self.collect();
        if self.queue.has_ready() || self.queue.outside() == self.staged.len() {
            return Ok(());
        }
        self.collect_by_call(timeout)
    }

    fn name(&self) -> &'static str {
        "libaio"
    }
}

impl<M: IoMemory + 'static> Drop for LibaioEngine<M> {
    /// Waits for the operations that the kernel has: it writes to our memory until then.
    fn drop(&mut self) {
        self.queue.abandon();
        for request in std::mem::take(&mut self.staged) {
            // SAFETY: as in `reject_first`.
            let index = unsafe { (*request).data } as u32;
            self.ended(index, Err(Errno::CANCELED));
        }
        while self.queue.outside() > 0 {
            if self.collect_by_call(None).is_err() {
                self.queue.leak();
                break;
            }
        }
        self.context.destroy();
        for request in self.requests.drain(..) {
            // SAFETY: made by `Box::into_raw`; the context that knew the address is no more.
            drop(unsafe { Box::from_raw(request) });
        }
    }
}

/// Why there is no context, in plain words. Sources: io_setup(2), the sysctls fs.aio-max-nr and
/// fs.aio-nr.
fn refused(source: io::Error, depth: u32) -> EngineError {
    let sysctl = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/{name}"));
        text.map_or("unknown".to_owned(), |text| text.trim().to_owned())
    };
    let reason = match source.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no AIO, or a seccomp filter hides it".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "it is forbidden here, as by a container's seccomp filter".to_owned()
        }
        Some(libc::EAGAIN) => format!(
            "{depth} requests more would exceed the system's limit \
             (sysctl fs.aio-max-nr = {}, in use {})",
            sysctl("aio-max-nr"),
            sysctl("aio-nr"),
        ),
        Some(libc::ENOMEM) => "no memory for the ring".to_owned(),
        Some(libc::EMFILE | libc::ENFILE) => "too many open files".to_owned(),
        _ => format!("io_setup: {source}"),
    };
    EngineError::Refused {
        engine: "libaio",
        reason,
        source,
    }
}
