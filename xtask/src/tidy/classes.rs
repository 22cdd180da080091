//! What comes with a class and with a format: a page, a line in the conformance suite, a fuzz
//! target.

use super::{Finding, Source, Tree};

const CLASSES: &str = "classes/src/";
const CONFORMANCE: &str = "classes/tests/conformance.rs";
const FORMATS: &str = "format/src/lib.rs";

/// Folders of `classes/src` that hold something else than a class: the stack language, and the
/// partition tables, each of which is a class of its own.
const NO_CLASS: &[&str] = &["spec", "part"];

pub fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for class in classes(sources) {
        class_rules(tree, &class, &mut findings);
    }
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

fn class_rules(tree: &Tree, folder: &str, findings: &mut Vec<Finding>) {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let path = format!("{CLASSES}{folder}/mod.rs");
    let page = format!("docs/classes/{name}.md");
    if !tree.has(&page) {
        findings.push(Finding::new(
            &path,
            1,
            format!("class {name} has no page"),
            "a class that is not described is not found",
            format!("write {page}"),
        ));
    }
    let listed = tree
        .source(CONFORMANCE)
        .is_some_and(|suite| mentions(&suite, name));
    if !listed {
        findings.push(Finding::new(
            &path,
            1,
            format!("class {name} is not in the conformance suite"),
            "every class keeps the same contract",
            format!("add a line with {name} to {CONFORMANCE}"),
        ));
    }
}

/// Folders below `classes/src` whose `mod.rs` has a line for the registry, `ENTRY`.
fn classes(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let folder = source
            .path
            .strip_prefix(CLASSES)
            .and_then(|p| p.strip_suffix("/mod.rs"));
        let Some(folder) = folder else { continue };
        let is_place = match folder.split_once('/') {
            Some((parent, name)) => parent == "part" && !name.contains('/'),
            None => !NO_CLASS.contains(&folder),
        };
        if is_place && source.find(&["ENTRY"]).next().is_some() {
            found.push(folder.to_owned());
        }
    }
    found
}

/// True if `name` stands as a word of its own in an identifier or a literal of `source`.
fn mentions(source: &Source, name: &str) -> bool {
    source.tokens.iter().any(|token| {
        token
            .text
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word == name)
    })
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
