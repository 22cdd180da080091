//! FLUSHes that failed, and the writes in flight beside them.
//!
//! The kernel, or a server, reports lost writes only once (`lib/errseq.c` of Linux). A write in
//! flight at that moment may be among them and be acknowledged later, without another report:
//!
//! ```text
//!   write  |-----------------|         acknowledged after the report
//!   FLUSH      |-----| failed          its sender knows that older writes are lost
//!   FLUSH                      |----|  fails, too: it should have covered the write
//! ```
//!
//! So a write keeps how many FLUSHes had failed when it was submitted. If that has changed when it
//! is acknowledged, it counts as lost.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_machine::mutex::Mutex;
use ugeom_stack::Losses;

/// The failed FLUSHes of one disk, over all threads and connections.
pub(crate) struct Failures {
    count: AtomicU64,
    losses: Arc<Losses>,
    /// The error of the FLUSH after such a write.
    why: &'static str,
    /// Held by a [`flush`](Failures::flush).
    flushing: Mutex<()>,
}

impl Failures {
    pub fn new(losses: &Arc<Losses>, why: &'static str) -> Self {
        Self {
            count: AtomicU64::new(0),
            losses: Arc::clone(losses),
            why,
            flushing: Mutex::default(),
        }
    }

    /// Where losses are recorded.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// How many there have been.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// A FLUSH has failed, or may have. It is counted before any request beside it is completed.
    pub fn failed(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Makes writes durable by `sync`, one call at a time: the kernel reports a loss to only one of
    /// two concurrent calls on the same open file.
    ///
    /// # Errors
    /// Those of `sync`, recorded as a loss before the next call begins.
    pub fn flush(
        &self,
        why: &'static str,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let _flushing = self.flushing.lock();
        sync().inspect_err(|_| {
            self.failed();
            self.losses.record(why);
        })
    }

    /// A write that need not be durable is going to be acknowledged; `before` is the count when
    /// it was submitted.
    pub fn wrote(&self, range: Range<u64>, before: u64) {
        if self.count() != before {
            self.losses.record_range(range, self.why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_flush_begins_after_the_failure_of_the_one_before_is_recorded() {
        let failures = Failures::new(&Arc::default(), "lost beside it");
        let failures = &failures;
        let (started, has_started) = mpsc::channel();
        let (overtake, is_overtaken) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let failed = failures.flush("lost", || {
                    started.send(()).expect("the other one waits");
                    let overtaken = is_overtaken.recv_timeout(Duration::from_millis(50));
                    assert!(overtaken.is_err(), "two at the same time");
                    Err(io::ErrorKind::Other.into())
                });
                assert!(failed.is_err());
            });
            has_started.recv().expect("one has started");
            let second = failures.flush("lost", || {
                // The first one may have waited long enough.
                let _ = overtake.send(());
                assert_eq!(failures.count(), 1);
                assert!(failures.losses().last() > 0);
                Ok(())
            });
            assert!(second.is_ok(), "the kernel reports a loss once");
        });
    }
}
