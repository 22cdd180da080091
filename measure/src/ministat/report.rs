//! All that ministat prints, in its order.

use super::plot::{Plot, PlotError, WIDTH};
use super::printf::{column, plain};
use super::statistics::{Difference, Statistics};
use super::{Confidence, DataSet, SETS_MAX, SYMBOLS, Version};

/// The computation and the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinistatOptions {
    /// The program whose output is reproduced.
    pub version: Version,
    /// The confidence of the comparisons.
    pub confidence: Confidence,
    /// Statistics only: neither plot nor comparisons (`-n`).
    pub statistics_only: bool,
    /// The plot is left out (`-A`).
    pub no_plot: bool,
    /// A bar for each set in the plot (`-s`).
    pub separate_bars: bool,
    /// Neither names nor headings (`-q`).
    pub quiet: bool,
    /// The columns of the plot (`-w`).
    pub width: usize,
}

impl Default for MinistatOptions {
    fn default() -> Self {
        Self {
            version: Version::default(),
            confidence: Confidence::default(),
            statistics_only: false,
            no_plot: false,
            separate_bars: false,
            quiet: false,
            width: WIDTH,
        }
    }
}

/// The heading of the table.
const HEADING: &str = "    N           Min           Max        Median           Avg        Stddev";

/// Everything that was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    names: Vec<String>,
    statistics: Vec<Statistics>,
    differences: Vec<Difference>,
    plot: Option<Plot>,
    options: MinistatOptions,
}

impl Report {
    /// Computes all that the options ask for, for 1 to [`SETS_MAX`] sets; more are left out.
    ///
    /// # Errors
    /// As [`PlotError`] says, when a plot is asked for.
    pub fn new(sets: &[DataSet], options: MinistatOptions) -> Result<Self, PlotError> {
        let sets = &sets[..sets.len().min(SETS_MAX)];
        let computed: Vec<(Statistics, Vec<f64>)> = sets
            .iter()
            .map(|set| Statistics::of(set, options.version))
            .collect();
        let with_plot = !options.statistics_only && !options.no_plot;
        let plot = with_plot
            .then(|| Plot::new(&computed, options.width, options.separate_bars))
            .transpose()?;
        let statistics: Vec<Statistics> = computed.iter().map(|one| one.0).collect();
        let compare =
            |set, reference| Difference::of(set, reference, options.confidence, options.version);
        let differences = match statistics.split_first() {
            Some((first, others)) if !options.statistics_only => {
                others.iter().map(|set| compare(set, first)).collect()
            }
            _ => Vec::new(),
        };
        Ok(Self {
            names: sets.iter().map(|set| set.name.clone()).collect(),
            statistics,
            differences,
            plot,
            options,
        })
    }

    /// The names of the sets.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A line of the table for each set.
    pub fn statistics(&self) -> &[Statistics] {
        &self.statistics
    }

    /// Every set from the second on against the first; empty when only statistics were asked for.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// The text, line by line, without line feeds.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let marked = || SYMBOLS.iter().zip(&self.names);
        let names = marked().map(|(symbol, name)| format!("{symbol} {name}"));
        let loud = !self.options.quiet;
        let names = names.filter(move |_| loud);
        let heading = loud.then(|| HEADING.to_owned());
        let plot = self.plot.iter().flat_map(Plot::lines);
        names
            .chain(plot)
            .chain(heading)
            .chain((0..self.statistics.len()).flat_map(|index| self.lines_of(index)))
    }

    /// The line of a set, and its comparison.
    fn lines_of(&self, index: usize) -> Vec<String> {
        let set = &self.statistics[index];
        let columns = [set.min, set.max, set.median, set.mean, set.sd].map(column);
        let mut lines = vec![format!(
            "{} {:3} {}",
            SYMBOLS[index],
            set.n,
            columns.join(" ")
        )];
        let difference = index
            .checked_sub(1)
            .and_then(|index| self.differences.get(index));
        let Some(difference) = difference else {
            return lines;
        };
        let percent = self.options.confidence.percent();
        if !difference.proven {
            lines.push(format!("No difference proven at {percent:.1}% confidence"));
            return lines;
        }
        let pair = |value, half| (plain(value), plain(half));
        let (value, half) = pair(difference.difference, difference.half_width);
        let (share, share_half) = pair(difference.percent, difference.percent_half_width);
        lines.extend([
            format!("Difference at {percent:.1}% confidence"),
            format!("\t{value} +/- {half}"),
            format!("\t{share}% +/- {share_half}%"),
            format!(
                "\t(Student's t, pooled s = {})",
                plain(difference.pooled_sd)
            ),
        ]);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ministat::Format;

    const IGUANA: &str = "50\n200\n150\n400\n750\n400\n150\n";
    const CHAMELEON: &str = "150\n400\n720\n500\n930\n";

    fn sets(texts: &[&str]) -> Vec<DataSet> {
        let names = ["iguana", "chameleon", "third"];
        let named = names.iter().zip(texts);
        named
            .map(|(name, text)| DataSet::parse(name, text.as_bytes(), &Format::default()).unwrap())
            .collect()
    }

    fn text(texts: &[&str], options: MinistatOptions) -> String {
        let report = Report::new(&sets(texts), options).unwrap();
        report.lines().map(|line| line + "\n").collect()
    }

    const CLASSIC: MinistatOptions = MinistatOptions {
        version: Version::Classic,
        confidence: Confidence::P95,
        statistics_only: false,
        no_plot: false,
        separate_bars: false,
        quiet: false,
        width: WIDTH,
    };

    #[test]
    fn the_manual_pages_own_examples_are_reproduced() {
        // ministat(1), whose table has narrower columns than the program prints.
        let expected = "\
x iguana
+ chameleon
+------------------------------------------------------------+
|x      *  x            *      +              + x           +|
| |________M______A_______________|                          |
|             |________________M__A___________________|      |
+------------------------------------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   7            50           750           200           300     238.04761
+   5           150           930           500           540     299.08193
No difference proven at 95.0% confidence
";
        let options = MinistatOptions {
            separate_bars: true,
            width: 60,
            ..CLASSIC
        };
        let lines = text(&[IGUANA, CHAMELEON], options);
        assert_eq!(lines, expected);
        let options = MinistatOptions {
            confidence: Confidence::P80,
            ..options
        };
        let lines = text(&[IGUANA, CHAMELEON], options);
        let proven = "\
Difference at 80.0% confidence
\t240 +/- 212.215
\t80% +/- 70.7384%
\t(Student's t, pooled s = 264.159)
";
        assert!(lines.ends_with(proven), "{lines}");
    }

    #[test]
    fn the_current_version_gives_the_reference_a_spread() {
        // By hand, in fractions: variances 340000/6 and 357800/4, means 300 and 540, t = 1.372:
        // sqrt((357800 + 340000 (540/300)^2) 12 / (5 7 10)) t / 3 = 102.300
        let options = MinistatOptions {
            confidence: Confidence::P80,
            version: Version::Current,
            no_plot: true,
            ..CLASSIC
        };
        let report = Report::new(&sets(&[IGUANA, CHAMELEON]), options).unwrap();
        let difference = report.differences()[0];
        let spread: f64 = (357_800.0 + 340_000.0 * 3.24) * 12.0 / 350.0;
        let expected = 1.372 * spread.sqrt() / 3.0;
        assert!((difference.percent_half_width / expected - 1.0).abs() < 1e-12);
        assert!((difference.half_width - 212.215).abs() < 1e-3);
        assert_eq!(difference.percent, 80.0);
    }

    #[test]
    fn the_versions_differ_in_the_median_and_in_large_values() {
        let even = "1\n2\n30\n40\n";
        let large = "1000000000.1\n1000000000.2\n1000000000.3\n";
        let of = |version| {
            let options = MinistatOptions { version, ..CLASSIC };
            let report = Report::new(&sets(&[even, large]), options).unwrap();
            (report.statistics()[0].median, report.statistics()[1].sd)
        };
        let (classic, current) = (of(Version::Classic), of(Version::Current));
        assert_eq!((classic.0, current.0), (30.0, 16.0));
        assert!((current.1 - 0.1).abs() < 1e-6, "{}", current.1);
        // One pass loses it: the difference of the sums is negative, or far too large.
        let lost = classic.1.is_nan() || (classic.1 - 0.1).abs() > 0.05;
        assert!(lost, "{}", classic.1);
    }

    #[test]
    fn what_the_original_cannot_plot_is_refused() {
        let wide = "-1e308\n1e308\n1e308\n";
        assert_eq!(
            Report::new(&sets(&[wide]), CLASSIC),
            Err(PlotError::Infinite)
        );
        let options = MinistatOptions {
            no_plot: true,
            ..CLASSIC
        };
        assert!(Report::new(&sets(&[wide]), options).is_ok());
        assert!(text(&["1\n1\n1\n"], CLASSIC).contains("\n[no plot, span is zero width]\n"));
    }
}
