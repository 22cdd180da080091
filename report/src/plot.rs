//! What a plot shows. How it is drawn is the business of who shows the page.

use super::digits::{digits, in_words};
use super::table::{Cell, Column, Table, Value};
use ugeom_measure::Interval;

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Values over a continuous axis.
    Curves(Curves),
    /// Values of named things.
    Rows(Rows),
}

impl Plot {
    /// The values of the plot as a table: for whoever cannot draw, and beside the drawing.
    pub fn table(&self) -> Table {
        match self {
            Self::Curves(plot) => plot.table(),
            Self::Rows(plot) => plot.table(),
        }
    }

    /// What the plot shows.
    pub fn title(&self) -> &str {
        match self {
            Self::Curves(plot) => &plot.title,
            Self::Rows(plot) => &plot.title,
        }
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What is on it: `block size`.
    pub title: String,
    /// The unit of the values; empty for plain numbers.
    pub unit: String,
    /// How they are spread.
    pub scale: Scale,
}

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences; zero is on the axis.
    Linear,
    /// Equal steps for doublings. Values that are not above zero have no place on it.
    Log2,
    /// Equal steps for factors of ten. Values that are not above zero have no place on it.
    Log10,
    /// Quantiles from 0 to below 1 with equal steps for 0.9, 0.99, 0.999: the tail of a
    /// distribution is as wide as its body. 1 has no place on it.
    Nines,
}

impl Axis {
    /// A linear axis. The unit may be empty.
    pub fn linear(title: &str, unit: &str) -> Self {
        Self::new(title, unit, Scale::Linear)
    }

    /// A logarithmic axis with powers of ten.
    pub fn log10(title: &str, unit: &str) -> Self {
        Self::new(title, unit, Scale::Log10)
    }

    /// A logarithmic axis of sizes, with powers of two: 512, 1 KiB, 2 KiB.
    pub fn bytes(title: &str) -> Self {
        Self::new(title, "bytes", Scale::Log2)
    }

    /// An axis of quantiles, 0 to below 1.
    pub fn quantiles(title: &str) -> Self {
        Self::new(title, "", Scale::Nines)
    }

    fn new(title: &str, unit: &str, scale: Scale) -> Self {
        Self {
            title: title.to_owned(),
            unit: unit.to_owned(),
            scale,
        }
    }

    /// `rate (MB/s)`: the title, and the unit if there is one.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() {
            return self.title.clone();
        }
        format!("{} ({})", self.title, self.unit)
    }
}

/// Values over a continuous axis: a rate over block sizes, a latency over quantiles, a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// What the plot shows.
    pub title: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Lines across the whole plot.
    pub marks: Vec<Mark>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// What it is, which decides how it is drawn.
    pub kind: CurveKind,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// What a curve is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveKind {
    /// Measured values: markers with their intervals, joined by thin lines.
    Measured,
    /// A model: a line without markers.
    Fitted,
    /// A histogram: each value holds from its own place to the next one's.
    Steps,
    /// Ranges that stand for themselves, as places on a disk: markers, not joined.
    Ranges,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where, in the unit of the axis from left to right.
    pub x: f64,
    /// The value and its interval, in the unit of the axis upwards.
    pub y: Interval,
}

/// A line across the whole plot with a name: a limit, a knee.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// What it marks.
    pub name: String,
    /// Whether it is level, at a value of the axis upwards, and not upright.
    pub level: bool,
    /// Where, in the unit of its axis.
    pub at: f64,
}

impl Curves {
    /// A plot without curves.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self {
            title: title.to_owned(),
            x,
            y,
            curves: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds a curve.
    pub fn push(&mut self, curve: Curve) {
        self.curves.push(curve);
    }

    /// Adds a level line: a limit.
    pub fn level(&mut self, name: &str, at: f64) {
        self.mark(name, at, true);
    }

    fn table(&self) -> Table {
        let column = |axis: &Axis| Column::number(&axis.title, &axis.unit);
        let columns = [Column::text("curve"), column(&self.x), column(&self.y)];
        let mut table = Table::new(&self.title, columns);
        let exact = |value| Cell::number(value, 0).shown_as(digits(value));
        // A model's points are no values: its parameters are, and stand elsewhere.
        let seen = |curve: &&Curve| curve.kind != CurveKind::Fitted;
        for curve in self.curves.iter().filter(seen) {
            for point in &curve.points {
                let x = exact(point.x);
                table.row([Cell::text(&curve.name), x, measured(&point.y)]);
            }
        }
        for mark in &self.marks {
            let (x, y) = match mark.level {
                true => (Cell::empty(), exact(mark.at)),
                false => (exact(mark.at), Cell::empty()),
            };
            table.row([Cell::text(&mark.name), x, y]);
        }
        table
    }

    /// Adds an upright line: a knee.
    pub fn upright(&mut self, name: &str, at: f64) {
        self.mark(name, at, false);
    }

    fn mark(&mut self, name: &str, at: f64, level: bool) {
        let name = name.to_owned();
        self.marks.push(Mark { name, level, at });
    }
}

impl Curve {
    /// Measured values.
    pub fn measured(name: &str) -> Self {
        Self::new(name, CurveKind::Measured)
    }

    /// A model.
    pub fn fitted(name: &str) -> Self {
        Self::new(name, CurveKind::Fitted)
    }

    /// A histogram. Its last point says only where the one before it ends.
    pub fn steps(name: &str) -> Self {
        Self::new(name, CurveKind::Steps)
    }

    /// Ranges that are not joined.
    pub fn ranges(name: &str) -> Self {
        Self::new(name, CurveKind::Ranges)
    }

    fn new(name: &str, kind: CurveKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            points: Vec::new(),
        }
    }

    /// The same curve with one more point.
    #[must_use]
    pub fn point(mut self, x: f64, y: Interval) -> Self {
        self.points.push(Point { x, y });
        self
    }

    /// The same curve with one more point that has no interval.
    #[must_use]
    pub fn exact(self, x: f64, y: f64) -> Self {
        self.point(x, Interval::exact(y, 0.95))
    }
}

/// Values of named things, a row each, beside an axis that all share: what layers cost, the steps
/// of a ladder. The names stand to the left, so that they may be long.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// What the plot shows.
    pub title: String,
    /// The axis of the values, from left to right.
    pub axis: Axis,
    /// How a value is drawn.
    pub shape: RowShape,
    /// The names of the series: each row has a value for each of them. One series needs no legend.
    pub series: Vec<String>,
    /// The rows, from the top.
    pub rows: Vec<Row>,
    /// Lines across all rows: limits, goals.
    pub marks: Vec<Mark>,
}

/// A row of [`Rows`].
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// A value for each series; none where there is none.
    pub values: Vec<Option<Interval>>,
}

/// How the values of rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowShape {
    /// A bar from zero with the interval at its end; for amounts.
    Bars,
    /// A marker with its interval; for steps that are compared.
    Points,
}

impl Rows {
    /// Bars from zero, one for each series in each row.
    pub fn bars<T: Into<String>>(
        title: &str,
        axis: Axis,
        series: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::new(title, axis, series, RowShape::Bars)
    }

    /// Markers, one for each series in each row.
    pub fn points<T: Into<String>>(
        title: &str,
        axis: Axis,
        series: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::new(title, axis, series, RowShape::Points)
    }

    fn new<T: Into<String>>(
        title: &str,
        axis: Axis,
        series: impl IntoIterator<Item = T>,
        shape: RowShape,
    ) -> Self {
        Self {
            title: title.to_owned(),
            axis,
            shape,
            series: series.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds a row below the others.
    pub fn row(&mut self, name: &str, values: impl IntoIterator<Item = Option<Interval>>) {
        self.rows.push(Row {
            name: name.to_owned(),
            values: values.into_iter().take(self.series.len()).collect(),
        });
    }

    fn table(&self) -> Table {
        let name = |series: &String| match (self.series.len(), series.as_str()) {
            (1, _) | (_, "") => self.axis.title.clone(),
            _ => series.clone(),
        };
        let series = self
            .series
            .iter()
            .map(|one| Column::number(&name(one), &self.axis.unit));
        let mut table = Table::new(&self.title, [Column::text("")].into_iter().chain(series));
        for row in &self.rows {
            let value = |value: &Option<Interval>| value.as_ref().map_or(Cell::empty(), measured);
            let values = row.values.iter().map(value);
            table.row([Cell::text(&row.name)].into_iter().chain(values));
        }
        for mark in &self.marks {
            let at = Cell::number(mark.at, 0).shown_as(digits(mark.at));
            table.row([Cell::text(&mark.name), at]);
        }
        table
    }

    /// Adds a line across all rows at a value.
    pub fn mark(&mut self, name: &str, at: f64) {
        let (name, level) = (name.to_owned(), false);
        self.marks.push(Mark { name, level, at });
    }
}

/// A value of a plot as a cell.
fn measured(value: &Interval) -> Cell {
    Cell::text(in_words(value)).with_value(Value::Interval(*value))
}
