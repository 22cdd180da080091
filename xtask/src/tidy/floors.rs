//! The floors: which crate may know which.
//!
//! An edge goes from a crate to a dependency on a lower floor. The crates for tests and chores
//! stand beside the floors: nothing that is built for users may depend on them.

use super::{Finding, Tree};
use std::collections::BTreeMap;
use toml::{Table, Value};

const FLOORS: &[(&str, u32)] = &[
    ("machine", 0),
    ("format", 0),
    ("measure", 0),
    ("guasi", 1),
    ("harness", 1),
    ("report", 1),
    ("tls", 1),
    ("engine", 2),
    ("trace", 2),
    ("guasi-capi", 2),
    ("stack", 3),
    ("classes", 4),
    ("serve", 5),
    ("load", 5),
    ("job", 5),
    ("fio", 5),
    ("ab", 6),
    ("experiment", 6),
    ("devices", 6),
    ("lab", 6),
    ("crash", 6),
    ("ugeom", 7),
];

/// A crate that stands on another one of its floor: pages show documents, fio's jobs are a way to
/// ask for load, experiments are what `experiment` says, and `lab` has the list of all of them.
const STEPS: &[(&str, &str)] = &[
    ("report", "harness"),
    ("fio", "load"),
    ("fio", "job"),
    ("devices", "experiment"),
    ("lab", "experiment"),
    ("lab", "devices"),
    ("lab", "ab"),
];

/// Crates for tests and chores. They may use every floor.
const BESIDE: &[&str] = &["testkit", "xtask", "tests"];

/// Crates outside the workspace, with dependencies that nothing else is to have.
const OUTSIDE: &[&str] = &["fuzz", "machine/benches/ciphers", "classes/benches/foyer"];

/// Dependencies that a crate must not have although they stand on a lower floor, or outside.
const APART: &[(&str, &[&str], &str)] = &[
    (
        "stack",
        &["engine", "format", "guasi", "guasi-capi"],
        "stack knows no class, file or engine",
    ),
    (
        "format",
        &["libc", "rustix"],
        "format does no input or output",
    ),
    (
        "measure",
        &["libc", "rustix"],
        "measure is pure mathematics",
    ),
];

/// Only the program and the chores turn errors into text; libraries name them.
const ANYHOW: &[&str] = &["ugeom", "xtask"];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut crates = BTreeMap::new();
    for (path, text) in &tree.files {
        let Some(dir) = path.strip_suffix("/Cargo.toml") else { continue };
        match text.parse::<Table>() {
            Ok(table) if !OUTSIDE.contains(&dir) => {
                crates.insert(dir, (path.as_str(), text.as_str(), table));
            }
            Ok(_) => {}
            Err(error) => findings.push(Finding::new(
                path,
                1,
                format!("not TOML: {}", error.message()),
                "the floors are read from it",
                "mend it",
            )),
        }
    }
    let dirs: BTreeMap<String, &str> = crates
        .iter()
        .filter_map(|(dir, c)| Some((package_name(&c.2)?, *dir)))
        .collect();
    for (dir, (path, text, table)) in &crates {
        if floor(dir).is_none() && !BESIDE.contains(dir) {
            findings.push(Finding::new(
                path,
                1,
                format!("{dir} stands on no floor"),
                "edges go downward only, so each crate needs a place",
                "add it to FLOORS in xtask/src/tidy/floors.rs and to the picture",
            ));
            continue;
        }
        for edge in edges(table) {
            let to = dirs
                .get(edge.to.as_str())
                .copied()
                .unwrap_or(edge.to.as_str());
            if let Some((what, why)) = judge(dir, to, edge.dev) {
                let line = line_of(text, &edge.to);
                let remedy = "move the code to the floor where both may know it";
                findings.push(Finding::new(path, line, what, why, remedy));
            }
        }
    }
    findings
}

struct Edge {
    to: String,
    dev: bool,
}

fn package_name(table: &Table) -> Option<String> {
    Some(table.get("package")?.get("name")?.as_str()?.to_owned())
}

fn edges(table: &Table) -> Vec<Edge> {
    let mut edges = Vec::new();
    let targets = table.get("target").and_then(Value::as_table);
    let targets = targets
        .into_iter()
        .flat_map(|t| t.values())
        .filter_map(Value::as_table);
    for table in std::iter::once(table).chain(targets) {
        for (key, dev) in [
            ("dependencies", false),
            ("build-dependencies", false),
            ("dev-dependencies", true),
        ] {
            let list = table.get(key).and_then(Value::as_table);
            for (name, value) in list.into_iter().flatten() {
                let renamed = value.get("package").and_then(Value::as_str);
                edges.push(Edge {
                    to: renamed.unwrap_or(name).to_owned(),
                    dev,
                });
            }
        }
    }
    edges
}

fn floor(dir: &str) -> Option<u32> {
    FLOORS
        .iter()
        .find(|(name, _)| *name == dir)
        .map(|(_, floor)| *floor)
}

/// The defect of an edge, and the reason.
fn judge(from: &str, to: &str, dev: bool) -> Option<(String, &'static str)> {
    let apart = APART
        .iter()
        .find(|(dir, far, _)| *dir == from && far.contains(&to));
    if let (Some((_, _, why)), false) = (apart, dev) {
        return Some((format!("{from} depends on {to}"), why));
    }
    if to == "anyhow" && !ANYHOW.contains(&from) {
        let why = "a library names its errors, so that its caller can tell them apart";
        return Some((format!("{from} depends on anyhow"), why));
    }
    let from_floor = floor(from)?;
    if BESIDE.contains(&to) && !dev {
        let why = "testkit, xtask and tests are for development";
        return Some((
            format!("{from} depends on {to} outside dev-dependencies"),
            why,
        ));
    }
    let to_floor = floor(to)?;
    if to_floor < from_floor || STEPS.contains(&(from, to)) {
        return None;
    }
    let what = format!("{from} (floor {from_floor}) depends on {to} (floor {to_floor})");
    Some((what, "edges go downward only"))
}

fn line_of(text: &str, dependency: &str) -> usize {
    let found = text
        .lines()
        .position(|line| line.trim_start().starts_with(dependency));
    found.map_or(1, |index| index + 1)
}
