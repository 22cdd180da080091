//! Geoms with a state of each thread's own, as those have that use an I/O engine.

mod common;

use common::{plan, stack};
use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{
    Bio, Completions, Cx, Delta, Errno, Geom, LocalKey, Next, Options, Request, ThreadState,
};

/// Does what it is asked only when it is polled, and never wakes anybody.
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
    let stack = stack(Options::default());
    let bottom = plan("lazy0", 4096, Arc::new(Lazy(LocalKey::new())));
    let bottom = stack.create("LAZY", bottom, &[]).expect("a provider")[0];
    let top = stack.create("LATE", plan("late0", 4096, Arc::new(Late)), &[bottom]);
    let opened = stack
        .open(top.expect("a provider")[0], Delta::READ)
        .expect("opened");
    let mut channel = stack.channel(1).expect("a channel");
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
