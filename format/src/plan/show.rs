//! A table as `gpart show` prints it.

use super::{Part, Table};
use crate::plan::space::Span;
use crate::text::visible;

/// One line of a listing after its heading, in the order of the sectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A partition, with its defects.
    Part {
        /// Its place, type and label.
        part: Part,
        /// "past the end", "overlaps 2": empty for a healthy one.
        marks: Vec<String>,
    },
    /// Sectors that no partition has.
    Free(Span),
}

/// The content of the column after the sectors, and of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Column {
    /// gpart's usual columns: index and type.
    #[default]
    Type,
    /// Index and label (`gpart show -l`).
    Label,
    /// Index and the type's number or GUID (`gpart show -r`).
    RawType,
    /// Provider name and type (`gpart show -p`).
    Provider,
    /// Provider name and label (`gpart show -lp`).
    ProviderLabel,
    /// Provider name and the type's number or GUID (`gpart show -rp`).
    ProviderRawType,
}

impl Table {
    /// Partitions and free space in the order of their sectors.
    pub fn rows(&self) -> Vec<Row> {
        let mut parts = self.parts();
        parts.sort_by_key(|part| (part.start, part.index));
        let media_sectors = self.media().sectors;
        let mut rows: Vec<(u64, Row)> = self
            .free()
            .into_iter()
            // A table of a larger disk has free space past the end of this one.
            .filter(|span| span.start < media_sectors)
            .map(|mut span| {
                span.sectors = span.sectors.min(media_sectors - span.start);
                (span.start, Row::Free(span))
            })
            .collect();
        let mut reach: Option<(u32, u64)> = None;
        for part in parts {
            let end = part.start.saturating_add(part.sectors);
            let mut marks = Vec::new();
            if part.sectors == 0 {
                marks.push("ends before it begins".to_owned());
            }
            if end > media_sectors {
                marks.push("past the end".to_owned());
            }
            if let Some((other, after)) = reach
                && part.sectors > 0
                && part.start < after
            {
                marks.push(format!("overlaps {other}"));
            }
            if reach.is_none_or(|(_, after)| end > after) {
                reach = Some((part.index, end));
            }
            rows.push((part.start, Row::Part { part, marks }));
        }
        rows.sort_by_key(|row| row.0);
        rows.into_iter().map(|row| row.1).collect()
    }

    /// The listing of `gpart show`, with marks in brackets after what is
    /// wrong; it ends with an empty line, as gpart's does.
    pub fn show(&self, provider: &str, column: Column) -> String {
        self.show_with(provider, column, &|_| None)
    }

    /// The same, with the content of a partition at the end of its line.
    pub fn show_with(
        &self,
        provider: &str,
        column: Column,
        content: &dyn Fn(&Part) -> Option<String>,
    ) -> String {
        let provider = &visible(provider);
        let (first, last) = self.usable();
        let rows = self.rows();
        let digits = last.to_string().len();
        let named = |part: &Part| match column {
            Column::Provider | Column::ProviderLabel | Column::ProviderRawType => {
                format!("{provider}{}", part.suffix)
            }
            _ => part.index.to_string(),
        };
        let width = rows
            .iter()
            .map(|row| match row {
                Row::Part { part, .. } => named(part).chars().count(),
                Row::Free(_) => 0,
            })
            .fold(provider.chars().count(), usize::max);
        let unit = u64::from(self.media().sector_size_bytes);
        let media_size = human_size(self.media().sectors.saturating_mul(unit));
        let corrupt = match self {
            Table::Gpt(table) if table.is_doubtful() => " [DAMAGED]",
            _ if self.damage().is_empty() => "",
            _ => " [CORRUPT]",
        };
        let sectors = last.saturating_add(1).saturating_sub(first);
        let scheme = self.scheme();
        let mut text = format!(
            "=>{first:>digits$}  {sectors:>digits$}  {provider:>width$}  \
             {scheme}  ({media_size}){corrupt}\n"
        );
        for row in &rows {
            let (start, sectors, name, what, content) = match row {
                Row::Free(span) => {
                    let what = "- free - ".to_owned();
                    (span.start, span.sectors, String::new(), what, None)
                }
                Row::Part { part, marks } => (
                    part.start,
                    part.sectors,
                    named(part),
                    describe(part, marks, column),
                    content(part),
                ),
            };
            let content =
                content.map_or_else(String::new, |content| format!("  {}", visible(&content)));
            let size = human_size(sectors.saturating_mul(unit));
            let line = format!(
                "  {start:>digits$}  {sectors:>digits$}  {name:>width$}  {what} ({size}){content}\n"
            );
            text.push_str(&line);
        }
        text.push('\n');
        text
    }
}

/// Type or label, then attributes and marks in brackets, then a space.
fn describe(part: &Part, marks: &[String], column: Column) -> String {
    let text = match column {
        Column::Type | Column::Provider => part.kind.clone(),
        Column::RawType | Column::ProviderRawType => part.raw_kind.clone(),
        Column::Label | Column::ProviderLabel => match part.label.as_deref() {
            None | Some("") => "(null)".to_owned(),
            Some(label) => label.to_owned(),
        },
    };
    let mut text = visible(&text);
    text.push(' ');
    let brackets: Vec<&str> = part
        .attributes
        .iter()
        .copied()
        .chain(marks.iter().map(String::as_str))
        .collect();
    if !brackets.is_empty() {
        text.push_str(&format!(" [{}] ", brackets.join(",")));
    }
    text
}

/// A size in bytes in at most four characters, powers of 1024, as FreeBSD's
/// `humanize_number(3)` prints it for gpart and diskinfo: `512B`, `1.0M`,
/// `932G`.
pub fn human_size(bytes: u64) -> String {
    const UNITS: [char; 7] = ['B', 'K', 'M', 'G', 'T', 'P', 'E'];
    let (mut whole, mut rest, mut unit) = (bytes, 0, 0);
    while (whole >= 1000 || (whole == 999 && rest >= 512)) && unit + 1 < UNITS.len() {
        (whole, rest) = (whole / 1024, whole % 1024);
        unit += 1;
    }
    let tenths = whole * 10 + (rest * 10 + 512) / 1024;
    let letter = UNITS[unit];
    if unit > 0 && tenths < 100 {
        return format!("{}.{}{letter}", tenths / 10, tenths % 10);
    }
    format!("{}{letter}", whole + (rest + 512) / 1024)
}
