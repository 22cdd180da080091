//! Requests whose asker has got a signal.
//!
//! The kernel says so of every signal, and goes on to wait for the answer, also when the asker was
//! killed: a reader of a slow device could then not die. So the requests of a killed thread
//! are cancelled, as far as layers can do that, and answered with EINTR. All others are left alone:
//! programs do not expect that reading a disk is interrupted.
//!
//! Any thread may read the kernel's message, and only the one that serves the request can cancel
//! it. All are told, and each looks for it among its own for a while.

use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ugeom_machine::clock;
use ugeom_machine::mutex::Mutex;

/// How often it is looked whether the asker was killed.
const LOOK: Duration = Duration::from_millis(20);

/// How long a request that is not found may be on its way to its thread, ns.
const ON_ITS_WAY_NS: u64 = 1_000_000_000;

/// The threads that serve.
#[derive(Default)]
pub(super) struct Interrupts(Mutex<Vec<Arc<Listener>>>);

/// The requests of a thread to stop waiting.
struct Listener {
    any: AtomicBool,
    uniques: Mutex<Vec<u64>>,
    wake: OwnedFd,
}

impl Interrupts {
    /// The interrupts for the calling thread. Writing to `wake` wakes it.
    pub fn listen(&self, wake: OwnedFd) -> Interrupted {
        let listener = Arc::new(Listener {
            any: AtomicBool::new(false),
            uniques: Mutex::default(),
            wake,
        });
        self.0.lock().push(Arc::clone(&listener));
        Interrupted {
            listener,
            known: Vec::new(),
            next_look_ns: 0,
        }
    }

    /// Tells all threads that the asker of a request has got a signal.
    pub fn tell(&self, unique: u64) {
        let all = self.0.lock();
        for listener in all.iter() {
            listener.uniques.lock().push(unique);
            listener.any.store(true, Ordering::Release);
            // It fails only when the counter is full: then it has been set and not been seen.
            while rustix::io::write(&listener.wake, &1_u64.to_ne_bytes()) == Err(Errno::INTR) {}
        }
    }
}

/// The state of a request that was found.
pub(super) enum Found {
    /// No request of that number is in flight here.
    Unknown,
    /// Here, asked for by this thread of some process (0: unknown).
    By(u32),
}

/// The requests of a thread that may have to be cancelled, and since when.
pub(super) struct Interrupted {
    listener: Arc<Listener>,
    known: Vec<(u64, u64)>,
    next_look_ns: u64,
}

impl Interrupted {
    /// How long the thread may sleep.
    #[inline]
    pub fn timeout(&self) -> Option<Duration> {
        (!self.known.is_empty()).then_some(LOOK)
    }

    /// The requests that are to be cancelled now; `find` looks for one.
    #[inline]
    pub fn killed(&mut self, find: impl Fn(u64) -> Found) -> Vec<u64> {
        if self.known.is_empty() && !self.listener.any.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.look(find)
    }

    #[cold]
    fn look(&mut self, find: impl Fn(u64) -> Found) -> Vec<u64> {
        let now_ns = clock::now_ns();
        if self.listener.any.swap(false, Ordering::AcqRel) {
            let told = std::mem::take(&mut *self.listener.uniques.lock());
            self.known.extend(told.into_iter().map(|it| (it, now_ns)));
            self.next_look_ns = now_ns;
        }
        let mut killed = Vec::new();
        if now_ns < self.next_look_ns {
            return killed;
        }
        self.next_look_ns = now_ns + LOOK.as_nanos() as u64;
        self.known.retain(|&(unique, since_ns)| match find(unique) {
            Found::Unknown => now_ns < since_ns + ON_ITS_WAY_NS,
            Found::By(thread) if is_killed(thread) => {
                killed.push(unique);
                false
            }
            Found::By(_) => true,
        });
        killed
    }
}

/// Whether a thread is being killed, or is gone (proc(5): SIGKILL is pending for each thread of a
/// process that a signal ends).
fn is_killed(thread: u32) -> bool {
    thread != 0
        && std::fs::read_to_string(format!("/proc/{thread}/status"))
            .map_or_else(|error| is_gone(&error), |text| has_kill(&text))
}

fn is_gone(error: &std::io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOENT | Errno::SRCH))
}

fn has_kill(status: &str) -> bool {
    let line = status.lines().find_map(|it| it.strip_prefix("SigPnd:"));
    let pending = line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    pending.is_some_and(|pending| pending & 1 << 8 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_killed_threads_are_killed() {
        assert!(has_kill(
            "Name:\tdd\nSigPnd:\t0000000000000100\nShdPnd:\t0\n"
        ));
        assert!(has_kill("SigPnd:\t0000000000004100\n"));
        assert!(!has_kill(
            "SigPnd:\t0000000000004000\nShdPnd:\t0000000000000100\n"
        ));
        assert!(!has_kill("Name:\tdd\n"));
        assert!(!is_killed(std::process::id()));
        assert!(!is_killed(0));
        // Beyond the greatest number that a thread can have (proc(5), pid_max).
        assert!(is_killed(1 << 30));
    }
}
