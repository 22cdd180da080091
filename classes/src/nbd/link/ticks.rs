//! When the next tick of a link's timer is due.

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
