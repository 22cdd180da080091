//! The stated properties of histories, simulated: how often a step is found, and how often a series
//! without one rings. `--example history` counts more of them.

#[path = "../examples/simulated/mod.rs"]
mod simulated;

use simulated::{Noise, two_stages, whole_series};

#[test]
fn two_stages_find_a_step_and_rarely_ring_falsely() {
    for noise in Noise::ALL {
        let counts = two_stages(noise, 60, 1);
        assert!(counts.series == 60 && counts.repeated > 0);
        assert!(counts.false_alarms <= 3, "{noise:?}: {counts:?}");
        assert!(counts.found >= 55, "{noise:?}: {counts:?}");
    }
}

#[test]
fn a_look_at_a_whole_series_keeps_its_rate() {
    for noise in Noise::ALL {
        let counts = whole_series(noise, 35, 40, 2);
        // 5 % of 40, and four standard deviations.
        assert!(counts.false_alarms <= 8, "{noise:?}: {counts:?}");
        assert!(counts.found >= 33, "{noise:?}: {counts:?}");
    }
}
