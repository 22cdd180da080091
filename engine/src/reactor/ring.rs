//! Waiting with polls in a ring of io_uring (io_uring_enter(2), IORING_OP_POLL_ADD).
//!
//! A poll of a source is made once and made again after it has reported, so that a persistent
//! condition is reported again, as with poll(2). It joins the other polls that wait in the
//! submission ring, and all of them enter the kernel with the call that sleeps. An edge is a poll
//! that stays.
//!
//! Each poll has a number that is used once; what a poll reports that is not the source's newest
//! is ignored. So nothing has to wait for the end of a poll that was removed.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::{EventSink, Interest, Source, current};
use crate::choice::EngineError;
use crate::completions::each_completion;
use crate::uring;

/// Entries of the submission ring: polls that can wait to be handed to the kernel.
const ENTRIES: u32 = 256;

/// Marks the completion of a request to take a poll away. No poll has this number.
const REMOVAL: u64 = u64::MAX;

/// The newest poll of a slot.
#[derive(Clone, Copy)]
struct Armed {
    source: Source,
    /// Tells the polls of all slots and times apart; 32 bits, so that a slot's poll would have to
    /// outlive four thousand million others to be mistaken.
    number: u32,
    /// The kernel has it, or it is on its way there.
    alive: bool,
}

pub(super) struct Ring {
    ring: IoUring,
    armed: Vec<Option<Armed>>,
    numbers: u32,
    /// Slots whose polls have reported and have to be made again.
    again: Vec<Source>,
}

impl Ring {
    pub fn open() -> Result<Ring, EngineError> {
        Ok(Ring {
            ring: uring::poll_ring(ENTRIES)?,
            armed: Vec::new(),
            numbers: 0,
            again: Vec::new(),
        })
    }

    pub fn arm(&mut self, source: Source, fd: BorrowedFd<'_>, after: Interest) -> io::Result<()> {
        let slot = source.index as usize;
        if self.armed.len() <= slot {
            self.armed.resize(slot + 1, None);
        }
        if let Some(old) = self.armed[slot].take().filter(|old| old.alive) {
            let removal = opcode::PollRemove::new(user_data(slot, old.number));
            self.push(&removal.build().user_data(REMOVAL))?;
        }
        if after.is_none() {
            // The descriptor may be closed next; the other side should learn of it.
            return self.submit();
        }
        self.numbers = self.numbers.wrapping_add(1);
        let number = self.numbers;
        let poll = opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), flags(after)).multi(after.edge);
        self.push(&poll.build().user_data(user_data(slot, number)))?;
        self.armed[slot] = Some(Armed {
            source,
            number,
            alive: true,
        });
        Ok(())
    }

    /// Forgets a slot, whose source is gone.
    pub fn forget(&mut self, index: u32) {
        if let Some(armed) = self.armed.get_mut(index as usize) {
            *armed = None;
        }
    }

    pub fn wait(&mut self, timeout: Option<Duration>, mut found: EventSink<'_>) -> io::Result<()> {
        while let Some(source) = self.again.pop() {
            let dead = |armed: &Armed| armed.source == source && !armed.alive;
            let slot = self.armed.get(source.index as usize).copied().flatten();
            if let Some((interest, fd)) = current(found.watched, source)
                && slot.as_ref().is_some_and(dead)
            {
                self.arm(source, fd, interest)?;
            }
        }
        let wanted = usize::from(timeout != Some(Duration::ZERO));
        let timespec = timeout.map(types::Timespec::from);
        let mut arguments = types::SubmitArgs::new();
        if let Some(timespec) = &timespec {
            arguments = arguments.timespec(timespec);
        }
        match self.ring.submitter().submit_with_args(wanted, &arguments) {
            Ok(_) => {}
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => {}
                _ => return Err(error),
            },
        }
        self.collect(&mut found);
        Ok(())
    }

    /// Hands waiting polls to the kernel.
    pub fn submit(&mut self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            // The completion ring is full, or memory is short: the next wait tries again.
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring keeps its descriptor open for as long as the borrow of it lasts.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    fn collect(&mut self, found: &mut EventSink<'_>) {
        each_completion(&mut self.ring, |entry| {
            if entry.user_data() == REMOVAL {
                return;
            }
            let (slot, number) = (entry.user_data() as u32, (entry.user_data() >> 32) as u32);
            let armed = self.armed.get_mut(slot as usize).and_then(Option::as_mut);
            let Some(armed) = armed.filter(|armed| armed.number == number) else { return };
            if !cqueue::more(entry.flags()) {
                armed.alive = false;
                self.again.push(armed.source);
            }
            // A failed poll means that the next call will fail, too.
            let bits = u32::try_from(entry.result()).unwrap_or(libc::POLLERR as u32);
            let has = |wanted: libc::c_short| bits & wanted as u32 != 0;
            let broken = has(libc::POLLERR | libc::POLLHUP | libc::POLLNVAL);
            let readable = broken || has(libc::POLLIN | libc::POLLRDHUP);
            found.ready(armed.source, readable, broken || has(libc::POLLOUT));
        });
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.submit()?;
        }
        // SAFETY: a poll and its removal point to no memory of ours.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))
    }
}

fn flags(interest: Interest) -> u32 {
    let mut flags = 0;
    if interest.read {
        flags |= libc::POLLIN | libc::POLLRDHUP;
    }
    if interest.write {
        flags |= libc::POLLOUT;
    }
    flags as u32
}

fn user_data(slot: usize, number: u32) -> u64 {
    u64::from(number) << 32 | slot as u64
}
