//! The examples of `docs/stack-language.md` behave as documented.

use super::*;
use crate::spec::{StackFile, parse};

const DOCUMENT: &str = include_str!("../../../../docs/stack-language.md");

/// The inside of the code block whose text begins so.
fn block(beginning: &str) -> &'static str {
    let start = DOCUMENT.find(beginning).expect(beginning);
    DOCUMENT[start..].split("\n```").next().expect("the block")
}

/// The first cells of the table in this section, without their backquotes.
fn first_cells(section: &str) -> Vec<String> {
    let text = DOCUMENT.split(section).nth(1).expect(section);
    let text = text.split("\n## ").next().expect("the section");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split("` |").next().unwrap_or("").replace("\\|", "|"))
        .collect()
}

#[test]
fn targets_in_the_tables_are_read() {
    for (section, count) in [("## Layers\n", 7), ("## Paths\n", 6), ("## Addresses", 5)] {
        let texts = first_cells(section);
        assert_eq!(texts.len(), count, "{section}");
        for text in texts {
            let read = parse(&text, CLASSES).unwrap_or_else(|error| panic!("{error}"));
            let is_path = ["file", "nbd"].contains(&read.layers[0].class.value.as_str());
            let has_address =
                read.provider.is_some() || read.layers.iter().any(|it| it.on.is_some());
            assert_eq!(section == "## Paths\n", is_path && !has_address, "{text}");
            assert_eq!(section == "## Addresses", has_address, "{text}");
        }
    }
}

#[test]
fn commands_hold_targets_that_are_read() {
    let commands = block("$ ugeom show disk.img");
    assert_eq!(commands.lines().count(), 5);
    for command in commands.lines() {
        let argument = command
            .split(" # ")
            .next()
            .and_then(|words| words.splitn(4, ' ').nth(3));
        let text = argument.expect(command).trim().trim_matches('\'');
        assert!(parse(text, CLASSES).is_ok(), "{text}");
    }
}

#[test]
fn the_error_shown_is_the_error_given() {
    let error = parse("md:64m | npo:delay=1ms", CLASSES).unwrap_err();
    assert_eq!(error.to_string(), block("there is no class `npo`"));
}

#[test]
fn the_stack_file_shown_is_read() {
    let file = StackFile::parse("s.toml", block("[stack.slow]"), CLASSES).unwrap();
    let stack = file
        .expand(parse("s.toml#slow-slice", CLASSES).unwrap())
        .unwrap();
    assert_eq!(
        stack.target.to_string(),
        "disk.img | nop:delay=1ms | mbr | nop:rfail=5%"
    );
}
