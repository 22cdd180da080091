//! [`AdaptivePolling`]: how long a thread polls before it sleeps.
//!
//! A thread that sleeps on an idle core is woken tens of microseconds after work arrives; one that
//! polls sees it at once, and takes a core for that. So a thread polls only while work has lately
//! arrived soon after the wait began, and for a bounded time.

/// The recent waits of one thread, and the time that it may poll.
#[derive(Clone, Copy, Debug)]
pub struct AdaptivePolling {
    longest_ns: u64,
    /// A moving average of how long it took until something came, capped.
    typical_ns: u64,
    /// Since when nothing has come.
    since_ns: Option<u64>,
}

impl AdaptivePolling {
    /// Polls for `longest_ns` at most, in nanoseconds; for 0 never. At first it does not poll, so
    /// that a thread with a request an hour sleeps.
    pub const fn new(longest_ns: u64) -> Self {
        Self {
            longest_ns,
            typical_ns: longest_ns.saturating_mul(2),
            since_ns: None,
        }
    }

    /// There is nothing to do at `now_ns`. May be called again and again during one wait.
    #[inline]
    pub fn nothing(&mut self, now_ns: u64) {
        self.since_ns.get_or_insert(now_ns);
    }

    /// Work has arrived, at `now_ns`.
    #[inline]
    pub fn came(&mut self, now_ns: u64) {
        let Some(since_ns) = self.since_ns.take() else { return };
        // One long wait is forgotten after a few short ones.
        let waited_ns = now_ns
            .saturating_sub(since_ns)
            .min(self.longest_ns.saturating_mul(4));
        self.typical_ns = self.typical_ns - self.typical_ns / 4 + waited_ns / 4;
    }

    /// How long to poll now, in nanoseconds.
    #[inline]
    pub fn poll_ns(&self) -> u64 {
        if self.typical_ns <= self.longest_ns {
            self.longest_ns
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_polls_while_work_arrives_soon_and_sleeps_otherwise() {
        let mut polling = AdaptivePolling::new(50_000);
        assert_eq!(polling.poll_ns(), 0);
        let mut now_ns = 1_000_000;
        let mut wait = |polling: &mut AdaptivePolling, ns: u64| {
            polling.nothing(now_ns);
            now_ns += ns;
            polling.nothing(now_ns);
            polling.came(now_ns);
            polling.poll_ns()
        };
        for _ in 0..8 {
            wait(&mut polling, 30_000);
        }
        assert_eq!(wait(&mut polling, 30_000), 50_000);
        // After a pause of a second it does not poll, until waits are short again.
        assert_eq!(wait(&mut polling, 1_000_000_000), 0);
        let mut needed = 0;
        while wait(&mut polling, 5_000) == 0 {
            needed += 1;
        }
        assert!((1..10).contains(&needed), "{needed}");
        // Messages that were not waited for teach nothing.
        polling.came(u64::MAX);
        assert_eq!(polling.poll_ns(), 50_000);
    }

    #[test]
    fn without_a_time_it_never_polls() {
        let mut polling = AdaptivePolling::new(0);
        for now_ns in 0..100 {
            polling.nothing(now_ns);
            polling.came(now_ns);
        }
        assert_eq!(polling.poll_ns(), 0);
    }
}
