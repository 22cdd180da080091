//! Reports as one HTML file that needs nothing else: styles and plots are in it, the results can
//! be saved from it, and its policy forbids scripts and everything from elsewhere.

use super::gzip::gzip;
use super::page::{Block, Fact, Page};
use super::plot::Plot;
use super::saved::{Form, Saved};
use super::svg::{small, svg};
use super::table::Table;
use crate::text::{Align, counted};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ugeom_measure::units::size_human;

const STYLE: &str = include_str!("report.css");

/// The permissions of the page: show itself. Nothing is fetched and nothing is run, whatever a
/// result from elsewhere says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'";

/// The reports of results as one HTML file that needs nothing else.
pub fn to_html(results: &[Saved]) -> String {
    let titles: Vec<String> = results
        .iter()
        .map(|result| result.page().cleaned().asked)
        .collect();
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(concat!("ugeom ", env!("CARGO_PKG_VERSION")));
                title { "ugeom report: " (titles.join(", ")) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @if results.len() > 1 { (overview(results)) }
                @for (number, result) in results.iter().enumerate() {
                    (article(number, result, results.len() == 1))
                }
                footer {
                    "Made by " (concat!("ugeom ", env!("CARGO_PKG_VERSION")))
                    ". Values in parentheses are intervals; the head of each page states their \
                     level. This file is self-contained: it loads nothing and runs no scripts."
                }
            }
        }
    };
    document.into_string()
}

/// All answers, each as a plot, with links to their pages.
fn overview(results: &[Saved]) -> Markup {
    html! {
        header {
            h1 { "The answers" }
            div .cards {
                @for (number, result) in results.iter().enumerate() {
                    @let page = result.page().cleaned();
                    section .card {
                        h2 { a href={ "#r" (number) } { code { (page.asked) } } }
                        @if !page.question.is_empty() { p .question { (sentence(&page.question)) } }
                        p { b { (page.answer) } }
                        @if let Some(drawing) = page.picture.as_ref().and_then(small) {
                            figure { (PreEscaped(drawing)) }
                        }
                        p .certainty {
                            @if let Some(certainty) = certainty(&page) { (certainty) ". " }
                            a href={ "#r" (number) } { "Tables and plots" }
                        }
                    }
                }
            }
        }
    }
}

/// How certain an answer is: its interval, where it has one, and the number of warnings.
fn certainty(page: &Page) -> Option<String> {
    let warnings = match page.warnings.len() {
        0 => None,
        some => Some(counted(some as u64, "warning")),
    };
    let certainty = Some(page.certain()).filter(|it| !it.is_empty());
    let parts: Vec<String> = certainty.into_iter().chain(warnings).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A text that begins with a capital.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn article(number: usize, result: &Saved, alone: bool) -> Markup {
    let page = result.page().cleaned();
    html! {
        article id={ "r" (number) } {
            h1 { code { (page.asked) } }
            @if !page.question.is_empty() { p .question { (sentence(&page.question)) } }
            @if !page.answer.is_empty() { p .answer { (page.answer) } }
            @if let Some(plot) = page.picture.as_ref().filter(|_| alone) { (drawn(plot)) }
            @let head = page.facts_and_level();
            @if !head.is_empty() { (facts(&head)) }
            @for one in page.body() { (block(&one)) }
            (data(number, result, &page))
        }
    }
}

fn facts(facts: &[Fact]) -> Markup {
    html! {
        dl {
            @for fact in facts {
                dt { (fact.name) }
                dd { (prose(&fact.text)) }
            }
        }
    }
}

/// A text with its code, which stands between backticks, set as code.
fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    let is_paired = !parts.len().is_multiple_of(2);
    html! {
        @if !is_paired { (text) }
        @for (number, part) in parts.iter().enumerate().filter(|_| is_paired) {
            @if number.is_multiple_of(2) { (part) } @else { code { (part) } }
        }
    }
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Heading(text) => html! { h2 { (text) } },
        Block::Paragraph(text) => html! { p { (prose(text)) } },
        Block::List(items) => html! { ul { @for item in items { li { (prose(item)) } } } },
        Block::Table(one) => table(one),
        Block::Preformatted(text) => html! { pre { (text) } },
        Block::Plot(plot) => drawn(plot),
    }
}

fn drawn(plot: &Plot) -> Markup {
    let values = plot.table();
    html! {
        figure role="group" aria-label=(plot.title()) {
            @match svg(plot) {
                Some(drawing) => (PreEscaped(drawing)),
                None => p { (plot.title()) ": there is nothing to draw." },
            }
            @if !values.rows.is_empty() {
                details {
                    summary { "The values of this plot" }
                    (rows(&values))
                }
            }
        }
    }
}

/// A longer table is folded: a page is read first and looked up later.
const ROWS_OPEN: usize = 16;

fn table(table: &Table) -> Markup {
    if table.rows.len() <= ROWS_OPEN {
        return rows(table);
    }
    let title = match table.title.as_str() {
        "" => "Table",
        title => title,
    };
    html! {
        details {
            summary { (title) " (" (counted(table.rows.len() as u64, "row")) ")" }
            (rows(table))
        }
    }
}

fn rows(table: &Table) -> Markup {
    let side = |align| match align {
        Align::Left => "l",
        Align::Right => "r",
    };
    html! {
        div .table {
            table {
                @if !table.title.is_empty() { caption { (table.title) } }
                thead {
                    tr {
                        @for column in &table.columns {
                            th class=(side(column.align)) scope="col" { (column.heading()) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, column) in table.columns.iter().enumerate() {
                                td class=(side(column.align)) {
                                    @if let Some(cell) = row.get(at) { (cell.text) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The machine and the settings as they were saved, and everything to keep.
fn data(number: usize, result: &Saved, page: &Page) -> Markup {
    let name = format!("{}-{}", page.experiment, number + 1);
    let json = result.json();
    let packed = gzip(json.as_bytes());
    let csv = page.to_csv();
    let (extension, what) = match result.form() {
        Form::Json => (".json.gz", "every sample as JSON"),
        Form::Foreign => (".gz", "the result as it was read"),
    };
    html! {
        h2 .save { "The data" }
        @for (title, entries) in result.details() {
            details {
                summary { (title) }
                dl .data { @for (name, text) in entries { dt { (name) } dd { (text) } } }
            }
        }
        p .save {
            "Save: "
            a download={ (name) (extension) } href=(link("application/gzip", &packed)) { (what) }
            " (gzip, " (size_human(packed.len() as u64)) " of " (size_human(json.len() as u64))
            "), "
            a download={ (name) ".csv" } href=(link("text/csv", csv.as_bytes())) {
                "the tables as CSV"
            }
            " (" (size_human(csv.len() as u64)) ")."
        }
    }
}

/// A link that holds its target.
fn link(media_type: &str, data: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(data))
}
