//! Rules on one Rust file: its size, its opening, its lines, and unsafe code.

use super::{Finding, Source};

const FILE_LINES_MAX: usize = 700;
const LINE_COLUMNS_MAX: usize = 100;

/// Where unsafe code may stand: crates that talk to the machine, and the pool of bios.
const UNSAFE_FOLDERS: &[&str] = &[
    "machine/",
    "guasi/",
    "guasi-capi/",
    "engine/",
    "stack/src/bio/",
    "stack/src/bio.rs",
];

/// Crates that hold a place of `UNSAFE_FOLDERS`, so that they cannot forbid unsafe code as a whole.
const UNSAFE_CRATES: &[&str] = &["machine", "guasi", "guasi-capi", "engine", "stack"];

pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    opening(source, &mut findings);
    sizes(source, &mut findings);
    unsafe_code(source, &mut findings);
    forbids(source, &mut findings);
    findings
}

fn opening(source: &Source, findings: &mut Vec<Finding>) {
    if !source.text.starts_with("//!") {
        findings.push(Finding::new(
            source.path,
            1,
            "no opening",
            "a reader must learn from the first line what the file is for",
            "begin with a `//!` comment",
        ));
    }
}

fn sizes(source: &Source, findings: &mut Vec<Finding>) {
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(Finding::new(
            source.path,
            lines,
            format!("{lines} lines, {FILE_LINES_MAX} are allowed"),
            "a file is read in one sitting",
            "divide it by what its parts are for",
        ));
    }
    for (index, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        // An address cannot be broken over two lines.
        if columns > LINE_COLUMNS_MAX && !line.contains("://") {
            findings.push(Finding::new(
                source.path,
                index + 1,
                format!("{columns} columns, {LINE_COLUMNS_MAX} are allowed"),
                "two files must fit beside each other",
                "break the line",
            ));
        }
    }
}

fn unsafe_code(source: &Source, findings: &mut Vec<Finding>) {
    if UNSAFE_FOLDERS
        .iter()
        .any(|folder| source.path.starts_with(folder))
    {
        return;
    }
    for token in source.find(&["unsafe"]) {
        findings.push(Finding::new(
            source.path,
            token.line,
            "unsafe code",
            "it lives in machine, guasi, guasi-capi, engine and stack's bio module only",
            "move it there behind a safe function",
        ));
    }
}

fn forbids(source: &Source, findings: &mut Vec<Finding>) {
    let file = source.path.split_once("/src/").map(|(_, file)| file);
    let is_root = file.is_some_and(|f| f == "lib.rs" || f == "main.rs" || f.starts_with("bin/"));
    if !is_root || UNSAFE_CRATES.contains(&source.crate_dir()) {
        return;
    }
    let attribute = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
    if source.find(&attribute).next().is_none() {
        findings.push(Finding::new(
            source.path,
            1,
            "does not forbid unsafe code",
            "the compiler should hold the rule where it can",
            "add #![forbid(unsafe_code)] below the opening",
        ));
    }
}
