//! Waiting with epoll(7).
//!
//! A source without interest is taken out of the set altogether: epoll reports hang-ups whether
//! they were asked for or not, which would wake a thread again and again that does not want to
//! read yet.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;

use super::{EventSink, Interest, Source, timespec};
use crate::choice::EngineError;

/// Events taken from the kernel at a time.
const BATCH: usize = 64;

pub(super) struct Epoll {
    set: OwnedFd,
}

impl Epoll {
    pub fn open() -> Result<Epoll, EngineError> {
        match epoll::create(epoll::CreateFlags::CLOEXEC) {
            Ok(set) => Ok(Epoll { set }),
            Err(errno) => Err(EngineError::Refused {
                engine: "epoll",
                reason: format!("epoll_create: {errno}"),
                source: errno.into(),
            }),
        }
    }

    pub fn arm(
        &mut self,
        source: Source,
        fd: BorrowedFd<'_>,
        before: Interest,
        after: Interest,
    ) -> io::Result<()> {
        let data = epoll::EventData::new_u64(pack(source));
        let done = match (before.is_none(), after.is_none()) {
            (true, true) => Ok(()),
            (true, false) => epoll::add(&self.set, fd, data, flags(after)),
            (false, true) => epoll::delete(&self.set, fd),
            (false, false) => epoll::modify(&self.set, fd, data, flags(after)),
        };
        done.map_err(io::Error::from)
    }

    pub fn wait(&mut self, timeout: Option<Duration>, mut found: EventSink<'_>) -> io::Result<()> {
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; BATCH];
        let timeout = timeout.map(timespec);
        let events = match epoll::wait(&self.set, &mut room, timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        for event in events.iter() {
            let flags = event.flags;
            let broken = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            let closing = flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::RDHUP);
            let room = flags.contains(epoll::EventFlags::OUT);
            found.ready(unpack(event.data.u64()), broken || closing, broken || room);
        }
        Ok(())
    }

    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(
        epoll::EventFlags::IN | epoll::EventFlags::RDHUP,
        interest.read,
    );
    flags.set(epoll::EventFlags::OUT, interest.write);
    flags.set(epoll::EventFlags::ET, interest.edge);
    flags
}

fn pack(source: Source) -> u64 {
    u64::from(source.serial) << 32 | u64::from(source.index)
}

fn unpack(data: u64) -> Source {
    Source {
        index: data as u32,
        serial: (data >> 32) as u32,
    }
}
