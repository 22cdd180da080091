//! Reports: the result of an experiment as a [`Page`] that is written once and shown as text for
//! the terminal ([`Page::to_text`]), as Markdown ([`Page::to_markdown`]), as CSV ([`Page::to_csv`])
//! and, with the results themselves, as one HTML file ([`to_html`]).
//!
//! A page is made from a saved [`ugeom_harness::document::Document`] and nothing else, so that a
//! result reads the same later. It has a question, an answer in a sentence, facts about the machine
//! and the measurement, and blocks: headings, paragraphs, lists, tables, plots, preformatted lines.
//! A number in a table keeps its value and its interval beside its text, and a plot keeps its
//! points, so that nothing has to be read back from words.
//!
//! ```
//! use ugeom_report::{Axis, Cell, Column, Curve, Curves, Page, Rows, Table};
//! use ugeom_measure::Interval;
//!
//! let time = Interval::around(21.2, 0.1, 0.95);
//! let mut page = Page::new("layers", "ugeom lab layers");
//! page.fact("machine", "2 cores of an example");
//! page.question = "What does a layer cost?".to_owned();
//! page.answer = "Each layer adds 1.9 ns (1.8 to 2.0) to a read.".to_owned();
//!
//! page.heading("As published");
//! page.paragraph("The time of one read.");
//! let mut table = Table::headed("Reads of 512 bytes", "what", "time (ns)");
//! table.row([Cell::text("md0"), Cell::interval(&time, 1)]);
//! page.push(table);
//!
//! let mut bars = Rows::bars("What each layer adds", Axis::linear("time", "ns"), ["direct"]);
//! bars.row("md0", [Some(time)]);
//! page.push(bars);
//!
//! let (size, rate) = (Axis::bytes("block size"), Axis::log10("rate", "MB/s"));
//! let mut curves = Curves::new("Sequential reads", size, rate);
//! curves.push(Curve::measured("direct").point(512.0, time).point(1024.0, time));
//! curves.push(Curve::fitted("model").exact(512.0, 21.0).exact(1024.0, 21.4));
//! curves.level("limit", 56.0);
//! page.push(curves);
//!
//! assert!(page.to_text(100).contains("21.2 (21.1 to 21.3)"));
//! ```

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod clean;
pub mod compare;
mod csv;
mod digits;
mod drift;
#[cfg(test)]
mod fixture;
pub mod foreign;
mod gzip;
pub mod head;
mod html;
mod level;
mod markdown;
mod page;
mod plot;
mod saved;
mod screen;
mod series;
mod svg;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
pub mod text;

pub use html::to_html;
pub use page::{Block, Fact, Page};
pub use plot::{
    Axis, Curve, CurveKind, Curves, Mark, Plot, PlotRow, Point, RowShape, Rows, Scale, Seen,
};
pub use saved::Saved;
pub use screen::{Style, WIDTH_MIN};
pub use svg::escaped;
pub use table::{Cell, Column, Table, Value};
