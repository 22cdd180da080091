//! The publication, as data: "GEOM theoretical performance and scalability limits", the table of
//! requests a second through `gzero`, and ministat's lines, each step against the one before.
//!
//! A machine of 2 packages with 2 cores each (Xeon X5272, 3.4 GHz); `raidtest test -r` with three
//! runs a step; the lines belong to the column of 4 processes. Single runs were not published,
//! but their mean (the table) and their pooled deviation (the lines) were, and three values with
//! that mean and that deviation give ministat all that it uses.

use ugeom_measure::ministat::{DataSet, Difference, MinistatOptions, Report, Version};

/// The columns of the table: how many processes.
pub const PROCESSES: [u64; 4] = [1, 4, 8, 16];

/// The column that the lines belong to.
pub(crate) const JUDGED: usize = 1;

/// How often each step was run.
pub const RUNS: usize = 3;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The knob, as it was published.
    pub knob: &'static str,
    /// Requests a second, by [`PROCESSES`].
    pub rates: [f64; 4],
    /// ministat's line against the row before; none where nothing is printed.
    pub line: Option<Line>,
}

/// The output of ministat about a row and the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    /// "No difference proven". Its pooled deviation was not printed.
    NotProven,
    /// Difference and its half width, the same in per cent, and the pooled deviation.
    Proven {
        /// Difference and its half width, requests/s.
        difference: (f64, f64),
        /// Per cent of the row before.
        percent: (f64, f64),
        /// Pooled standard deviation, requests a second.
        pooled_sd: f64,
    },
}

const fn published(difference: (f64, f64), percent: (f64, f64), pooled_sd: f64) -> Option<Line> {
    Some(Line::Proven {
        difference,
        percent,
        pooled_sd,
    })
}

const fn row(knob: &'static str, rates: [f64; 4], line: Option<Line>) -> Row {
    Row { knob, rates, line }
}

/// The published table, first row to last: each step keeps the ones before it.
pub const ROWS: [Row; 7] = [
    row(
        "kern.geom.collectstats=1",
        [75_872.0, 156_205.0, 189_524.0, 187_475.0],
        None,
    ),
    row(
        "kern.geom.collectstats=0",
        [91_720.0, 172_085.0, 206_593.0, 200_498.0],
        published((15_880.0, 1_862.84), (10.1661, 1.19256), 821.868),
    ),
    row(
        "debug.geomperf_direct_io=1",
        [500_066.0, 493_803.0, 477_353.0, 454_186.0],
        published((321_718.0, 4_812.0), (186.953, 2.79629), 2_123.01),
    ),
    row(
        "debug.geomperf_dev_eternal=1",
        [521_437.0, 654_480.0, 642_448.0, 599_282.0],
        published((160_677.0, 10_450.8), (32.5387, 2.1164), 4_610.81),
    ),
    row(
        "debug.geomperf_percpu_pbufs=1",
        [518_837.0, 797_164.0, 752_151.0, 694_321.0],
        published((142_685.0, 20_086.5), (21.8012, 3.06908), 8_861.98),
    ),
    row(
        "MTX_POOL_SLEEP_SIZE=1024",
        [519_512.0, 799_757.0, 764_694.0, 712_428.0],
        Some(Line::NotProven),
    ),
    row(
        "pa_index(pa) ((pa) >> 17)",
        [524_787.0, 837_344.0, 813_568.0, 735_152.0],
        published((37_586.3, 27_027.2), (4.69972, 3.37942), 11_924.1),
    ),
];

/// The last row against the first.
pub(crate) const OVERALL: Line = Line::Proven {
    difference: (681_139.0, 13_138.2),
    percent: (436.055, 8.41088),
    pooled_sd: 5_796.45,
};

/// The knob of a row of [`ROWS`].
pub(super) fn knob(index: usize) -> Option<&'static str> {
    ROWS.get(index).map(|row| row.knob)
}

/// ministat's judgement of `changed` against `base` as its classic version has it, at 95 %; none
/// with fewer than three values a side.
pub fn ministat(base: &[f64], changed: &[f64]) -> Option<Difference> {
    let enough = |values: &[f64]| values.len() >= ugeom_measure::ministat::VALUES_MIN;
    if !enough(base) || !enough(changed) {
        return None;
    }
    let set = |name: &str, values: &[f64]| DataSet {
        name: name.to_owned(),
        values: values.to_vec(),
    };
    let options = MinistatOptions {
        version: Version::Classic,
        no_plot: true,
        ..MinistatOptions::default()
    };
    let sets = [set("before", base), set("after", changed)];
    let report = Report::new(&sets, options).ok()?;
    report.differences().first().copied()
}

/// Three runs with this mean and this deviation.
fn runs(mean: f64, sd: f64) -> [f64; RUNS] {
    [mean - sd, mean, mean + sd]
}

/// The published rows through [`ministat`]: one row against another in the judged column, where
/// their pooled deviation is known.
pub fn judged(base: &Row, changed: &Row, line: &Line) -> Option<Difference> {
    let Line::Proven { pooled_sd, .. } = line else { return None };
    let base = runs(base.rates[JUDGED], *pooled_sd);
    ministat(&base, &runs(changed.rates[JUDGED], *pooled_sd))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(base: &Row, changed: &Row, line: &Line) {
        let Line::Proven {
            difference,
            percent,
            ..
        } = *line
        else {
            panic!("{}: nothing to compare", changed.knob);
        };
        let found = judged(base, changed, line).unwrap();
        assert!(found.proven, "{}", changed.knob);
        // The table is rounded to whole requests; the lines have six digits.
        let close = |found: f64, published: f64, slack: f64| {
            let apart = (found - published).abs();
            let what = changed.knob;
            assert!(
                apart <= slack + published * 1e-5,
                "{what}: {found}, {published}"
            );
        };
        close(found.difference, difference.0, 1.0);
        close(found.half_width, difference.1, 0.0);
        close(found.percent, percent.0, 1e-3);
        close(found.percent_half_width, percent.1, 1e-4);
    }

    #[test]
    fn the_published_lines_come_out_of_the_same_code() {
        let mut lines = 0;
        for pair in ROWS.windows(2) {
            if let Some(line @ Line::Proven { .. }) = &pair[1].line {
                agrees(&pair[0], &pair[1], line);
                lines += 1;
            }
        }
        assert_eq!(lines, 5);
        agrees(&ROWS[0], &ROWS[6], &OVERALL);
    }

    #[test]
    fn the_step_that_was_not_significant_is_not_with_any_deviation_of_its_neighbours() {
        let (base, changed) = (ROWS[4].rates[JUDGED], ROWS[5].rates[JUDGED]);
        for sd in [4_610.81, 8_861.98, 11_924.1] {
            let found = ministat(&runs(base, sd), &runs(changed, sd)).unwrap();
            assert!(!found.proven, "{sd}: {found:?}");
        }
    }

    #[test]
    fn two_runs_are_too_few_to_judge() {
        assert_eq!(ministat(&[1.0, 2.0], &[3.0, 4.0, 5.0]), None);
    }
}
