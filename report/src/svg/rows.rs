//! Values of named things, a row each.

use super::axis::Spread;
use super::pen::{
    Along, Anchor, CHARACTER, IntervalEnd, LINE, Layout, MARGIN, Pen, SERIES, Spot, cut, spread,
    text_width, wrapped,
};
use super::{Legend, SAMPLE, ends, titled, words};
use crate::digits::significant;
use crate::plot::{Mark, PlotRow, RowShape, Rows, Seen};

/// The height of a value, and the room between rows.
const BAR: f64 = 18.0;
const GAP: f64 = 10.0;
/// Half the height of the dots of observations.
const DOTS: f64 = 5.0;
/// Room below the axis: its values, and the title.
const BELOW: f64 = 2.0 * LINE + 12.0;
/// The share of the width that names may have beside their rows.
const NAMES: f64 = 0.38;
/// The lines of a name.
const NAME_LINES: usize = 3;
/// More rows than this are not drawn: a table has them.
const ROWS_MAX: usize = 200;

pub(super) fn svg(plot: &Rows, layout: Layout) -> Option<String> {
    let rows = &plot.rows[..plot.rows.len().min(ROWS_MAX)];
    let values = || rows.iter().flat_map(|row| row.values.iter().flatten());
    let estimates = values().map(|value| value.interval.estimate);
    let estimates = estimates.chain(plot.marks.iter().map(|mark| mark.at));
    let wide = values().flat_map(|value| [value.interval.low, value.interval.high]);
    let longest = rows.iter().map(|row| text_width(&row.name));
    let beside = match layout.is_narrow {
        true => 0.0,
        false => longest.fold(0.0, f64::max).min(layout.width * NAMES) + CHARACTER,
    };
    let across = (MARGIN + beside, layout.width - 1.5 * MARGIN - behind(plot));
    let ticks = ((across.1 - across.0) / (9.0 * CHARACTER)) as usize;
    let axis = Spread::of(&plot.axis, estimates, wide, ticks)?;
    let (mut pen, top) = titled(&plot.title, layout);
    let names = plot.series.iter().filter(|_| plot.series.len() > 1);
    let legend = Legend::of(names.map(String::as_str), top, layout);
    legend.draw(&mut pen, |pen, position, spot| {
        sample(pen, plot.shape, position, spot);
    });
    // Marks are named above the rows, a line each.
    let head = top + legend.height + plot.marks.len() as f64 * LINE + 4.0;
    let room = if layout.is_narrow {
        layout.width - 2.0 * MARGIN
    } else {
        beside
    };
    let places = placed(rows, plot.series.len(), head, room, layout.is_narrow);
    let bottom = places.last().map_or(head, |place| place.bottom);
    let frame = Frame {
        plot,
        axis: &axis,
        across,
        down: (head, bottom),
    };
    frame.draw(&mut pen);
    for (number, mark) in plot.marks.iter().enumerate() {
        frame.mark(&mut pen, mark, number);
    }
    for (row, place) in rows.iter().zip(&places) {
        frame.row(&mut pen, row, place);
    }
    Some(pen.finished(&plot.title, bottom + BELOW))
}

/// Room behind the bars for their values in words: those of one series have it.
fn behind(plot: &Rows) -> f64 {
    match plot.series.len() <= 1 && plot.shape == RowShape::Bars {
        true => 7.0 * CHARACTER,
        false => 0.0,
    }
}

/// The sample of a series in the legend.
fn sample(pen: &mut Pen, shape: RowShape, position: usize, (x, y): Spot) {
    let end = x + SAMPLE - MARGIN;
    match shape {
        RowShape::Bars => pen.bar(position, [(x, y - BAR / 3.0), (end, y + BAR / 3.0)]),
        RowShape::Points => {
            let ends = [x, end].map(|at| IntervalEnd { at, leaves: false });
            let class = format!("s{}", position % SERIES);
            pen.interval(&format!("{class} legend"), Along::X, y, ends);
            pen.marker(position, (x.midpoint(end), y), "");
        }
    }
}

/// Where a row is drawn, from above.
struct RowLayout {
    name: Vec<String>,
    /// The first line of its name.
    name_top: f64,
    /// The line of its first value, px.
    values_top: f64,
    bottom: f64,
}

/// The places of rows below `head`; names have a `room` beside the values or above them.
fn placed(rows: &[PlotRow], series: usize, head: f64, room: f64, above: bool) -> Vec<RowLayout> {
    let values = series.max(1) as f64 * BAR;
    let mut top = head + GAP / 2.0;
    let place = |row: &PlotRow| {
        let name = wrapped(&row.name, room, NAME_LINES);
        let names = name.len() as f64 * LINE;
        let (name_top, values_top, height) = match above {
            true => (top, top + names, names + values),
            false => {
                let height = names.max(values);
                let middle = |part: f64| top + (height - part) / 2.0;
                (middle(names), middle(values), height)
            }
        };
        top += height + GAP;
        RowLayout {
            name,
            name_top,
            values_top,
            bottom: top - GAP / 2.0,
        }
    };
    rows.iter().map(place).collect()
}

/// The rows and their axis on the canvas.
struct Frame<'a> {
    plot: &'a Rows,
    axis: &'a Spread,
    /// Where the ends of the axis are, from the left.
    across: (f64, f64),
    /// Where the rows begin and end, from above.
    down: (f64, f64),
}

impl Frame<'_> {
    /// Draws the axis below the rows, and lines at its values through all of them.
    fn draw(&self, pen: &mut Pen) {
        let ((left, right), (top, bottom)) = (self.across, self.down);
        pen.frame([(left, top), (right, bottom)]);
        for tick in &self.axis.ticks {
            let at = self.axis.pixel(tick.place, self.across);
            pen.line("g", &[(at, top), (at, bottom)]);
            let half = text_width(&tick.label) / 2.0;
            let inside = at.max(half).min(pen.layout.width - half);
            let spot = (inside, bottom + LINE / 2.0 + 4.0);
            pen.text("n", &tick.label, spot, Anchor::Middle);
        }
        pen.line("a", &[(left, bottom), (right, bottom)]);
        if self.axis.place(0.0).is_some() {
            let zero = self.x(0.0);
            pen.line("a", &[(zero, top), (zero, bottom)]);
        }
        let middle = (left.midpoint(right), bottom + 1.5 * LINE + 6.0);
        let half = text_width(&self.axis.title) / 2.0;
        let inside = middle.0.min(pen.layout.width - half - 4.0).max(half + 4.0);
        pen.text("", &self.axis.title, (inside, middle.1), Anchor::Middle);
    }

    /// Where a value is from the left; the end of the axis where it has no place.
    fn x(&self, value: f64) -> f64 {
        self.axis.pixel(self.axis.nearest(value), self.across)
    }

    /// A line through all rows, and its name above them.
    fn mark(&self, pen: &mut Pen, mark: &Mark, number: usize) {
        if self.axis.place(mark.at).is_none() {
            return;
        }
        let x = self.x(mark.at);
        let y = self.down.0 - number as f64 * LINE;
        pen.line("k", &[(x, y), (x, self.down.1)]);
        let name = cut(&mark.name, pen.layout.width / 2.0);
        // The names of two marks point away from each other.
        let is_left = self.plot.marks.iter().any(|other| mark.at < other.at);
        let (before, after) = (x - text_width(&name), x + text_width(&name));
        let anchor = match is_left && before > MARGIN || after > pen.layout.width - MARGIN {
            true => Anchor::End,
            false => Anchor::Start,
        };
        pen.text("w", &name, (x, y - LINE / 2.0), anchor);
    }

    fn row(&self, pen: &mut Pen, row: &PlotRow, place: &RowLayout) {
        for (number, line) in place.name.iter().enumerate() {
            let y = place.name_top + (number as f64 + 0.5) * LINE;
            match pen.layout.is_narrow {
                true => pen.text("w", line, (MARGIN, y), Anchor::Start),
                false => pen.text("", line, (self.across.0 - CHARACTER, y), Anchor::End),
            }
        }
        for (position, value) in row.values.iter().enumerate() {
            if let Some(value) = value {
                let y = place.values_top + (position as f64 + 0.5) * BAR;
                self.value(pen, &row.name, position, value, y);
            }
        }
    }

    fn value(&self, pen: &mut Pen, name: &str, position: usize, value: &Seen, y: f64) {
        let estimate = value.interval.estimate;
        if self.axis.place(estimate).is_none() {
            return;
        }
        let x = self.x(estimate);
        let ends = ends(value, self.axis, |value| self.x(value));
        let class = match self.plot.shape {
            RowShape::Bars => {
                let zero = self.x(0.0);
                pen.bar(
                    position,
                    [(zero, y - BAR / 2.0 + 2.0), (x, y + BAR / 2.0 - 2.0)],
                );
                "e".to_owned()
            }
            RowShape::Points => format!("s{}", position % SERIES),
        };
        let inside = spread(value, DOTS).filter(|(value, _)| !self.axis.leaves(*value));
        let dots: Vec<Spot> = inside
            .map(|(value, off)| (self.x(value), y + off))
            .collect();
        pen.dots(position, &dots);
        if value.interval.half_width() != 0.0 {
            pen.interval(&class, Along::X, y, ends);
        }
        let series = self
            .plot
            .series
            .get(position)
            .filter(|_| self.plot.series.len() > 1);
        let series = series.map_or(String::new(), |series| format!(", {series}"));
        pen.marker(position, (x, y), &words(name, &series, value, self.axis));
        if behind(self.plot) > 0.0 {
            let right = ends[1].at.max(x).max(self.x(0.0)) + CHARACTER;
            let text = significant(estimate / self.axis.fitting.size, 3);
            pen.text("w", &text, (right, y), Anchor::Start);
        }
    }
}
