//! The report of documents whose costs are known, against the text that a reader gets.

use super::*;
use crate::layers::{compute, fixture};
use ugeom_harness::Ended;
use ugeom_harness::host::Host;
use ugeom_report::Block;
use ugeom_report::text::WIDTH;

fn computed(rounds: usize) -> Document {
    let mut document = fixture::document(rounds);
    compute(&mut document);
    document
}

/// The text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(
            line.chars().count() <= WIDTH,
            "wider than {WIDTH} columns: {line}"
        );
    }
}

/// The text is kept in a file, so that a change of a word is seen as a change of a word. To take a
/// new one over, copy it from the message.
#[test]
fn the_report_reads_as_it_did() {
    let text = report(&computed(12), true);
    assert_fits(&text);
    let expected = include_str!("expected.txt");
    assert!(
        text.trim_end() == expected.trim_end(),
        "the report has changed; it now reads:\n{text}"
    );
}

#[test]
fn the_first_page_is_the_report_without_its_sections() {
    let document = computed(12);
    let (page, whole) = (report(&document, false), report(&document, true));
    assert!(page.contains("ugeom lab layers --all") && !page.contains("EVERY CELL"));
    let end = page.find("NEXT").unwrap();
    assert!(whole.starts_with(&page[..end]));
    assert!(page.lines().count() < 80, "{} lines", page.lines().count());
    let rows = page.lines().filter(|line| line.contains(" Samples: "));
    assert_eq!(rows.count(), 8);
}

#[test]
fn every_word_of_the_trade_is_explained() {
    let page = report(&computed(12), false);
    for explained in [
        "is a provider",
        "is a slicer",
        "is GEOM",
        "All direct: the thread that",
        "Queued instead of direct (GEOM's own threads",
        "stands the interval in which",
        "A/A: the same thing measured twice",
    ] {
        assert!(
            flat(&page).contains(explained),
            "not explained: {explained}"
        );
    }
}

#[test]
fn a_stopped_measurement_says_what_it_lacks_and_claims_nothing() {
    let mut document = fixture::document(2);
    document.processes[0].ended = Ended::Cancelled;
    compute(&mut document);
    let text = report(&document, true);
    assert_fits(&text);
    assert!(
        text.contains("There is none yet: 2 rounds are too few for an interval"),
        "{text}"
    );
    assert!(text.contains("stopped by you") && text.contains("too few rounds"));
    assert_fits(&report(&fixture::document(0), true));
}

#[test]
fn what_is_not_proven_is_not_claimed() {
    let mut document = fixture::document(12);
    let cells: Vec<(String, f64)> = fixture::cells()
        .into_iter()
        .map(|(name, ns)| {
            if name.starts_with("direct/") {
                (name, 30.0)
            } else {
                (name, ns)
            }
        })
        .collect();
    document.processes = vec![fixture::measured(&cells, 12, 3)];
    compute(&mut document);
    let text = report(&document, false);
    let flat = flat(&text);
    assert!(
        flat.contains("what each layer adds is not proven, "),
        "{text}"
    );
    assert!(
        flat.contains("mbr") && flat.contains("not proven"),
        "{text}"
    );
}

#[test]
fn a_busy_machine_is_doubted_and_cpu_time_stands_beside() {
    let mut document = fixture::document(12);
    document.host = Host {
        load: [3.5, 2.0, 1.0],
        ..document.host
    };
    for round in &mut document.processes[0].rounds {
        round
            .samples
            .iter_mut()
            .for_each(|sample| sample.cpu.thread_ns = sample.wall_ns / 2);
    }
    compute(&mut document);
    let text = report(&document, true);
    assert_fits(&text);
    let flat = flat(&text);
    assert!(
        flat.contains("other work is running (load 3.5 on 2 cores)"),
        "{text}"
    );
    assert!(
        flat.contains("had a core for 50 % of the time only"),
        "{text}"
    );
    assert!(flat.contains("by CPU time alone") && flat.contains("Much from absolute times"));
    let page = page(&document).to_text(WIDTH);
    assert!(page.contains("by CPU time alone") && page.contains("by the time that passed"));
}

#[test]
fn a_target_is_quoted_for_the_shell_where_it_must_be() {
    assert_eq!(in_a_shell("/dev/sda@s1"), "/dev/sda@s1");
    assert_eq!(in_a_shell("md:64m | nop"), "'md:64m | nop'");
    assert_eq!(in_a_shell("it's.img"), "'it'\\''s.img'");
}

#[test]
fn a_long_chain_with_long_names_keeps_to_the_page() {
    let mut document = fixture::document(12);
    let subject = &mut document.subject;
    subject.target = Some("a-rather-long-name-of-an-image.img".to_owned());
    let link = subject.chain[2].clone();
    for depth in 0..6 {
        let provider = format!("a-rather-long-name-of-an-image.img{}", ".nop".repeat(depth));
        subject.chain.push(super::super::Link {
            provider,
            ..link.clone()
        });
    }
    let mut cells = fixture::cells();
    for link in &subject.chain {
        cells.push((super::super::names::direct(&link.provider), 40.0));
    }
    document.processes = vec![fixture::measured(&cells, 12, 3)];
    compute(&mut document);
    let text = report(&document, false);
    assert_fits(&text);
    assert!(
        text.contains("providers between these: see --all"),
        "{text}"
    );
    let rows = text.lines().filter(|line| line.contains(" Samples: "));
    assert!(rows.count() <= 8);
}

#[test]
fn the_page_has_what_the_report_has_and_its_plots() {
    let document = computed(12);
    let page = page(&document);
    assert_eq!(page.asked, "ugeom lab layers");
    let (shown, told) = (flat(&page.to_text(WIDTH)), flat(&report(&document, true)));
    assert!(told.contains(&page.question) && told.contains(&page.answer));
    for line in meaning::findings(&document)
        .iter()
        .chain(&meaning::limits(&document))
    {
        assert!(
            shown.contains(&flat(line)) && told.contains(&flat(line)),
            "{line}"
        );
    }
    for figure in document
        .figures
        .iter()
        .filter(|figure| figure.goal.is_some())
    {
        assert!(shown.contains(&figure.amount()), "{}", figure.what);
    }
    assert!(!shown.contains("by CPU time alone"), "nothing else ran");
    let plots = page.blocks.iter().filter_map(|block| match block {
        Block::Plot(plot) => Some(plot.title()),
        _ => None,
    });
    let expected = [
        "The time of one read",
        "What GEOM itself, one more layer and statistics add to a read",
        "A read through so many layers",
        "Reads of other sizes",
    ];
    assert_eq!(plots.collect::<Vec<_>>(), expected);
}
