//! Did times change while they were measured? Observations of one measurement follow one another
//! within seconds. Where the machine changes as slowly, they are not independent: the intervals of
//! single times are wider then (`ugeom_measure::independence`), and do not cover what changes over
//! minutes. Ratios within rounds are not affected.
//!
//! Two tests of the observations in their order, each false in about 1 of 100 results: Mann and
//! Whitney's of the two halves, and the correlation of the ranks of neighbours (Wald and Wolfowitz,
//! *An exact test for randomness in the non-parametric case based on serial correlation*, Ann.
//! Math. Statist. 14 (1943)).

use ugeom_harness::document::Document;
use ugeom_harness::observed::Observed;
use ugeom_measure::rank::mann_whitney;
use ugeom_measure::summary::median;

/// With fewer observations no two halves differ significantly.
const OBSERVATIONS_MIN: usize = 10;

/// A test finds something below this probability.
const P_MAX: f64 = 0.01;

/// The one-sided quantile of the normal distribution for it.
const Z: f64 = 2.326;

/// A change by less than this share makes no interval wrong that matters.
const SHARE_MIN: f64 = 0.02;

/// The warning, where times changed.
pub(crate) fn warning<S>(document: &Document<S>) -> Option<String> {
    let found = changed(&observations(document))?;
    Some(format!(
        "{found}: a repetition may give times outside their intervals; ratios within rounds hold \
         (compare candidates in one measurement)"
    ))
}

/// How the observations, logarithms in the order of time, changed.
fn changed(logs: &[f64]) -> Option<String> {
    if logs.len() < OBSERVATIONS_MIN {
        return None;
    }
    let (first, second) = logs.split_at(logs.len() / 2);
    let step = (median(second).ok()? - median(first).ok()?).exp() - 1.0;
    let p_value = mann_whitney(first, second, 0.95).map_or(1.0, |test| test.p_value);
    if p_value < P_MAX && step.abs() > SHARE_MIN {
        let slower = if step > 0.0 { "slower" } else { "faster" };
        let percent = match step > 0.0 {
            true => step * 100.0,
            false => (1.0 / (1.0 + step) - 1.0) * 100.0,
        };
        return Some(format!(
            "the second half of the measurement was {percent:.0} % {slower} than the first"
        ));
    }
    let middle = median(logs).ok()?;
    let away: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
    let correlation = neighbours(logs);
    let limit = Z / (logs.len() as f64).sqrt();
    (correlation > limit && median(&away).ok()? > SHARE_MIN)
        .then(|| format!("neighbouring rounds have similar times (correlation {correlation:.1})"))
}

/// The correlation of the ranks of neighbours.
fn neighbours(values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mean = (values.len() as f64 - 1.0) / 2.0;
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank as f64 - mean;
    }
    let all: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let pairs = ranks.windows(2).map(|pair| pair[0] * pair[1]);
    pairs.sum::<f64>() / all.max(1.0)
}

/// The time of each observation, as the logarithm of the middle of its cases, each relative to the
/// median of that case.
fn observations<S>(document: &Document<S>) -> Vec<f64> {
    let times = Observed::times(document);
    let cases = 0..times.cases().len();
    let of_cases: Vec<Vec<f64>> = cases
        .map(|case| times.values(&[case], |one| one.first().copied().filter(|ns| *ns > 0.0)))
        .collect();
    let count = of_cases.iter().map(Vec::len).max().unwrap_or(0);
    let complete: Vec<(f64, &Vec<f64>)> = of_cases
        .iter()
        .filter(|values| values.len() == count)
        .filter_map(|values| Some((median(values).ok()?, values)))
        .collect();
    let of_one = |at: usize| {
        let ratios = complete.iter().map(|(middle, values)| values[at] / middle);
        Some(median(&ratios.collect::<Vec<f64>>()).ok()?.ln())
    };
    (0..count).filter_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times that scatter by some per cent without memory.
    fn calm(count: usize, seed: u64) -> Vec<f64> {
        // Steele, Lea and Flood's SplitMix64.
        let mut state = seed << 32;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
        };
        (0..count).map(|_| next() * 0.1).collect()
    }

    #[test]
    fn times_that_change_are_told_from_times_that_scatter() {
        let mut slower = calm(24, 1);
        slower[12..].iter_mut().for_each(|log| *log += 0.2);
        let found = changed(&slower).unwrap();
        assert!(found.contains(" % slower than the first"), "{found}");
        let wave = |at: usize| (at as f64 / 4.0).sin() * 0.2;
        let waves: Vec<f64> = (0..50).map(wave).collect();
        let found = changed(&waves).unwrap();
        assert!(found.contains("similar times (correlation "), "{found}");
        // A change that is certain, and too small to matter.
        let small: Vec<f64> = (0..24)
            .map(|at| if at < 12 { 0.0 } else { 0.001 })
            .collect();
        assert_eq!(changed(&small), None);
        assert_eq!(changed(&slower[8..16]), None, "too few");
    }

    #[test]
    fn times_that_scatter_seldom_look_like_a_change() {
        for count in [12, 24, 100] {
            let warned = (0..500).filter(|seed| changed(&calm(count, *seed)).is_some());
            let warned = warned.count();
            assert!(warned <= 20, "{warned} of 500 results of {count}");
        }
    }
}
