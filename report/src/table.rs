//! Tables whose numbers keep their values: the text is for people, the value for CSV.

use crate::text::Align;
use ugeom_harness::figure::{Figure, Unit};
use ugeom_measure::Interval;
use ugeom_measure::units::grouped;

/// Rows of cells under named columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The title; empty when the heading above is enough.
    pub title: String,
    /// The columns, from the left.
    pub columns: Vec<Column>,
    /// The rows. Each has at most one cell a column; those that are missing are empty.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading of the column.
    pub name: String,
    /// The unit of its values; empty for words, for plain numbers and where each cell has its own.
    pub unit: String,
    /// On which side its cells stand.
    pub align: Align,
}

/// A cell: what is shown, and the value behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The text of the cell, as it is printed.
    pub text: String,
    /// The number, in the unit of the cell or of the column; none for words.
    pub value: Option<Value>,
    /// The unit of the value where it is not that of the column.
    pub unit: Option<String>,
}

/// The number of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number without uncertainty, or one whose uncertainty is not known.
    Number(f64),
    /// An estimate with its interval.
    Interval(Interval),
}

impl Table {
    /// A table without rows. The title may be empty.
    pub fn new(title: &str, columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// A table without rows, with columns of words and then columns of numbers. Both are lists of
    /// headings as they are printed: `"requests | mean (us)"`, with the unit in brackets.
    pub fn headed(title: &str, words: &str, numbers: &str) -> Self {
        let words = words.split(" | ").map(Column::text);
        let numbers = numbers.split(" | ").filter(|heading| !heading.is_empty());
        let numbers = numbers.map(|heading| {
            let unit = heading.strip_suffix(')').and_then(|it| it.rsplit_once('('));
            let (name, unit) = unit.unwrap_or((heading, ""));
            Column::number(name.trim_end(), unit)
        });
        Self::new(title, words.chain(numbers))
    }

    /// Adds a row. Cells that have no column are left out.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = cells.into_iter().take(self.columns.len()).collect();
        self.rows.push(cells);
    }
}

impl Column {
    /// A column of words, set to the left.
    pub fn text(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            unit: String::new(),
            align: Align::Left,
        }
    }

    /// A column of numbers, set to the right. The unit may be empty.
    pub fn number(name: &str, unit: &str) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            align: Align::Right,
        }
    }

    /// `time (ns)`: the name, and the unit if there is one.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() {
            return self.name.clone();
        }
        format!("{} ({})", self.name, self.unit).trim().to_owned()
    }
}

impl Cell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            value: None,
            unit: None,
        }
    }

    /// A cell without text.
    pub fn empty() -> Self {
        Self::text("")
    }

    /// A whole number, its digits in groups of three.
    pub fn count(number: u64) -> Self {
        Self::text(grouped(number)).with_value(Value::Number(number as f64))
    }

    /// A number, shown with so many digits behind the point.
    pub fn number(number: f64, decimals: usize) -> Self {
        Self::text(fixed(number, decimals)).with_value(Value::Number(number))
    }

    /// `21.2 (21.1 to 21.3)`, a spread `21.2 [21.1 to 21.3]`: an estimate and its interval, with so
    /// many digits behind the point.
    pub fn interval(interval: &Interval, decimals: usize) -> Self {
        let values = [interval.estimate, interval.low, interval.high];
        let [estimate, low, high] = values.map(|value| fixed(value, decimals));
        let text = format!("{estimate} {}", interval.ends(low, high));
        Self::text(text).with_value(Value::Interval(*interval))
    }

    /// An interval in the words that figures are written in, with its unit.
    pub fn amount(interval: &Interval, unit: Unit) -> Self {
        let mut cell = Self::text(ugeom_harness::figure::amount(interval, unit));
        cell.unit = Some(unit_symbol(unit).to_owned());
        cell.with_value(Value::Interval(*interval))
    }

    /// The estimate and the interval of a figure, with its unit.
    pub fn figure(figure: &Figure) -> Self {
        Self::amount(&figure.interval, figure.unit)
    }

    /// The same cell with other words for its value.
    #[must_use]
    pub fn shown_as(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// The same cell with a value behind its words.
    #[must_use]
    pub fn with_value(mut self, value: Value) -> Self {
        self.value = Some(value);
        self
    }
}

/// The unit of a figure as columns and axes write it.
pub(super) fn unit_symbol(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "ns",
        Unit::NsPerLayer => "ns a layer",
        Unit::Times => "x",
        Unit::Percent => "%",
        Unit::Bytes => "bytes",
        Unit::PerSecond => "/s",
        Unit::BytesPerSecond => "bytes/s",
    }
}

/// A number with a fixed count of decimals, the digits before the point in groups of three from
/// 10,000 on.
pub(super) fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let digits = text.trim_start_matches('-');
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    match whole.parse::<u64>() {
        Ok(value) if value >= 10_000 => {
            let sign = if text.starts_with('-') { "-" } else { "" };
            format!("{sign}{}{rest}", grouped(value))
        }
        _ => text,
    }
}
