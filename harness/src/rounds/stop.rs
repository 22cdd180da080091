//! When to stop: by precision for all cases together, never by significance. A test that stops
//! when it finds a difference finds one sooner or later where there is none (Armitage, McPherson
//! and Rowe, J. R. Statist. Soc. A 132, 1969).

use super::{Ended, Precision, Round, Sample, Settings};
use ugeom_measure::Error;
use ugeom_measure::interval::student_of;

/// Why to stop now; `None` to go on. `next_ns` is the likely duration of one more round.
pub(super) fn reason(
    rounds: &[Round],
    settings: &Settings,
    spent_ns: u64,
    next_ns: u64,
) -> Option<Ended> {
    let done = rounds.len() as u64;
    if done < settings.rounds_min {
        return None;
    }
    let cases = rounds.first().map_or(0, |round| round.samples.len());
    let precise = |case: usize| relative(rounds, case, settings.confidence) <= settings.precision;
    if (0..cases).all(precise) {
        return Some(Ended::Precise);
    }
    if done >= settings.rounds_max {
        return Some(Ended::RoundsMax);
    }
    let over = |budget_ns: u64| spent_ns.saturating_add(next_ns) > budget_ns;
    settings
        .budget_ns
        .is_some_and(over)
        .then_some(Ended::Budget)
}

/// The least precise case.
pub(super) fn worst(rounds: &[Round], names: &[String], confidence: f64) -> Option<Precision> {
    if rounds.len() < 2 {
        return None;
    }
    let known = names.iter().enumerate();
    known
        .map(|(case, name)| Precision {
            case: name.clone(),
            relative: relative(rounds, case, confidence),
        })
        .max_by(|a, b| a.relative.total_cmp(&b.relative))
}

fn relative(rounds: &[Round], case: usize, confidence: f64) -> f64 {
    let values: Vec<f64> = rounds
        .iter()
        .filter_map(|round| round.samples.get(case))
        .map(Sample::ns_per_iteration)
        .collect();
    match student_of(&values, confidence) {
        Ok(effect) => effect.interval.relative_half_width(),
        Err(Error::ZeroVariance { .. }) => 0.0,
        Err(_) => f64::INFINITY,
    }
}
