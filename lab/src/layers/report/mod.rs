//! The report of an experiment about layers: a first page that needs no other text, and the
//! sections behind it. It is made from the document alone.
//!
//! The first page: the machine and its noise; the question; the answer in one sentence with its
//! interval; eight rows at most; what they mean; then and now; what cannot be concluded; the next
//! command. Words of the trade are explained where they come first.

mod meaning;
mod page;
mod rows;
mod sections;
#[cfg(test)]
mod tests;

use super::subject::Document;
use ugeom_report::head;
use ugeom_report::text::{Align, in_a_shell, paragraph, table};

pub use page::page;

/// The report as text, at most 100 columns wide; with the sections behind the first page when
/// `all`.
pub fn report(document: &Document, all: bool) -> String {
    let mut out = String::from("ugeom lab layers: what does a layer cost?\n\n");
    out.push_str(&head::text(document, &document.subject.left_out));
    out.push('\n');
    let question = format!("THE QUESTION: {}", question(document));
    out.push_str(&paragraph(&question, 0, 0));
    out.push('\n');
    let answer = format!("THE ANSWER: {}", meaning::answer(document));
    out.push_str(&paragraph(&answer, 0, 0));
    out.push('\n');
    out.push_str(&rows::published(document));
    out.push('\n');
    out.push_str(&list("WHAT IT MEANS", &meaning::findings(document)));
    out.push('\n');
    out.push_str(&rows::then_and_now(document));
    out.push('\n');
    out.push_str(&list(
        "WHAT CANNOT BE CONCLUDED",
        &meaning::limits(document),
    ));
    out.push('\n');
    if all {
        out.push_str(&sections::sections(document));
    }
    out.push_str(&next(document, all));
    out
}

fn list(heading: &str, lines: &[String]) -> String {
    let points = lines
        .iter()
        .map(|line| paragraph(&format!("- {line}"), 2, 4));
    format!("{heading}\n{}", points.collect::<String>())
}

/// The machine, and the figures that were to be reached; for `cargo bench`.
pub fn goals_report(document: &Document) -> String {
    let mut out = head::text(document, &document.subject.left_out);
    out.push('\n');
    out.push_str(&sections::goals(document).unwrap_or_default());
    out.push('\n');
    let blocks = document.blocks();
    out.push_str(&sections::piles(document, &blocks).unwrap_or_default());
    out
}

/// The longest name of a provider that is printed in a table, in characters.
const NAME_CHARS_MAX: usize = 24;

/// A provider's name, or the end of it: there lies what tells one from another.
fn short_name(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(count + 3 - NAME_CHARS_MAX).collect();
    format!("...{tail}")
}

fn question(document: &Document) -> String {
    let subject = &document.subject;
    let device = match &subject.target {
        None => "a memory disk (md0), the slice that the MBR in its first sector describes \
                 (md0s1), and the BSD partition inside that slice (md0s1c)"
            .to_owned(),
        Some(target) => {
            let names = subject.chain.iter().map(|link| short_name(&link.provider));
            let names: Vec<String> = names.collect();
            format!("{target}, read as {}", names.join(", then as "))
        }
    };
    format!(
        "A disk can be read through layers: here {device}. Whatever can be read so \
         is a provider; a layer that does no more than move the place that is read is a slicer; \
         the machinery that carries a request from layer to layer is GEOM. What do GEOM and each \
         layer add to a read of {} bytes, and does it matter beside the disk's own time?",
        subject.read_bytes
    )
}

/// The command that asks the question again, without options.
fn command(document: &Document) -> String {
    match &document.subject.target {
        None => "ugeom lab layers".to_owned(),
        Some(target) => format!("ugeom lab layers {}", in_a_shell(target)),
    }
}

fn next(document: &Document, all: bool) -> String {
    let this = command(document);
    let (other, why) = match &document.subject.target {
        None => (
            "ugeom lab layers DISK".to_owned(),
            "the same for your own disk or image, which is only read",
        ),
        Some(_) => (
            "ugeom lab layers".to_owned(),
            "the same on a memory disk, with piles of layers",
        ),
    };
    let mut rows = vec![vec![other, why.to_owned()]];
    if !all {
        let all_of_it = "the full matrix, all tables, and what was to be reached";
        rows.push(vec![format!("{this} --all"), all_of_it.to_owned()]);
    }
    if document.settings.budget_ns.is_some() {
        let full = "as many rounds as precision needs";
        rows.push(vec![format!("{this} --full"), full.to_owned()]);
    }
    "NEXT\n".to_owned() + &table(2, &[Align::Left; 2], &rows)
}
