//! The level of the intervals of a page. Intervals of order statistics cover more than was asked
//! for: how much depends on the number of observations, and on how many hold together. Spreads
//! have no level; they stand in square brackets.

use crate::head::DISTURBED;
use crate::page::{Block, Fact, Page};
use crate::plot::Plot;
use crate::table::{Table, Value};
use ugeom_harness::figure::CONFIDENCE;
use ugeom_measure::Interval;

/// The ends of a spread.
const SPREAD: &str = "[ ] 10th to 90th percentile";

/// Less is no confidence interval: the middle half of the cases of a round.
const CONFIDENCE_MIN: f64 = 0.8;

impl Page {
    /// The level of the answer's intervals and their observations: `96 % CI, 12 processes`, or
    /// `( ) 96 % CI, [ ] 10th to 90th percentile, 12 processes`. Empty where the page has neither.
    pub fn certain(&self) -> String {
        let summary = self.summary.iter().flat_map(of_table);
        let picture = self.picture.iter().flat_map(of_plot);
        let of_answer = levels(summary.chain(picture));
        // An answer without an interval gets none of the page's other intervals.
        let of_all = || match self.certainty.is_empty() {
            true => levels(self.intervals()),
            false => None,
        };
        stated(of_answer.or_else(of_all), &self.certainty)
    }

    /// The same of all intervals of the page.
    fn all_certain(&self) -> String {
        stated(levels(self.intervals()), &self.certainty)
    }

    /// The facts of the head, and the level of all intervals.
    pub(crate) fn facts_and_level(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        let text = self.all_certain();
        if !text.is_empty() {
            let name = "interval".to_owned();
            facts.push(Fact { name, text });
        }
        facts
    }

    fn intervals(&self) -> impl Iterator<Item = Interval> {
        let blocks = self.body().collect::<Vec<_>>().into_iter();
        blocks.flat_map(|block| match &block {
            Block::Table(table) => of_table(table),
            Block::Plot(plot) => of_plot(plot),
            _ => Vec::new(),
        })
    }
}

fn stated(level: Option<String>, made_of: &str) -> String {
    match (level, made_of) {
        (Some(level), "") => level,
        // Under another load a repetition may contradict them.
        (Some(level), _) if made_of.ends_with(DISTURBED) && level != SPREAD => {
            format!("{level}, {made_of}: the CI holds under this load only")
        }
        (Some(level), _) => format!("{level}, {made_of}"),
        (None, "") => String::new(),
        (None, _) => format!("none: {made_of}"),
    }
}

/// The level of confidence intervals, and the meaning of spreads: brackets where there are both.
fn levels(intervals: impl IntoIterator<Item = Interval>) -> Option<String> {
    let (spreads, others): (Vec<Interval>, Vec<Interval>) =
        intervals.into_iter().partition(Interval::is_spread);
    match (level(others), spreads.is_empty()) {
        (level, true) => level,
        (None, false) => Some(SPREAD.to_owned()),
        (Some(level), false) => Some(format!("( ) {level}, {SPREAD}")),
    }
}

/// `96 % CI`, or `96 to 99 % CI` where they differ; none without an interval.
fn level(intervals: impl IntoIterator<Item = Interval>) -> Option<String> {
    let confidences = intervals.into_iter().filter(is_interval);
    let confidences = confidences.map(|interval| interval.confidence);
    let ends = confidences.fold(None, |ends: Option<[f64; 2]>, one| {
        let [low, high] = ends.unwrap_or([one, one]);
        Some([low.min(one), high.max(one)])
    })?;
    Some(match ends.map(ugeom_measure::percent) {
        [low, high] if low == high => format!("{low} % CI"),
        [low, high] => format!("{low} to {high} % CI"),
    })
}

/// A point without an interval has no width, and the level that was asked for. A level of 1 is that
/// of an extent, which is known.
fn is_interval(one: &Interval) -> bool {
    let levels = CONFIDENCE_MIN..1.0;
    levels.contains(&one.confidence) && (one.low < one.high || one.confidence != CONFIDENCE)
}

fn of_table(table: &Table) -> Vec<Interval> {
    let cells = table.rows.iter().flatten();
    let intervals = cells.filter_map(|cell| match cell.value {
        // Some tables show the median of a spread only.
        Some(Value::Interval(it)) if it.is_spread() && !cell.text.contains('[') => None,
        Some(Value::Interval(interval)) => Some(interval),
        _ => None,
    });
    intervals.collect()
}

fn of_plot(plot: &Plot) -> Vec<Interval> {
    of_table(&plot.table())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Cell, Column, Rows, Style};
    use ugeom_measure::{Center, Spread};

    fn interval(observations: usize) -> Interval {
        let values: Vec<f64> = (1..=observations).map(|value| value as f64).collect();
        Center::of(&values).unwrap().at(CONFIDENCE).unwrap()
    }

    /// A page whose answer has an interval of so many observations, and another one below.
    fn page(answer: usize, other: usize) -> Page {
        let mut page = Page::new("layers", "ugeom lab layers");
        page.certainty = format!("{answer} processes");
        let mut table = Table::new("", [Column::text("what"), Column::number("time", "ns")]);
        table.row([Cell::text("md0"), Cell::interval(&interval(answer), 1)]);
        page.summary = Some(table);
        let mut rows = Rows::points("others", Axis::linear("time", "ns"), [""]);
        rows.row("md1", [Some(interval(other))]);
        rows.row("none", [Some(Interval::exact(1.0, CONFIDENCE))]);
        let extent = Interval {
            confidence: 1.0,
            ..interval(6)
        };
        rows.row("extent", [Some(extent)]);
        page.push(rows);
        page
    }

    #[test]
    fn a_page_states_the_level_that_its_intervals_have_once() {
        for (observations, level) in [(6, 96), (7, 98), (8, 99), (11, 98), (12, 96), (100, 96)] {
            let page = page(observations, observations);
            let said = format!("{level} % CI, {observations} processes");
            assert_eq!(
                (page.certain(), page.all_certain()),
                (said.clone(), said.clone())
            );
            let texts = [
                page.to_screen(80, Style::Plain),
                page.to_text(80),
                page.to_markdown(),
            ];
            for text in texts {
                assert_eq!(text.matches(&said).count(), 1, "{text}");
                assert_eq!(text.matches("CI").count(), 1, "{text}");
            }
            let csv = page.to_csv();
            assert!(csv.contains(&format!("\ninterval,\"{said}\"\n")), "{csv}");
            let covers = interval(observations).confidence.to_string();
            assert!(csv.contains("time confidence"), "{csv}");
            assert_eq!(csv.matches(&covers).count(), 2, "a table and a plot: {csv}");
        }
    }

    #[test]
    fn spreads_are_told_from_confidence_intervals() {
        let mut page = page(12, 12);
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let mut table = Table::new("", [Column::text("what"), Column::number("time", "ns")]);
        table.row([Cell::text("md0"), Cell::interval(&spread.interval(), 1)]);
        let both = page.summary.replace(table.clone());
        let said = "[ ] 10th to 90th percentile, 12 processes";
        assert_eq!(page.certain(), said);
        page.certainty.push_str(DISTURBED);
        assert_eq!(page.certain(), format!("{said}, disturbed"));
        assert!(page.to_text(80).contains("3.5 [1.5 to 5.5]"));
        assert!(page.to_csv().contains("\nmd0,3.5,1.5,5.5,\n"));
        page.summary = both.map(|mut one| {
            one.rows.extend(table.rows);
            one
        });
        let limit = ", disturbed: the CI holds under this load only";
        assert_eq!(page.certain(), format!("( ) 96 % CI, {said}{limit}"));
        page.certainty = "12 processes".to_owned();
        assert_eq!(page.certain(), format!("( ) 96 % CI, {said}"));
        let mut rows = page.summary.iter_mut().flat_map(|one| &mut one.rows);
        rows.next_back().unwrap()[1].text = "3.5".to_owned();
        assert_eq!(page.certain(), "96 % CI, 12 processes");
    }

    #[test]
    fn levels_that_differ_are_a_range_and_points_have_none() {
        let page = page(12, 8);
        assert_eq!(page.certain(), "96 % CI, 12 processes");
        assert_eq!(page.all_certain(), "96 to 99 % CI, 12 processes");
        let exact = Interval::exact(1.0, CONFIDENCE);
        assert_eq!(level([exact]), None);
        let half = Interval {
            confidence: 0.5,
            ..interval(6)
        };
        assert_eq!(level([half]), None);
        let mut stopped = Page::new("layers", "ugeom lab layers");
        assert_eq!(stopped.certain(), "");
        stopped.certainty = "stopped early".to_owned();
        assert_eq!(stopped.certain(), "none: stopped early");
    }
}
