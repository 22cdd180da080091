//! The page of documents whose costs are known.

use super::*;
use crate::layers::{compute, fixture};
use ugeom_harness::Ended;
use ugeom_report::{Block, Style};
use ugeom_testkit::{begins, has};

/// Twelve processes of the same machine.
fn computed() -> Document {
    let mut document = fixture::document(5);
    document.processes = (0..12)
        .map(|seed| fixture::measured(&fixture::cases(), 5, seed))
        .collect();
    compute(&mut document);
    document
}

/// The text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn wall_and_cpu_time_come_first_and_then_a_factor() {
    let page = page(&computed());
    let answer = &page.answer;
    begins(&answer, "GEOM adds 21.5 ns (");
    has(&answer, " to a read of md0, 3.3");
    has(&answer, ") as long as without GEOM; each layer 3.0");
    let (wall, cpu) = (answer.find(" wall"), answer.find(" CPU time"));
    assert!(
        wall.zip(cpu).is_some_and(|(wall, cpu)| wall < cpu),
        "{answer}"
    );
    assert!(answer.len() <= 300, "three lines of 100 columns: {answer}");
    let certain = "( ) 96 to 99 % CI, [ ] 10th to 90th percentile, 12 processes within 170 s";
    assert_eq!(page.certain(), certain);
    begins(&page.brief, "GEOM adds 2");
}

#[test]
fn one_screen_holds_the_answer_and_labels_what_the_rows_are() {
    for width in [60, 80, 100] {
        let screen = page(&computed()).to_screen(width, Style::Plain);
        assert!(screen.lines().count() < 24, "{screen}");
        let answer = screen
            .lines()
            .position(|line| line.starts_with("GEOM adds"));
        assert!(answer.is_some_and(|line| line <= 2), "{screen}");
        for row in ["zero: a system call", "md0: function call", "GEOM itself"] {
            assert!(screen.contains(row), "{row}:\n{screen}");
        }
        assert!(
            !screen.contains("not met") && !screen.contains("significant"),
            "{screen}"
        );
    }
}

#[test]
fn a_fused_slicer_has_its_row_and_its_sentence() {
    let text = flat(&page(&computed()).to_text(100));
    for words in [
        "one more fused slicer 0.8",
        "Fused, as slicers are by default, one more",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// The document of the fixture, each case with another time.
fn changed(time_ns: impl Fn(&str, f64) -> f64) -> Document {
    let mut document = fixture::document(5);
    let mut cases = fixture::cases();
    for (name, ns) in &mut cases {
        *ns = time_ns(name, *ns);
    }
    let processes = (0..12).map(|seed| fixture::measured(&cases, 5, seed));
    document.processes = processes.collect();
    compute(&mut document);
    document
}

#[test]
fn an_effect_of_size_is_stated_above_its_margin_only() {
    let text = flat(&page(&computed()).to_text(100));
    has(&text, "4 KiB: no more than ");
    let document = changed(|name, ns| match name {
        "size/md0s1c 4096" => ns + 40.0,
        _ => ns,
    });
    let text = flat(&page(&document).to_text(100));
    assert!(
        text.contains("4 KiB: 40") || text.contains("4 KiB: 41"),
        "{text}"
    );
    has(&text, "(margin ");
}

#[test]
fn what_is_not_significant_is_bounded() {
    let document = changed(|name, ns| {
        if name.starts_with("direct/") {
            30.0
        } else {
            ns
        }
    });
    let answer = page(&document).answer;
    has(&answer, "each layer no more than ");
}

#[test]
fn a_stopped_measurement_says_what_it_lacks_and_claims_nothing() {
    let mut document = fixture::document(2);
    document.processes[0].ended = Ended::Cancelled;
    compute(&mut document);
    let page = page(&document);
    begins(&page.answer, "No answer yet: 2 rounds are too few");
    assert!(flat(&page.to_text(100)).contains("stopped by Ctrl-C"));
    assert_eq!(page.certain(), "none: stopped early");
    super::page(&fixture::document(0));
}

#[test]
fn a_process_in_another_state_is_told() {
    let mut document = computed();
    for round in &mut document.processes[3].rounds {
        let cases = &fixture::cases();
        let plain = cases.iter().position(|case| case.0 == "plain/md0");
        round.samples[plain.unwrap()].wall_ns *= 2;
    }
    compute(&mut document);
    let warnings = page(&document).warnings.join("; ");
    has(&warnings, "in 11 of 12 processes, and ");
}

#[test]
fn the_whole_page_has_its_plots_and_sections() {
    let page = page(&computed());
    let plots = page.blocks.iter().filter_map(|block| match block {
        Block::Plot(plot) => Some(plot.title()),
        _ => None,
    });
    let expected = [
        "The time of one read",
        "What GEOM itself, one more layer and statistics add to a read",
        "A read through N layers",
        "Reads of other sizes",
        "Each round against the median round",
    ];
    assert_eq!(plots.collect::<Vec<_>>(), expected);
    let text = page.to_text(100);
    for heading in ["THEN AND NOW", "EVERY CASE", "EVERY FIGURE", "DISPATCH"] {
        assert!(text.contains(heading), "{heading}");
    }
}

#[test]
fn an_interrupted_measurement_shows_the_medians_of_what_finished() {
    let document = fixture::document(2);
    let page = page(&document);
    begins(&page.answer, "No answer yet: ");
    let summary = page.summary.unwrap();
    let row = summary
        .rows
        .iter()
        .find(|row| row[0].text.starts_with("md0: "));
    let shown = &row.unwrap()[1].text;
    assert!(shown.ends_with(" ns") && !shown.contains('('), "{shown}");
}
