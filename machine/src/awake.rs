//! Keeping processors awake: a thread of the idle class on each, which runs only where nothing else
//! would.
//!
//! Source: sched(7), SCHED_IDLE.

use crate::call::done;
use crate::cpu;
use crate::own_thread::OwnThread;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads that spin until this is dropped.
pub struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<OwnThread>,
}

impl Awake {
    /// Keeps all processors awake on which this thread may run.
    ///
    /// # Errors
    /// When a thread cannot be started, pinned, or put into the idle class.
    pub fn all() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut awake = Self {
            stop,
            threads: Vec::new(),
        };
        for core in cpu::Affinity::current()?.cores() {
            let (stop, (ready, started)) = (awake.stop.clone(), std::sync::mpsc::channel());
            let spin = move || {
                let set = cpu::pin(&[core]).and_then(|_| idle_class());
                let failed = set.is_err();
                // The receiver waits below.
                let _ = ready.send(set);
                while !failed && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            awake.threads.push(OwnThread::start("awake", spin)?);
            started.recv().map_err(io::Error::other)??;
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Puts the calling thread into the idle class.
fn idle_class() -> io::Result<()> {
    // SAFETY: a sched_param of zeroes is a valid one, as other systems have more members.
    let parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    // The function of musl refuses, because POSIX means the process and Linux the thread.
    let number = libc::SYS_sched_setscheduler;
    // SAFETY: the pointer is to a value of ours; 0 is the calling thread.
    done(unsafe { libc::syscall(number, 0, libc::SCHED_IDLE, &raw const parameter) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no scheduling classes")]
    fn processors_are_busy_until_it_is_dropped() {
        let before = cpu::process_cpu_ns();
        let awake = Awake::all().unwrap();
        while cpu::process_cpu_ns() - before < 1_000_000 {
            std::thread::yield_now();
        }
        drop(awake);
    }
}
