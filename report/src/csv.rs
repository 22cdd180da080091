//! The tables and plots of a page as CSV (RFC 4180), for spreadsheets: every number with all its
//! digits, every interval in four columns; the confidence of a spread is empty.

use super::page::{Block, Page};
use super::table::{Cell, Column, Table, Value};
use csv::WriterBuilder;
use ugeom_harness::tidy::{Observation, Table as Tidy};
use ugeom_measure::Interval;

impl Page {
    /// The head of the page, and its tables and the values of its plots one below the other, with
    /// an empty line before each.
    pub fn to_csv(&self) -> String {
        let page = self.cleaned();
        let head = [("experiment", &page.experiment), ("asked", &page.asked)];
        let said = [("question", &page.question), ("answer", &page.answer)];
        let head_facts = page.facts_and_level();
        let facts = head_facts
            .iter()
            .map(|fact| (fact.name.as_str(), &fact.text));
        let entries = head.into_iter().chain(said).chain(facts);
        let entries = entries.map(|(name, text)| vec![harmless(name), harmless(text)]);
        let mut parts = vec![records(entries)];
        let mut heading = "";
        for block in &page.body().collect::<Vec<_>>() {
            match block {
                Block::Heading(text) => heading = text,
                Block::Table(one) => parts.push(table(one, heading)),
                Block::Plot(plot) => parts.push(table(&plot.table(), heading)),
                Block::Paragraph(_) | Block::List(_) | Block::Preformatted(_) => {}
            }
        }
        parts.join("\n")
    }
}

impl Page {
    /// The numbers of the tables and plots as lines of one table: for results without samples. The
    /// case is the first cell of a row, the metric the name of its column.
    pub fn observations(&self) -> Tidy {
        let page = self.cleaned();
        let mut lines = Vec::new();
        for block in page.body() {
            let table = match block {
                Block::Table(table) => table,
                Block::Plot(plot) => plot.table(),
                _ => continue,
            };
            for row in &table.rows {
                let case = row.first().map_or("", |cell| cell.text.as_str());
                for (column, cell) in table.columns.iter().zip(row) {
                    let value = match cell.value {
                        Some(Value::Number(value)) => value,
                        Some(Value::Interval(interval)) => interval.estimate,
                        None => continue,
                    };
                    lines.push(Observation {
                        experiment: page.experiment.clone(),
                        case: case.to_owned(),
                        metric: column.name.clone(),
                        round: 1,
                        value,
                        unit: cell.unit.as_ref().unwrap_or(&column.unit).clone(),
                        process: 1,
                    });
                }
            }
        }
        Tidy(lines)
    }
}

/// Records as lines of CSV (RFC 4180).
fn records(records: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut out = WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for record in records {
        // Memory does not refuse to be written to.
        let _ = out.write_record(record);
    }
    let bytes = out.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The width of a column.
struct Room<'a> {
    column: &'a Column,
    interval: bool,
    unit: bool,
}

fn table(table: &Table, heading: &str) -> String {
    let title = match table.title.as_str() {
        "" => heading,
        title => title,
    };
    let rooms: Vec<Room<'_>> = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = || table.rows.iter().filter_map(move |row| row.get(at));
            Room {
                column,
                interval: cells().any(|cell| matches!(cell.value, Some(Value::Interval(_)))),
                unit: cells().any(|cell| cell.unit.is_some()),
            }
        })
        .collect();
    let of_row = |row: &Vec<Cell>| {
        let fields = rooms
            .iter()
            .enumerate()
            .flat_map(|(at, room)| fields(room, row.get(at)));
        fields.collect()
    };
    let names = rooms.iter().flat_map(headings).collect();
    let head = [vec![harmless(title)], names];
    records(head.into_iter().chain(table.rows.iter().map(of_row)))
}

/// `time (ns)`, `time low (ns)`, `time high (ns)`, `time confidence`, `time unit`: as many
/// as there is room for.
fn headings(room: &Room<'_>) -> Vec<String> {
    let name = |suffix: &str| {
        let column = Column {
            name: format!("{}{suffix}", room.column.name),
            ..room.column.clone()
        };
        harmless(&column.heading())
    };
    let mut names = vec![name("")];
    if room.interval {
        names.extend([name(" low"), name(" high")]);
        names.push(harmless(&format!("{} confidence", room.column.name)));
    }
    if room.unit {
        names.push(harmless(&format!("{} unit", room.column.name)));
    }
    names
}

fn fields(room: &Room<'_>, cell: Option<&Cell>) -> Vec<String> {
    let value = cell.and_then(|cell| cell.value);
    let mut fields = match (value, cell) {
        (Some(Value::Number(value)), _) => vec![value.to_string()],
        (
            Some(Value::Interval(Interval {
                estimate,
                low,
                high,
                confidence,
            })),
            _,
        ) => {
            let numbers = [estimate, low, high].map(|value| value.to_string());
            // Percentiles have no confidence.
            let confidence = match confidence > 0.0 {
                true => confidence.to_string(),
                false => String::new(),
            };
            numbers.into_iter().chain([confidence]).collect()
        }
        (None, Some(cell)) => vec![harmless(&cell.text)],
        (None, None) => vec![String::new()],
    };
    fields.resize(if room.interval { 4 } else { 1 }, String::new());
    if room.unit {
        let unit = cell.and_then(|cell| cell.unit.as_deref());
        fields.push(harmless(unit.unwrap_or_default()));
    }
    fields
}

/// Text that no spreadsheet takes for a formula, of which it would run programs: CWE-1236.
fn harmless(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@']) && text.chars().count() > 1 {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}
