//! Threads of which all get to work, or none: where one cannot be started (RLIMIT_NPROC), the
//! others must not wait for it at a barrier.

use crate::HarnessError;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use ugeom_machine::mutex::{Condvar, Mutex};

/// Threads that are at work.
pub struct Crew<'scope, R>(Vec<ScopedJoinHandle<'scope, Option<R>>>);

/// Starts a thread for each item, which does its `work` once all of them have been started.
///
/// # Errors
/// A thread could not be started. None has begun its work.
pub fn start<'scope, T: Send + 'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Copy + Send + 'scope,
) -> io::Result<Crew<'scope, R>> {
    let gate = Arc::new(Gate::default());
    let mut started = Vec::new();
    for item in items {
        let own = Arc::clone(&gate);
        let life = move || own.lets_in().then(|| work(item));
        match Builder::new().spawn_scoped(scope, life) {
            Ok(thread) => started.push(thread),
            Err(error) => {
                gate.decide(false);
                return Err(error);
            }
        }
    }
    gate.decide(true);
    Ok(Crew(started))
}

impl<R> Crew<'_, R> {
    /// Waits for all of them, in the order of their items; none for one that panicked.
    pub fn join(self) -> Vec<Option<R>> {
        let ends = self.0.into_iter().map(ScopedJoinHandle::join);
        ends.map(|end| end.ok().flatten()).collect()
    }
}

/// That the threads of a case could not be started.
pub fn not_started(case: &str) -> impl FnOnce(io::Error) -> HarnessError {
    let case = case.to_owned();
    move |error| HarnessError::Thread {
        case,
        problem: format!("a thread could not be started: {error}"),
    }
}

/// Where threads wait until it is known whether they are to work.
#[derive(Default)]
struct Gate {
    decision: Mutex<Option<bool>>,
    decided: Condvar,
}

impl Gate {
    fn decide(&self, lets_in: bool) {
        let mut decision = self.decision.lock();
        *decision = Some(lets_in);
        self.decided.notify_all();
    }

    fn lets_in(&self) -> bool {
        let decision = self.decision.lock();
        self.decided
            .wait_while(decision, |now| now.is_none())
            .is_some_and(|lets_in| lets_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_work_and_hand_back_their_results_in_order() {
        let at_work = AtomicUsize::new(0);
        let work = |number: usize| {
            at_work.fetch_add(1, Ordering::Relaxed);
            assert_ne!(number, 2, "one of them panics");
            number * 10
        };
        let results = std::thread::scope(|scope| start(scope, 0..4, work).unwrap().join());
        assert_eq!(results, [Some(0), Some(10), None, Some(30)]);
        assert_eq!(at_work.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn who_is_sent_away_does_not_work() {
        let gate = Gate::default();
        let let_in = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.lets_in());
            gate.decide(false);
            waiting.join().unwrap()
        });
        assert!(!let_in);
    }
}
