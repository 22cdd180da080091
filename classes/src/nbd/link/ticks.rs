//! The timer of a link: the timeouts of the server and of requests.

use super::{Link, OTHER_EXPORT, SILENT, Stage};
use crate::nbd::connect::CONNECT_NS;
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use std::time::Duration;

/// Silence in a handshake after which a server counts as one that admits no more clients, at most,
/// ns.
const HANDSHAKE_NS: u64 = 5_000_000_000;

impl Link {
    /// Ends a connection whose server is silent, and requests that have waited for `retry`.
    pub(super) fn tick(&mut self) {
        // The number of ticks does not matter; without any there is nothing to read.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        let period_ns = self.period().as_nanos() as u64;
        self.next_tick_ns = after(self.next_tick_ns, self.now_ns, period_ns);
        if !self.is_busy() {
            return self.set_timer(false);
        }
        if self.owes_nothing() {
            self.heard_ns = self.now_ns;
        }
        let silent_ns = self.now_ns.saturating_sub(self.heard_ns);
        let timeout_ns = self.together.answer_timeout.at_ns(self.now_ns);
        if matches!(self.stage, Stage::Shaking { .. }) {
            // It may wait in the queue of a server that admits no more.
            self.refused |= silent_ns > HANDSHAKE_NS.min(timeout_ns / 2);
        }
        let limit_ns = match self.stage {
            // A new attempt finds a server that is back sooner than the kernel's next SYN.
            Stage::Connecting => CONNECT_NS.min(timeout_ns),
            _ => timeout_ns,
        };
        match self.stage {
            Stage::Down { .. } if self.is_other => self.give_up(OTHER_EXPORT, false),
            Stage::Down { .. } => self.give_up("the server is unreachable", false),
            _ if silent_ns > limit_ns => {
                self.lose(SILENT);
                if self.together.is_gone() {
                    self.together.answer_timeout.ended(self.now_ns);
                }
            }
            _ => {}
        }
    }

    fn period(&self) -> Duration {
        let shortest = self.remote.timeout.min(self.remote.retry) / 4;
        shortest.clamp(Duration::from_millis(10), Duration::from_millis(100))
    }

    pub(super) fn set_timer(&mut self, runs: bool) {
        let period = if runs { self.period() } else { Duration::ZERO };
        let time = Timespec {
            tv_sec: period.as_secs() as i64,
            tv_nsec: period.subsec_nanos().into(),
        };
        let ticks = Itimerspec {
            it_interval: time,
            it_value: time,
        };
        // It fails only for values that make no time.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &ticks);
        self.ticks = runs;
        self.next_tick_ns = self.now_ns + period.as_nanos() as u64;
    }
}

/// The next multiple of the period from `due_ns` on that is later than `now_ns`. The timer counts
/// so, too. A tick that was due a period after this one was seen would lag behind the timer, each
/// time more, and a caller that sleeps on the timer would spin meanwhile.
pub(super) const fn after(due_ns: u64, now_ns: u64, period_ns: u64) -> u64 {
    let late_ns = now_ns.saturating_sub(due_ns);
    due_ns + period_ns * (late_ns / period_ns + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_due_when_the_timer_has_ticked() {
        let period_ns = 100;
        let mut due_ns = period_ns;
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..1000 {
            // Seen late, at times after several ticks of the timer, which are one then.
            let now_ns = due_ns + random.u64(0..250);
            due_ns = after(due_ns, now_ns, period_ns);
            let of_timer_ns = (now_ns / period_ns + 1) * period_ns;
            assert_eq!(due_ns, of_timer_ns, "seen at {now_ns}");
        }
    }
}
