//! Wrong texts, their places, and the messages.

use super::*;
use crate::spec::{LAYERS_MAX, OPTIONS_MAX, SPEC_BYTES_MAX, parse};
use ugeom_testkit::has;

fn error(text: &str) -> SpecError {
    match parse(text, CLASSES) {
        Ok(target) => panic!("{text}: read as {target}"),
        Err(error) => error,
    }
}

/// A text, carets below the fault with the message behind them, and the help.
const WRONG: &str = include_str!("errors.txt");

#[test]
fn errors_name_the_column_and_the_reason() {
    for example in WRONG.split("\n\n") {
        let text = example.lines().next().unwrap();
        let error = error(text);
        assert_eq!((error.line, error.input.as_str()), (1, text));
        let blank = " ".repeat(error.column - 1);
        let mut shown = format!(
            "{text}\n{blank}{} {}",
            "^".repeat(error.width),
            error.message
        );
        if let Some(help) = &error.help {
            shown += &format!("\n    {help}");
        }
        assert_eq!(shown, example.trim_end());
    }
}

#[test]
fn nothing_and_a_nul_are_no_path() {
    for text in ["", "   ", "\n"] {
        assert_eq!(error(text).message, "there is no layer here");
    }
    let error = error("disk\0.img | nop");
    assert_eq!(columns(&error), (1, 9));
    assert_eq!(error.message, "a path cannot hold a NUL character");
}

#[test]
fn an_error_shows_the_line_with_carets_below_the_fault() {
    let shown = "there is no class `npo`\n\
                 --> column 10\n \
                 |\n \
                 | md:64m | npo:delay=1ms\n \
                 |          ^^^\n \
                 = help: did you mean `nop`?";
    assert_eq!(error("md:64m | npo:delay=1ms").to_string(), shown);
}

#[test]
fn an_error_in_a_later_line_names_the_line() {
    let error = error("md:64m |\n npo");
    assert_eq!(
        (error.line, error.column, error.input.as_str()),
        (2, 2, " npo")
    );
    has(&error.to_string(), "\n2 |  npo\n  |  ^^^\n");
}

#[test]
fn of_a_long_line_the_part_around_the_fault_is_shown() {
    let error = error(&format!(
        "md:{} | npo | {}",
        "6".repeat(500),
        "mbr | ".repeat(50)
    ));
    let shown = error.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines.iter().all(|line| line.chars().count() < 110),
        "{shown}"
    );
    let carets: Vec<usize> = lines[4].match_indices('^').map(|(at, _)| at).collect();
    let under: String = carets
        .iter()
        .map(|at| lines[3].as_bytes()[*at] as char)
        .collect();
    assert_eq!(under, "npo", "{shown}");
}

#[test]
fn what_is_shown_cannot_speak_to_the_terminal() {
    let shown = error("md:64m | \u{1b}[2Jx\u{202e}y\tz").to_string();
    assert!(
        shown.chars().all(|c| c == '\n' || !c.is_control()),
        "{shown:?}"
    );
    assert!(!shown.contains('\u{202e}'));
}

#[test]
fn length_layers_and_arguments_are_bounded() {
    let longest = "a".repeat(SPEC_BYTES_MAX);
    assert!(parse(&longest, CLASSES).is_ok());
    let long = error(&format!("{longest}a"));
    assert_eq!(long.column, SPEC_BYTES_MAX + 1);
    assert!(long.message.contains("at most 65536 bytes"));

    let deepest = format!("zero{}", " | mbr".repeat(LAYERS_MAX - 1));
    assert!(parse(&deepest, CLASSES).is_ok());
    let deep = error(&format!("{deepest} | bsd"));
    assert_eq!(deep.message, "a target has at most 64 layers");
    assert_eq!(deep.column, deepest.len() + 4);

    let arguments: Vec<String> = (0..OPTIONS_MAX).map(|i| format!("k{i}={i}")).collect();
    let fullest = format!("nop:{}", arguments.join(","));
    assert!(parse(&fullest, CLASSES).is_ok());
    let full = error(&format!("{fullest},x=1"));
    assert_eq!(full.message, "a layer has at most 64 arguments");
    assert_eq!(full.column, fullest.len() + 2);
}
