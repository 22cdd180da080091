//! The publication of 6 October 2002, as data: the eight rows of the GEOM benchmarks, and the
//! judgement that today's figures get, applied to them.
//!
//! Source: Poul-Henning Kamp, "GEOM benchmarks", to current@freebsd.org, Message-ID
//! 81529.1033936107@critter.freebsd.dk. A 1-CPU 700 MHz Athlon; each row has ten runs of 100,000
//! loops of lseek and a 512-byte read at offset 0; averages and deviations of one loop in ns.

use ugeom_harness::HarnessError;
use ugeom_measure::two_samples::{pooled, welch};
use ugeom_measure::{Effect, Moments};

/// One device of the mail, and the time of a read from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The device as the mail names it.
    pub device: &'static str,
    /// The layers that its request goes through, from the top, as the mail names them.
    pub layers: &'static str,
    /// Whether the kernel had GEOM.
    pub geom: bool,
    /// Mean and deviation of ten runs, ns a read.
    pub moments: Moments,
}

const fn row(device: &'static str, layers: &'static str, geom: bool, ns: (f64, f64)) -> Row {
    Row {
        device,
        layers,
        geom,
        moments: Moments {
            n: 10,
            mean: ns.0,
            sd: ns.1,
        },
    }
}

/// `/dev/zero` under a kernel with GEOM, which it does not pass through: the control.
pub const ZERO: Row = row("zero", "", true, (3_563.810_900, 43.855_366));
/// The memory disk under a kernel with GEOM.
pub const MD9: Row = row("md9", "dev, disk", true, (26_773.133_200, 342.152_442));
/// The slice of the memory disk, with GEOM.
pub const MD9S1: Row = row(
    "md9s1",
    "dev, mbr, disk",
    true,
    (27_077.471_800, 646.937_932),
);
/// The raw partition of that slice's label.
pub const MD9S1C: Row = row(
    "md9s1c",
    "dev, bsd, mbr, disk",
    true,
    (28_436.273_300, 209.271_601),
);
/// `/dev/zero` under a kernel without GEOM.
pub const ZERO_WITHOUT: Row = row("zero", "", false, (3_741.171_000, 26.748_924));
/// The memory disk without GEOM.
pub const MD9_WITHOUT: Row = row("md9", "", false, (21_752.482_800, 181.397_713));
/// The slice without GEOM.
pub const MD9S1_WITHOUT: Row = row("md9s1", "", false, (21_643.089_000, 204.512_877));
/// The partition without GEOM.
pub const MD9S1C_WITHOUT: Row = row("md9s1c", "", false, (21_639.226_900, 158.514_456));

/// All rows in the order of the mail.
pub const ROWS: [Row; 8] = [
    ZERO,
    MD9,
    MD9S1,
    MD9S1C,
    ZERO_WITHOUT,
    MD9_WITHOUT,
    MD9S1_WITHOUT,
    MD9S1C_WITHOUT,
];

/// A step from one row to another, judged twice: as ministat does (both rows have one spread,
/// pooled) and without that assumption (Welch).
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The step, in plain words.
    pub what: String,
    /// The mean of the row that it starts from, ns.
    pub base_ns: f64,
    /// Student's interval with a pooled deviation, 95 %.
    pub pooled: Effect,
    /// Welch's interval, 95 %.
    pub welch: Effect,
}

impl Step {
    /// Whether the pooled interval leaves zero out.
    pub fn is_significant(&self) -> bool {
        self.pooled.p_value <= 0.05
    }

    /// The step as a share of its start, per cent.
    pub fn percent(&self) -> f64 {
        self.pooled.estimate() / self.base_ns * 100.0
    }

    /// `5,021 +- 257 ns`.
    pub fn amount(&self) -> String {
        let interval = self.pooled.interval;
        let sign = if interval.estimate < 0.0 { "-" } else { "" };
        let whole = |value: f64| ugeom_measure::units::grouped(value.abs().round() as u64);
        format!(
            "{sign}{} +- {} ns",
            whole(interval.estimate),
            whole(interval.half_width())
        )
    }
}

/// Judges the step from `base` to `changed`.
///
/// # Errors
/// [`HarnessError::Statistics`] when neither row varies.
pub fn step(what: &str, base: &Row, changed: &Row) -> Result<Step, HarnessError> {
    let refused = |source| HarnessError::Statistics {
        what: what.to_owned(),
        source,
    };
    Ok(Step {
        what: what.to_owned(),
        base_ns: base.moments.mean,
        pooled: pooled(base.moments, changed.moments, 0.95).map_err(refused)?,
        welch: welch(base.moments, changed.moments, 0.95).map_err(refused)?,
    })
}

/// The steps of the mail: GEOM itself, the MBR layer, the BSD layer, and the control that no layer
/// touched.
///
/// # Errors
/// As [`step`].
pub fn steps() -> Result<[Step; 4], HarnessError> {
    Ok([
        step("GEOM itself, on the memory disk", &MD9_WITHOUT, &MD9)?,
        step("one more layer: mbr", &MD9, &MD9S1)?,
        step("one more layer: bsd", &MD9S1, &MD9S1C)?,
        step("the control: /dev/zero", &ZERO_WITHOUT, &ZERO)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program's line for a row, to the letter of the mail but for the width of the name.
    fn samples_line(name: &str, name_width: usize, moments: &Moments) -> String {
        format!(
            "{name:name_width$} Samples: {}    Average: {:12.6}   Stddev: {:10.6}",
            moments.n, moments.mean, moments.sd
        )
    }

    #[test]
    fn the_mail_of_2002_is_judged_to_the_nanosecond() {
        let [geom, mbr, bsd, control] = steps().unwrap();
        assert_eq!(geom.amount(), "5,021 +- 257 ns");
        assert!(
            geom.is_significant() && geom.percent().round() == 23.0,
            "the mail's 23 %"
        );
        assert_eq!(mbr.amount(), "304 +- 486 ns");
        assert!(!mbr.is_significant(), "the MBR step is not significant");
        assert_eq!(bsd.amount(), "1,359 +- 452 ns");
        assert!(bsd.is_significant());
        assert_eq!(control.amount(), "-177 +- 34 ns");
        assert!(control.is_significant(), "the control moved, too");
        assert_eq!(format!("{:.1}", control.percent()), "-4.7");
    }

    #[test]
    fn without_the_assumption_of_one_spread_the_verdicts_stay() {
        for step in steps().unwrap() {
            assert_eq!(
                step.welch.p_value <= 0.05,
                step.is_significant(),
                "{}",
                step.what
            );
            assert!(step.welch.interval.half_width() >= step.pooled.interval.half_width());
        }
    }

    #[test]
    fn without_geom_the_three_devices_do_not_differ() {
        for other in [&MD9S1_WITHOUT, &MD9S1C_WITHOUT] {
            assert!(!step("flat", &MD9_WITHOUT, other).unwrap().is_significant());
        }
    }

    #[test]
    fn rows_are_printed_as_in_the_mail() {
        let mail = "\
zero   Samples: 10    Average:  3563.810900   Stddev:  43.855366
md9    Samples: 10    Average: 26773.133200   Stddev: 342.152442
md9s1  Samples: 10    Average: 27077.471800   Stddev: 646.937932
md9s1c Samples: 10    Average: 28436.273300   Stddev: 209.271601
zero   Samples: 10    Average:  3741.171000   Stddev:  26.748924
md9    Samples: 10    Average: 21752.482800   Stddev: 181.397713
md9s1  Samples: 10    Average: 21643.089000   Stddev: 204.512877
md9s1c Samples: 10    Average: 21639.226900   Stddev: 158.514456
";
        let lines: Vec<String> = ROWS
            .iter()
            .map(|row| samples_line(row.device, 6, &row.moments))
            .collect();
        assert_eq!(lines.join("\n") + "\n", mail);
    }
}
