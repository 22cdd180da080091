//! Geoms with a state of each thread's own, as those have that use an I/O engine.

mod common;

use common::{plan, stack, user};
use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{
    Bio, Completions, Cx, Delta, Errno, Geom, LocalKey, Next, Request, StackKnobs, ThreadState,
};

/// Does what it is asked only when it is polled, and never wakes a thread.
struct Lazy(LocalKey);

struct Waiting {
    bios: Vec<(Bio, u64)>,
    silent: OwnedFd,
    _other_end: OwnedFd,
}

impl Geom for Lazy {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        let length = request.length();
        let (bio, next) = request.park();
        match cx.local::<Waiting>(self) {
            Ok(waiting) => waiting.bios.push((bio, length)),
            Err(errno) => bio.complete(Err(errno)),
        }
        next
    }

    fn thread_state(&self) -> Result<Box<dyn ThreadState>, Errno> {
        let (silent, other_end) = rustix::pipe::pipe()?;
        let bios = Vec::new();
        Ok(Box::new(Waiting {
            bios,
            silent,
            _other_end: other_end,
        }))
    }

    fn local_key(&self) -> Option<LocalKey> {
        Some(self.0)
    }
}

impl ThreadState for Waiting {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn poll(&mut self, completions: &mut Completions<'_>) {
        for (bio, length) in self.bios.drain(..) {
            completions.push(bio, Ok(length));
        }
    }

    fn in_flight(&self) -> usize {
        self.bios.len()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.silent.as_fd())
    }
}

/// Forwards when a moment has passed.
struct Late;

impl Geom for Late {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.delay(1)
    }

    fn resume(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.forward(0)
    }
}

#[test]
fn what_a_delayed_request_leaves_with_an_engine_is_started_before_the_thread_sleeps() {
    let stack = stack(StackKnobs::default());
    let bottom = plan("lazy0", 4096, Arc::new(Lazy(LocalKey::new())));
    let bottom = stack.create("LAZY", bottom, &[]).expect("a provider")[0];
    let top = stack.create("LATE", plan("late0", 4096, Arc::new(Late)), &[bottom]);
    let (opened, mut channel) = user(&stack, top.expect("a provider")[0], Delta::READ, 1);
    let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
    channel.submit(&opened, draft);
    // The delay of a nanosecond is over by now.
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert_eq!(channel.poll(), 1);
    assert_eq!(
        channel.finished().map(|finished| finished.result()),
        Some(Ok(512))
    );
}

/// Keeps each request until another thread completes it.
#[cfg(not(miri))]
struct Elsewhere(std::sync::mpsc::Sender<Bio>);

#[cfg(not(miri))]
impl Geom for Elsewhere {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        let (bio, next) = request.park();
        if let Err(std::sync::mpsc::SendError(bio)) = self.0.send(bio) {
            bio.complete(Err(Errno::IO));
        }
        next
    }
}

#[cfg(not(miri))]
#[test]
fn a_thread_that_sleeps_by_means_of_its_own_is_woken_by_a_post() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let stack = stack(StackKnobs::default());
    let plan = plan("elsewhere", 4096, Arc::new(Elsewhere(sender)));
    let provider = stack.create("ELSEWHERE", plan, &[]).expect("create")[0];
    let (opened, mut channel) = user(&stack, provider, Delta::READ, 1);
    let wake = channel.wake_fd().expect("a descriptor");
    let worker = std::thread::spawn(move || {
        for bio in receiver {
            let length = bio.length();
            bio.complete(Ok(length));
        }
    });
    for _ in 0..100 {
        let draft = channel.bio().expect("a bio").read(0, Buffer::new(512));
        channel.submit(&opened, draft);
        while channel.poll() == 0 {
            channel.sleep(None, |engines, timeout| {
                assert!(engines.is_empty(), "nothing is with an engine");
                let poll_in = rustix::event::PollFlags::IN;
                let mut fds = [rustix::event::PollFd::new(&wake, poll_in)];
                let zero = rustix::event::Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                };
                let at_once = timeout.map(|_| &zero);
                rustix::event::poll(&mut fds, at_once).expect("poll");
                if !fds[0].revents().is_empty() {
                    let _ = rustix::io::read(&wake, &mut [0; 8]);
                }
            });
        }
        let finished = channel.finished().expect("one");
        assert_eq!(finished.result(), Ok(512));
        channel.recycle(finished);
    }
    drop((channel, opened, stack));
    worker.join().expect("the worker");
}
