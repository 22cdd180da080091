//! How long a server may be silent before its connection is given up.
//!
//! ```text
//!   timeout  |-------------|                                     |-------------| ...
//!   halves                  |------|---|--|-|-|-|-|-|-|-|-|-|-|-|
//!                           ^ requests have failed               ^ [`FULL_EACH`] timeouts later
//! ```
//!
//! A server whose silence has made requests fail is likely to be silent for the next ones, too, and
//! an application may send thousands, one after the other. The next try therefore takes a quarter
//! of the timeout, and each one after it half as long as the one before, so that all together take
//! half a timeout. After one of the shortest,
//! requests fail at once for a while. A whole timeout comes back with the first answer, and from
//! time to time for servers that are only slow.

use std::time::Duration;
use ugeom_machine::mutex::Mutex;

/// The shortest try, ns: far longer than a disk that works takes to answer.
const SHORTEST_NS: u64 = 100_000_000;

/// The shortest try is at most this part of the timeout.
const SHORTEST_PART: u64 = 16;

/// Timeouts from one whole try to the next, at least.
const FULL_EACH: u64 = 8;

/// The longest pause between two of the shortest tries, ns. Requests that come in it fail at once.
const REST_NS_MAX: u64 = 1_000_000_000;

/// The timeout that all connections to a server share.
pub(super) struct AnswerTimeout {
    timeout_ns: u64,
    state: Mutex<LearnedTimeout>,
}

struct LearnedTimeout {
    ns: u64,
    /// When the last try ended without an answer.
    ended_ns: u64,
    /// When the last whole one did.
    full_ended_ns: u64,
}

impl AnswerTimeout {
    pub fn new(timeout: Duration) -> Self {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let state = LearnedTimeout {
            ns: timeout_ns,
            ended_ns: 0,
            full_ended_ns: 0,
        };
        Self {
            timeout_ns,
            state: Mutex::new(state),
        }
    }

    /// How long a server that owes answers may be silent, ns.
    pub fn at_ns(&self, now_ns: u64) -> u64 {
        let mut state = self.state.lock();
        let since_full_ns = now_ns.saturating_sub(state.full_ended_ns);
        if since_full_ns >= self.timeout_ns.saturating_mul(FULL_EACH) {
            state.ns = self.timeout_ns;
        }
        state.ns
    }

    /// Requests have failed because the server was silent for that long.
    pub fn ended(&self, now_ns: u64) {
        let mut state = self.state.lock();
        let is_shortened = state.ns < self.timeout_ns;
        if is_shortened && now_ns.saturating_sub(state.ended_ns) < state.ns {
            // Another connection timed out at the same time: both count once.
            return;
        }
        if state.ns == self.timeout_ns {
            state.full_ended_ns = now_ns;
            state.ns /= 2;
        }
        state.ns = (state.ns / 2).max(self.shortest_ns());
        state.ended_ns = now_ns;
    }

    fn shortest_ns(&self) -> u64 {
        SHORTEST_NS.min(self.timeout_ns / SHORTEST_PART)
    }

    /// All tries down to the shortest have ended without an answer, the last of them just now: no
    /// request is worth another one yet.
    pub fn rests(&self, now_ns: u64) -> bool {
        let state = self.state.lock();
        let rest_ns = REST_NS_MAX.min(self.timeout_ns);
        state.ns == self.shortest_ns() && now_ns.saturating_sub(state.ended_ns) < rest_ns
    }

    /// Called when the server answers: the next request gets the whole timeout.
    pub fn restore(&self) {
        self.state.lock().ns = self.timeout_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_thousand_requests_to_a_silent_server_take_few_timeouts() {
        let answer_timeout = AnswerTimeout::new(Duration::from_secs(30));
        let (begin_ns, mut now_ns) = (SECOND_NS * 1000, SECOND_NS * 1000);
        for _ in 0..1000 {
            now_ns += answer_timeout.at_ns(now_ns);
            answer_timeout.ended(now_ns);
        }
        let took_ns = now_ns - begin_ns;
        assert!(took_ns < 180 * SECOND_NS, "{took_ns}");
        answer_timeout.restore();
        assert_eq!(answer_timeout.at_ns(now_ns), 30 * SECOND_NS);
    }

    #[test]
    fn after_the_shortest_try_requests_fail_at_once_for_a_second() {
        let answer_timeout = AnswerTimeout::new(Duration::from_secs(30));
        let mut now_ns = SECOND_NS * 1000;
        let mut tries = 0;
        while !answer_timeout.rests(now_ns) {
            now_ns += answer_timeout.at_ns(now_ns);
            answer_timeout.ended(now_ns);
            tries += 1;
        }
        assert_eq!(tries, 8);
        assert!(answer_timeout.rests(now_ns + SECOND_NS - 1));
        assert!(!answer_timeout.rests(now_ns + SECOND_NS));
        answer_timeout.restore();
        assert!(!answer_timeout.rests(now_ns));
    }

    #[test]
    fn one_silence_over_many_connections_counts_once() {
        let answer_timeout = AnswerTimeout::new(Duration::from_secs(30));
        let now_ns = SECOND_NS * 1000;
        for connection in 0..64 {
            answer_timeout.ended(now_ns + connection);
        }
        assert_eq!(answer_timeout.at_ns(now_ns), 7500 * SECOND_NS / 1000);
    }

    #[test]
    fn a_slow_server_is_waited_for_again_after_a_while() {
        let answer_timeout = AnswerTimeout::new(Duration::from_secs(30));
        let mut now_ns = SECOND_NS * 1000;
        let answers_after_ns = 5 * SECOND_NS;
        let mut tries_ns = Vec::new();
        while tries_ns.len() < 4 || tries_ns.last().is_some_and(|ns| *ns < answers_after_ns) {
            let ns = answer_timeout.at_ns(now_ns);
            now_ns += ns;
            answer_timeout.ended(now_ns);
            tries_ns.push(ns);
        }
        let seconds: Vec<u64> = tries_ns.iter().take(4).map(|ns| ns / SECOND_NS).collect();
        assert_eq!(seconds, [30, 7, 3, 1]);
        assert_eq!(tries_ns.last(), Some(&(30 * SECOND_NS)));
        assert!(now_ns < 1400 * SECOND_NS, "{now_ns}");
    }
}
