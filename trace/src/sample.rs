//! The choice of sampled requests, so that recording takes no more than a share of the time:
//! windows in which all events are recorded, with pauses between them.
//!
//! ```text
//!   open     requests that begin belong to the sample
//!   closing  those that began before are followed to their ends; new ones do not belong
//!   paused   nothing is recorded
//! ```
//!
//! So one decision holds for all events of a request, on all devices, whatever it is split into or
//! merged with. A decision for each request apart cannot be made where a worker submits for others:
//! which request it works for is known from the events of those before it only.

/// A window is open so long, at least, ns.
const OPEN_NS: u64 = 20_000_000;
/// Requests of a window are followed so long after it, ns: at least, as an end may have been lost;
/// so many times as long as the longest one took; at most.
const CLOSING_NS: u64 = 100_000_000;
const CLOSING_TIMES: u64 = 4;
const CLOSING_MAX_NS: u64 = 10_000_000_000;
/// A pause is no longer than this, ns: a load that has become light is seen again.
const PAUSE_MAX_NS: u64 = 10_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closing { since_ns: u64 },
    Paused { until_ns: u64 },
}

/// The next step of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The window stays as it is.
    Stay,
    /// Requests that begin from now on do not belong to the sample.
    Close,
    /// Nothing is recorded from now on.
    Pause,
    /// A window begins: requests from now on belong to the sample.
    Open,
}

/// The counts of a trace so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Events that were recorded.
    pub(crate) events: u64,
    /// Events before this moment have been linked, ns.
    pub(crate) complete_ns: u64,
    /// A request of the sample is open.
    pub(crate) is_waiting: bool,
    /// The longest request of the sample so far, ns.
    pub(crate) longest_ns: u64,
}

/// Decides when windows begin and end.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// Cost of recording over elapsed time, at most.
    share: f64,
    /// The cost of an event, ns.
    event_ns: f64,
    state: State,
    opened_ns: u64,
    /// Events before this window.
    events_before: u64,
}

impl Windows {
    /// Windows that keep the cost of events under a share (0 to 1) of the time; the first one is
    /// open.
    pub(crate) fn new(share: f64, event_ns: f64, now_ns: u64) -> Self {
        Self {
            share,
            event_ns,
            state: State::Open,
            opened_ns: now_ns,
            events_before: 0,
        }
    }

    /// The present step of sampling.
    pub(crate) fn turn(&mut self, now_ns: u64, seen: Seen) -> Turn {
        let events = seen.events;
        let cost_ns = events.saturating_sub(self.events_before) as f64 * self.event_ns;
        // With a pause up to here the window costs just the share.
        let until_ns = self.opened_ns.saturating_add((cost_ns / self.share) as u64);
        match self.state {
            State::Open if now_ns < self.opened_ns.saturating_add(OPEN_NS) => Turn::Stay,
            State::Open if until_ns <= now_ns => {
                // All of it costs less: the next window follows at once.
                (self.opened_ns, self.events_before) = (now_ns, events);
                Turn::Stay
            }
            State::Open => {
                self.state = State::Closing { since_ns: now_ns };
                Turn::Close
            }
            State::Closing { since_ns } => {
                let most_ns = seen.longest_ns.saturating_mul(CLOSING_TIMES);
                let most_ns = most_ns.clamp(CLOSING_NS, CLOSING_MAX_NS);
                // A request that began in the window is known once all of its events have arrived.
                let is_open = seen.complete_ns <= since_ns || seen.is_waiting;
                if is_open && now_ns.saturating_sub(since_ns) < most_ns {
                    return Turn::Stay;
                }
                let until_ns = until_ns.min(now_ns.saturating_add(PAUSE_MAX_NS));
                self.state = State::Paused { until_ns };
                Turn::Pause
            }
            State::Paused { until_ns } if now_ns < until_ns => Turn::Stay,
            State::Paused { .. } => {
                (self.opened_ns, self.events_before) = (now_ns, events);
                self.state = State::Open;
                Turn::Open
            }
        }
    }

    /// Whether nothing is recorded.
    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.state, State::Paused { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A load with so many events a ms, looked at each 10 ms for so long: events that were
    /// recorded, and how long nothing was, ms.
    fn run(share: f64, events_per_ms: u64, ms: u64) -> (u64, u64) {
        let mut windows = Windows::new(share, 150.0, 0);
        let (mut events, mut paused) = (0, 0);
        for now in (10..=ms).step_by(10) {
            match windows.is_paused() {
                true => paused += 10,
                false => events += 10 * events_per_ms,
            }
            windows.turn(now * MS, seen(events, now, false));
        }
        (events, paused)
    }

    #[test]
    fn a_light_load_is_recorded_whole() {
        // 1 event a ms costs 0.015 %.
        assert_eq!(run(0.01, 1, 10_000), (10_000, 0));
    }

    #[test]
    fn a_heavy_load_costs_the_share_and_no_more() {
        for (share, rate) in [(0.01, 100), (0.01, 1000), (0.05, 1000), (0.001, 200)] {
            let ms = 200_000;
            let (events, paused) = run(share, rate, ms);
            let cost = events as f64 * 150.0 / (ms * MS) as f64;
            assert!(cost <= share * 1.02, "{share} {rate}: {cost}");
            assert!(cost >= share * 0.5 && paused > 0, "{share} {rate}: {cost}");
        }
    }

    #[test]
    fn a_window_waits_for_its_requests_but_not_for_ever() {
        let mut windows = Windows::new(0.01, 150.0, 0);
        let mut turn =
            |now, events, is_waiting| windows.turn(now * MS, seen(events, now, is_waiting));
        assert_eq!(turn(10, 100_000, true), Turn::Stay);
        assert_eq!(turn(20, 200_000, true), Turn::Close);
        assert_eq!(turn(30, 300_000, true), Turn::Stay);
        assert_eq!(turn(40, 400_000, false), Turn::Pause);
        // 400,000 events of 150 ns are 60 ms, 1 % of 6 s.
        assert_eq!(turn(5_999, 400_000, false), Turn::Stay);
        assert_eq!(turn(6_000, 400_000, false), Turn::Open);
        // An end that was lost.
        assert_eq!(turn(6_020, 600_000, true), Turn::Close);
        assert_eq!(turn(6_119, 600_000, true), Turn::Stay);
        assert_eq!(turn(6_120, 600_000, true), Turn::Pause);
        assert!(windows.is_paused());
    }

    #[test]
    fn slow_requests_are_followed_longer_and_all_of_them_are_known_first() {
        let mut windows = Windows::new(0.01, 150.0, 0);
        let slow = |events, now, is_waiting| Seen {
            longest_ns: 250 * MS,
            ..seen(events, now, is_waiting)
        };
        assert_eq!(windows.turn(20 * MS, slow(200_000, 20, true)), Turn::Close);
        assert_eq!(
            windows.turn(30 * MS, slow(200_000, 20, false)),
            Turn::Stay,
            "not all known"
        );
        assert_eq!(
            windows.turn(1_019 * MS, slow(200_000, 1_000, true)),
            Turn::Stay
        );
        assert_eq!(
            windows.turn(1_020 * MS, slow(200_000, 1_000, true)),
            Turn::Pause
        );
    }

    #[test]
    fn clocks_that_jump_stop_nothing() {
        let mut windows = Windows::new(0.01, 150.0, 5_000 * MS);
        assert_eq!(windows.turn(0, seen(1_000_000, 0, false)), Turn::Stay);
        assert_eq!(
            windows.turn(u64::MAX, seen(1_000_000, 0, false)),
            Turn::Stay
        );
        assert_eq!(windows.turn(0, seen(u64::MAX, 0, false)), Turn::Stay);
    }

    fn seen(events: u64, complete_ms: u64, is_waiting: bool) -> Seen {
        Seen {
            events,
            complete_ns: complete_ms * MS,
            is_waiting,
            longest_ns: 0,
        }
    }
}
