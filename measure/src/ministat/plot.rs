//! The plot: a mark for each value over its column, marks of one set in one column on top of each
//! other, and below them the bars.
//!
//! Its habits, which are kept:
//! - Where marks of several sets meet, the *bits* of their numbers are joined: sets 1 and 2 make
//!   the symbol of set 3, `*`.
//! - It is as high as the *last* set needs: what a set before it stacked higher is cut off.
//! - A set that needs more rows than the one before it wipes the rows that it adds, also where an
//!   earlier set had marks in them.
//! - Bars on one line overwrite each other, in the order of the sets.
//! - Values beyond 9.99e101 do not move the ends towards each other.

use super::statistics::Statistics;
use super::{SETS_MAX, SYMBOLS};

/// The width where nothing else is known, columns.
pub const WIDTH: usize = 74;

/// The narrowest plot. The original divides by the width less one, and writes outside of its memory
/// when that is 0 or less.
pub const WIDTH_MIN: usize = 2;

/// Before there is a value, the lower end is at this and the upper end at its negative.
const END: f64 = 999e99;

/// A set of data that cannot be plotted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlotError {
    /// The values, or their deviation, reach beyond the largest number; the original crashes.
    #[error("the values are too large for a plot: its width would be infinite")]
    Infinite,
}

/// A plot as lines of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    width: usize,
    /// Nothing is drawn when all values are equal.
    empty: bool,
    height: usize,
    /// For each set: how many of its values fall into each column.
    counts: Vec<Vec<usize>>,
    /// For each set: the rows that it wipes before it is drawn, from the first to before the last.
    wiped: Vec<(usize, usize)>,
    bars: Vec<Vec<u8>>,
}

/// From values to columns.
struct Axis {
    start: f64,
    step: f64,
    width: usize,
}

impl Axis {
    /// The column; rounding cannot carry it outside here, as it can in the original.
    fn column(&self, value: f64) -> usize {
        let column = (value - self.start) / self.step;
        (column as usize).min(self.width - 1)
    }
}

impl Plot {
    /// Plots sets (with their sorted values) on `width` columns, [`WIDTH_MIN`] at least; with
    /// `separate` each has a bar of its own.
    ///
    /// # Errors
    /// [`PlotError::Infinite`].
    pub(super) fn new(
        sets: &[(Statistics, Vec<f64>)],
        width: usize,
        separate: bool,
    ) -> Result<Self, PlotError> {
        let width = width.max(WIDTH_MIN);
        let (mut low, mut high) = (END, -END);
        for (set, _) in sets {
            let deviation = [set.mean - set.sd, set.mean + set.sd];
            for value in [set.min, set.max].into_iter().chain(deviation) {
                // Not min() and max(): a deviation that is not a number moves nothing.
                low = if value < low { value } else { low };
                high = if value > high { value } else { high };
            }
        }
        let span = high - low;
        if !span.is_finite() {
            return Err(PlotError::Infinite);
        }
        let mut plot = Self {
            width,
            empty: span == 0.0,
            height: 0,
            counts: Vec::new(),
            wiped: Vec::new(),
            bars: Vec::new(),
        };
        if !plot.empty {
            let step = span / (width as f64 - 1.0);
            let start = low - 0.5 * step;
            let axis = Axis { start, step, width };
            for (set, sorted) in sets.iter().take(SETS_MAX) {
                plot.add(&axis, set, sorted, separate);
            }
        }
        Ok(plot)
    }

    fn add(&mut self, axis: &Axis, set: &Statistics, sorted: &[f64], separate: bool) {
        let mut counts = vec![0; self.width];
        for value in sorted {
            counts[axis.column(*value)] += 1;
        }
        let height = counts.iter().copied().max().unwrap_or(0) + 1;
        self.wiped.push((self.height, height));
        self.height = height;
        self.counts.push(counts);
        if separate || self.bars.is_empty() {
            self.bars.push(vec![0; self.width]);
        }
        if let Some(bar) = self.bars.last_mut() {
            draw_bar(bar, axis, set);
        }
    }

    /// The lines of the plot, without line feeds.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let note = self
            .empty
            .then(|| "[no plot, span is zero width]".to_owned());
        let frame = || (!self.empty).then(|| format!("+{}+", "-".repeat(self.width)));
        let rows = (1..self.height).rev().map(|row| self.row(row));
        let bars = self.bars.iter().map(|bar| {
            let cells = bar.iter().map(|cell| char::from(*cell));
            let line: String = cells.map(|c| if c == '\0' { ' ' } else { c }).collect();
            format!("|{line}|")
        });
        let drawn = frame().into_iter().chain(rows).chain(bars).chain(frame());
        note.into_iter().chain(drawn)
    }

    /// One row of marks, counted from the lowest, which is 1.
    fn row(&self, row: usize) -> String {
        let wiping = |(first, end): &(usize, usize)| (*first..*end).contains(&row);
        // Only sets from the last wiping on are left in this row.
        let from = self.wiped.iter().rposition(wiping).unwrap_or(0);
        let mut line = String::with_capacity(self.width + 2);
        line.push('|');
        for column in 0..self.width {
            let sets = self.counts.iter().enumerate().skip(from);
            let marks = sets.fold(0, |marks, (index, counts)| {
                if counts[column] >= row {
                    marks | (index + 1)
                } else {
                    marks
                }
            });
            line.push(if marks == 0 { ' ' } else { SYMBOLS[marks - 1] });
        }
        line.push('|');
        line
    }
}

/// `|____M__A___|`: from a deviation below the mean to one above it.
fn draw_bar(bar: &mut [u8], axis: &Axis, set: &Statistics) {
    if !set.sd.is_nan() {
        let low = axis.column(set.mean - set.sd);
        let high = axis.column(set.mean + set.sd);
        bar[high] = b'|';
        bar[low] = b'|';
        for cell in bar.iter_mut().take(high).skip(low + 1) {
            *cell = if *cell == 0 { b'_' } else { *cell };
        }
    }
    bar[axis.column(set.median)] = b'M';
    bar[axis.column(set.mean)] = b'A';
}
