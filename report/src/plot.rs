//! The data of a plot. The renderer of the page decides how it is drawn.

use super::digits::{exact, in_words};
use super::table::{Cell, Column, Table, Value};
use ugeom_harness::figure::Figure;
use ugeom_measure::units::grouped;
use ugeom_measure::{Interval, Spread};

/// A drawing of a page. Output that cannot draw shows its values as a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Values over a continuous axis.
    Curves(Curves),
    /// Values of named things.
    Rows(Rows),
}

impl Plot {
    /// The values of the plot as a table: for output that cannot draw, and beside the drawing.
    pub fn table(&self) -> Table {
        match self {
            Self::Curves(plot) => plot.table(),
            Self::Rows(plot) => plot.table(),
        }
    }

    /// The title of the plot.
    pub fn title(&self) -> &str {
        match self {
            Self::Curves(plot) => &plot.title,
            Self::Rows(plot) => &plot.title,
        }
    }
}

/// A value with its interval, and the observations behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The estimate and its interval, in the unit of its axis.
    pub interval: Interval,
    /// The values behind it, in the same unit: one for each process or round. Empty where it is not
    /// known.
    pub raw: Vec<f64>,
}

impl From<Interval> for Seen {
    fn from(interval: Interval) -> Self {
        let raw = Vec::new();
        Self { interval, raw }
    }
}

impl From<&Figure> for Seen {
    fn from(figure: &Figure) -> Self {
        let (interval, raw) = (figure.interval, figure.values.clone());
        Self { interval, raw }
    }
}

impl From<&Spread> for Seen {
    fn from(spread: &Spread) -> Self {
        let (interval, raw) = (spread.interval(), spread.sorted().to_vec());
        Self { interval, raw }
    }
}

impl Seen {
    /// The same in another unit, by a function that keeps or turns the order of all values.
    pub fn map(&self, unit: impl Fn(f64) -> f64) -> Self {
        let ends = [self.interval.low, self.interval.high].map(&unit);
        let interval = Interval {
            estimate: unit(self.interval.estimate),
            low: ends[0].min(ends[1]),
            high: ends[0].max(ends[1]),
            confidence: self.interval.confidence,
        };
        let raw = self.raw.iter().map(|value| unit(*value)).collect();
        Self { interval, raw }
    }
}

/// An axis of a plot: its title, unit and scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The quantity of the axis: `block size`.
    pub title: String,
    /// The unit of the values; empty for plain numbers.
    pub unit: String,
    /// How they are spread.
    pub scale: Scale,
    /// Values are counts: a linear axis marks whole numbers only.
    pub counts: bool,
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
            counts: false,
        }
    }

    /// The same axis, of counts.
    pub fn of_counts(self) -> Self {
        Self {
            counts: true,
            ..self
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
    /// The title of the plot.
    pub title: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The vertical axis, with its unit.
    pub y: Axis,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
    /// Lines across the whole plot.
    pub marks: Vec<Mark>,
}

/// A curve with its points, as the legend names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// The kind of curve, which decides how it is drawn.
    pub kind: CurveKind,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// The kind of a curve.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Where, in the unit of the axis from left to right.
    pub x: f64,
    /// The value and its interval, in the unit of the axis upwards.
    pub y: Seen,
}

/// A line across the whole plot with a name: a limit, a knee.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The text beside the mark.
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

    /// Adds a curve to the plot.
    pub fn push(&mut self, curve: Curve) {
        self.curves.push(curve);
    }

    /// Adds a level line: a limit.
    pub fn level(&mut self, name: &str, at: f64) {
        self.mark(name, at, true);
    }

    fn table(&self) -> Table {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let of_x = Fitting::of(&self.x, points().map(|point| point.x));
        let of_y = Fitting::of(&self.y, points().map(|point| point.y.interval.estimate));
        let columns = [Column::text("curve"), of_x.column(), of_y.column()];
        let mut table = Table::new(&self.title, columns);
        // A model's points are no values: its parameters are, and stand elsewhere.
        let seen = |curve: &&Curve| curve.kind != CurveKind::Fitted;
        for curve in self.curves.iter().filter(seen) {
            for point in &curve.points {
                let name = Cell::text(&curve.name);
                table.row([name, of_x.number(point.x), of_y.measured(&point.y)]);
            }
        }
        for mark in &self.marks {
            let (x, y) = match mark.level {
                true => (Cell::empty(), of_y.number(mark.at)),
                false => (of_x.number(mark.at), Cell::empty()),
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
    /// A curve of measured values.
    pub fn measured(name: &str) -> Self {
        Self::new(name, CurveKind::Measured)
    }

    /// A curve of a model that was fitted to measured values.
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
    pub fn point(mut self, x: f64, y: impl Into<Seen>) -> Self {
        let y = y.into();
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
    /// The title of the plot.
    pub title: String,
    /// The axis of the values, from left to right.
    pub axis: Axis,
    /// How a value is drawn.
    pub shape: RowShape,
    /// The names of the series: each row has a value for each of them. One series needs no legend.
    pub series: Vec<String>,
    /// The rows, from the top.
    pub rows: Vec<PlotRow>,
    /// Lines across all rows: limits, goals.
    pub marks: Vec<Mark>,
    /// The table before it has the same values, so that text leaves the plot out.
    pub beside_table: bool,
}

/// A row of [`Rows`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlotRow {
    /// Label of the row.
    pub name: String,
    /// A value for each series; none where there is none.
    pub values: Vec<Option<Seen>>,
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
            beside_table: false,
        }
    }

    /// The same as the picture of the table before it, which has all its values.
    #[must_use]
    pub(crate) fn beside_table(mut self) -> Self {
        self.beside_table = true;
        self
    }

    /// Adds a row below the others.
    pub fn row<T: Into<Seen>>(&mut self, name: &str, values: impl IntoIterator<Item = Option<T>>) {
        let values = values.into_iter().take(self.series.len());
        self.rows.push(PlotRow {
            name: name.to_owned(),
            values: values.map(|value| value.map(Into::into)).collect(),
        });
    }

    fn table(&self) -> Table {
        let name = |series: &String| match (self.series.len(), series.as_str()) {
            (1, _) | (_, "") => self.axis.title.clone(),
            _ => series.clone(),
        };
        let values = self.rows.iter().flat_map(|row| row.values.iter().flatten());
        let fitting = Fitting::of(&self.axis, values.map(|value| value.interval.estimate));
        let series = self
            .series
            .iter()
            .map(|one| Column::number(&name(one), &fitting.unit));
        let mut table = Table::new(&self.title, [Column::text("")].into_iter().chain(series));
        for row in &self.rows {
            let value = |value: &Option<Seen>| {
                value
                    .as_ref()
                    .map_or_else(Cell::empty, |value| fitting.measured(value))
            };
            let values = row.values.iter().map(value);
            table.row([Cell::text(&row.name)].into_iter().chain(values));
        }
        for mark in &self.marks {
            table.row([Cell::text(&mark.name), fitting.number(mark.at)]);
        }
        table
    }

    /// Adds a line across all rows at a value.
    pub fn mark(&mut self, name: &str, at: f64) {
        let (name, level) = (name.to_owned(), false);
        self.marks.push(Mark { name, level, at });
    }
}

/// The unit in which the values of an axis are written: 333 ms, not 333,000,000 ns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitting {
    title: String,
    /// Name of the unit, as the axis shows it.
    pub unit: String,
    /// So many units of the axis are one of these.
    pub size: f64,
}

impl Fitting {
    /// The unit for the largest of these values.
    pub fn of(axis: &Axis, values: impl IntoIterator<Item = f64>) -> Self {
        const TIMES: [(&str, f64); 3] = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
        const SPEEDS: [(&str, f64); 2] = [("GB/s", 1e9), ("MB/s", 1e6)];
        let finite = values.into_iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0_f64, |most, value| most.max(value.abs()));
        let units: &[(&str, f64)] = match axis.unit.as_str() {
            "ns" => &TIMES,
            "bytes/s" => &SPEEDS,
            _ => &[],
        };
        let found = units.iter().find(|(_, size)| largest >= 10.0 * size);
        let (unit, size) = found.map_or((axis.unit.as_str(), 1.0), |(unit, size)| (*unit, *size));
        Self {
            title: axis.title.clone(),
            unit: unit.to_owned(),
            size,
        }
    }

    fn column(&self) -> Column {
        Column::number(&self.title, &self.unit)
    }

    /// A number with all its digits.
    fn number(&self, value: f64) -> Cell {
        let value = value / self.size;
        let text = match value.fract() == 0.0 && value.abs() < 1e15 {
            true if value >= 0.0 => grouped(value as u64),
            true => format!("{value}"),
            false => exact(value),
        };
        Cell::number(value, 0).shown_as(text)
    }

    fn measured(&self, value: &Seen) -> Cell {
        let interval = value.map(|value| value / self.size).interval;
        Cell::text(in_words(&interval)).with_value(Value::Interval(interval))
    }
}
