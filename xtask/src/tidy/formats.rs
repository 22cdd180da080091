//! The companion of a format: a fuzz target. The companions of a class are tested with the registry
//! (`classes/tests/conformance.rs`, `documents.rs`).

use super::{Finding, Tree};

const FORMATS: &str = "format/src/lib.rs";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for module in formats(tree) {
        if !tree.has(&format!("fuzz/fuzz_targets/{module}.rs")) {
            findings.push(Finding::new(
                FORMATS,
                1,
                format!("format {module} has no fuzz target"),
                "every layout reads bytes that other programs wrote",
                format!("add fuzz/fuzz_targets/{module}.rs"),
            ));
        }
    }
    findings
}

/// The public modules of `format`, each of which is one layout; private ones are their tools.
fn formats(tree: &Tree) -> Vec<String> {
    let Some(root) = tree.source(FORMATS) else { return Vec::new() };
    let layouts = root
        .tokens
        .windows(3)
        .filter(|w| w[0].text == "pub" && w[1].text == "mod");
    layouts.map(|window| window[2].text.clone()).collect()
}
