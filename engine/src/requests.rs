//! Requests of the kernel through a ring: a driver hands a program requests by completing commands
//! that the program has made before (IORING_OP_URING_CMD of io_uring_enter(2)), and gets its
//! answer with the command that offers the same place again.
//!
//! ```text
//!   offer ---> kernel: the place is free ---> completion: a request lies in it ---> next
//!     ^                                                                              |
//!     +------- the answer lies in it, and it is free again -----------<--------------+
//! ```
//!
//! A place is a head of a fixed size and memory for data. While the kernel has a place nothing else
//! can touch it; while the program has it, its memory can be taken out, filled by whatever fills
//! memory, and given back. The driver remembers where head and memory lie, so it has to be the same
//! memory.
//!
//! The ring is also what its thread sleeps on: descriptors that stay are watched, others (engines)
//! are lent for one wait. It belongs to the thread that has made it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use ugeom_machine::buffer::{Buffer, IoMemory, Segment};

use crate::choice::EngineError;
use crate::completions::each_completion;

/// The size of a command's own part, bytes.
pub const COMMAND_BYTES: usize = 80;

/// Room in the submission ring beside the places: polls.
const POLLS: u32 = 64;

/// Where the number of pieces stands in a submission entry (`len` of `struct io_uring_sqe`).
const LENGTH_AT: usize = 24;

/// The meaning of a completion: the upper half of its word. The lower half says which.
const PLACE: u64 = 0;
const WATCHED: u64 = 1 << 32;
const LENT: u64 = 2 << 32;
const REMOVAL: u64 = 3 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The program has it.
    Ours,
    /// The kernel has it.
    Kernels,
    /// The kernel has given it back for good.
    Gone,
}

struct RequestSlot {
    /// `HEAD` bytes of what comes before the memory, as a header.
    head: Buffer,
    memory: Option<Buffer>,
    /// Head and memory, as the driver knows them.
    pieces: Box<[Segment; 2]>,
    state: Owner,
}

/// A ring of places for requests, each with a head of `HEAD` bytes. See the head of this file.
pub struct RequestRing<const HEAD: usize> {
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    driver: Arc<OwnedFd>,
    places: Vec<RequestSlot>,
    arrived: VecDeque<u32>,
    watched: Vec<Arc<OwnedFd>>,
    /// Watched descriptors whose polls have to be made again.
    unwatched: Vec<u32>,
    /// Numbers of polls for lent descriptors, each used once.
    lent: u32,
    /// The driver's refusal of a place, if it came first.
    refusal: Option<io::Error>,
}

impl<const HEAD: usize> RequestRing<HEAD> {
    /// A ring of `places` for the requests of `driver`, with memory of `memory_bytes` each. All
    /// places are the program's at first.
    ///
    /// # Errors
    /// When the kernel has no io_uring, does not let us use it, or is older than Linux 6.1.
    pub fn open(
        driver: Arc<OwnedFd>,
        places: u32,
        memory_bytes: usize,
    ) -> Result<Self, EngineError> {
        let refused = |source: io::Error| EngineError::Refused {
            engine: "io_uring",
            reason: ugeom_machine::uring::why_refused(&source),
            source,
        };
        let ring = IoUring::<squeue::Entry128, cqueue::Entry>::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .build((places + POLLS).next_power_of_two())
            .map_err(refused)?;
        let places = (0..places).map(|_| {
            let head = Buffer::new(HEAD);
            let memory = Buffer::new(memory_bytes);
            let pieces = Box::new([head.segments()[0], memory.segments()[0]]);
            RequestSlot {
                head,
                memory: Some(memory),
                pieces,
                state: Owner::Ours,
            }
        });
        Ok(Self {
            ring,
            driver,
            places: places.collect(),
            arrived: VecDeque::new(),
            watched: Vec::new(),
            unwatched: Vec::new(),
            lent: 0,
            refusal: None,
        })
    }

    /// Lets every wait end when something arrives at a descriptor: for eventfds, which need not be
    /// read.
    pub fn watch(&mut self, descriptor: Arc<OwnedFd>) {
        self.unwatched.push(self.watched.len() as u32);
        self.watched.push(descriptor);
    }

    /// The head of a place that is the program's.
    #[inline]
    pub fn head(&self, place: u32) -> Option<&[u8; HEAD]> {
        let place = self.places.get(place as usize)?;
        let is_ours = place.state == Owner::Ours;
        is_ours.then(|| place.head.first_chunk()).flatten()
    }

    /// The same, to be changed.
    #[inline]
    pub fn head_mut(&mut self, place: u32) -> Option<&mut [u8; HEAD]> {
        let place = self.places.get_mut(place as usize)?;
        let is_ours = place.state == Owner::Ours;
        is_ours.then(|| place.head.first_chunk_mut()).flatten()
    }

    /// Takes the memory of a place that is the program's; `None` when it has been taken.
    #[inline]
    pub fn take(&mut self, place: u32) -> Option<Buffer> {
        let place = self.places.get_mut(place as usize)?;
        if place.state != Owner::Ours {
            return None;
        }
        place.memory.take()
    }

    /// Gives memory back to its place. Other memory than the place's own comes back.
    ///
    /// # Errors
    /// The memory is not the place's own.
    #[inline]
    pub fn give(&mut self, place: u32, memory: Buffer) -> Result<(), Buffer> {
        match self.places.get_mut(place as usize) {
            Some(place) if memory.segments()[..] == place.pieces[1..] => {
                place.memory = Some(memory);
                Ok(())
            }
            _ => Err(memory),
        }
    }

    /// The memory of a place that is the program's, while it has not been taken.
    #[inline]
    pub fn memory_mut(&mut self, place: u32) -> Option<&mut [u8]> {
        let place = self.places.get_mut(place as usize)?;
        if place.state != Owner::Ours {
            return None;
        }
        place.memory.as_deref_mut()
    }

    /// Offers a place to the driver, with the answer that lies in it if there is one. The kernel
    /// learns of it with the next [`RequestRing::wait`].
    ///
    /// # Errors
    /// EINVAL for a place that is not the program's or that lacks its memory; what io_uring says
    /// when no more commands can be handed over.
    #[inline]
    pub fn offer(
        &mut self,
        place: u32,
        operation: u32,
        command: [u8; COMMAND_BYTES],
    ) -> io::Result<()> {
        let index = place as usize;
        let Some(place) = self.places.get_mut(index) else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        if place.state != Owner::Ours || place.memory.is_none() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let pieces = place.pieces.as_ptr();
        let mut entry = opcode::UringCmd80::new(types::Fd(self.driver.as_raw_fd()), operation)
            .cmd(command)
            .addr(Some(pieces.expose_provenance() as u64))
            .build()
            .user_data(PLACE | index as u64);
        // SAFETY: the entry is laid out as `struct io_uring_sqe` and 64 more bytes, which have no
        // invalid values; these four are its `len`.
        unsafe {
            let length = (&raw mut entry).cast::<u8>().add(LENGTH_AT).cast::<u32>();
            length.write_unaligned(2);
        }
        self.push(&entry)?;
        self.places[index].state = Owner::Kernels;
        Ok(())
    }

    fn push(&mut self, entry: &squeue::Entry128) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.enter(0, Some(Duration::ZERO))?;
        }
        // SAFETY: a command points to the pieces of its place, to its head and to its memory. The
        // first lives in a box and the others in buffers, all owned by the place, which hands out
        // none of them while the kernel has it; if the ring ends before, they are not freed (see
        // `drop`), and a ring that is forgotten keeps them for ever. Polls point to nothing.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))
    }

    /// Hands over the offered memory, and sleeps until a request is there, a watched or lent
    /// descriptor is readable, or `timeout` is over.
    ///
    /// # Errors
    /// When the system cannot be asked any more (ENOMEM).
    pub fn wait(&mut self, also: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
        while let Some(index) = self.unwatched.pop() {
            let descriptor = self.watched[index as usize].as_raw_fd();
            let word = WATCHED | u64::from(index);
            self.poll(descriptor, true, word)?;
        }
        let first = self.lent;
        for descriptor in also {
            let word = LENT | u64::from(self.lent);
            self.lent = self.lent.wrapping_add(1);
            self.poll(descriptor.as_raw_fd(), false, word)?;
        }
        let wanted = usize::from(self.arrived.is_empty());
        self.enter(wanted, timeout)?;
        self.collect();
        for number in 0..also.len() as u32 {
            // One that has reported is not found any more, which is as good.
            let word = LENT | u64::from(first.wrapping_add(number));
            let removal = opcode::PollRemove::new(word).build().user_data(REMOVAL);
            self.push(&removal.into())?;
        }
        Ok(())
    }

    fn poll(&mut self, descriptor: i32, stays: bool, word: u64) -> io::Result<()> {
        let poll = opcode::PollAdd::new(types::Fd(descriptor), libc::POLLIN as u32);
        self.push(&poll.multi(stays).build().user_data(word).into())
    }

    #[inline]
    fn enter(&mut self, wanted: usize, timeout: Option<Duration>) -> io::Result<()> {
        let entered = match timeout {
            None => self.ring.submitter().submit_and_wait(wanted),
            Some(timeout) => {
                let timespec = types::Timespec::from(timeout);
                let arguments = types::SubmitArgs::new().timespec(&timespec);
                self.ring.submitter().submit_with_args(wanted, &arguments)
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    #[inline]
    fn collect(&mut self) {
        each_completion(&mut self.ring, |entry| {
            let index = entry.user_data() as u32;
            match entry.user_data() & !u64::from(u32::MAX) {
                PLACE => {
                    let place = &mut self.places[index as usize];
                    if entry.result() == 0 {
                        place.state = Owner::Ours;
                        self.arrived.push_back(index);
                    } else {
                        place.state = Owner::Gone;
                        let error = io::Error::from_raw_os_error(-entry.result());
                        self.refusal.get_or_insert(error);
                    }
                }
                WATCHED if !cqueue::more(entry.flags()) => self.unwatched.push(index),
                _ => {}
            }
        });
    }

    /// The next place with a request.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "there is more after None")]
    pub fn next(&mut self) -> Option<u32> {
        self.arrived.pop_front()
    }

    /// How many places are the program's: requests that wait for their answers.
    pub fn ours(&self) -> usize {
        let ours = |place: &&RequestSlot| place.state == Owner::Ours;
        self.places.iter().filter(ours).count()
    }

    /// True when the driver has given back all places for good.
    pub fn is_over(&self) -> bool {
        self.places.iter().all(|place| place.state == Owner::Gone)
    }

    /// Why the driver has given back the first place that it gave back for good.
    pub fn refusal(&self) -> Option<&io::Error> {
        self.refusal.as_ref()
    }

    /// The descriptor of the driver, as `/dev/fuse`.
    pub fn driver(&self) -> BorrowedFd<'_> {
        self.driver.as_fd()
    }
}

impl<const HEAD: usize> Drop for RequestRing<HEAD> {
    fn drop(&mut self) {
        for place in self.places.drain(..) {
            if place.state == Owner::Kernels {
                // The kernel takes commands back some time after the ring is closed; what they
                // point to must not become something else until then, and no event says when.
                std::mem::forget(place);
            }
        }
    }
}
