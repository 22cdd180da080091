//! Rust files that no `mod` declares: the compiler never sees them, so they rot in silence.

use super::{Finding, Source, Tree};
use std::collections::BTreeSet;

pub fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let mut declared = BTreeSet::new();
    for source in sources {
        declare(source, false, &mut declared);
    }
    let dead = tree
        .rust_files()
        .filter(|(path, _)| !is_root(path) && !declared.contains(*path));
    dead.map(|(path, _)| {
        Finding::new(
            path,
            1,
            "no mod declares this file",
            "the compiler never sees it",
            "declare it in its parent, or remove it",
        )
    })
    .collect()
}

/// Files that cargo starts from: libraries, programs, each test, example, bench and fuzz target.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        [_, "build.rs"]
            | [.., "src", "lib.rs" | "main.rs"]
            | [_, "src", "bin", _]
            | [_, "tests" | "examples" | "benches" | "fuzz_targets", _]
            | [_, "tests" | "examples" | "benches", _, "main.rs"]
    )
}

/// Adds the files that the `mod NAME;` and `#[path = "FILE"]` of `source` may stand for: all, or
/// those that only tests compile.
pub(super) fn declare(source: &Source, of_tests: bool, declared: &mut BTreeSet<String>) {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", source.path));
    let stem = file.trim_end_matches(".rs");
    let beside = is_root(source.path) || stem == "mod";
    let children = if beside {
        folder.to_owned()
    } else {
        format!("{folder}/{stem}")
    };
    for window in source.tokens.windows(3) {
        let [first, name, last] = window else { continue };
        if of_tests && !first.test {
            continue;
        }
        if first.text == "mod" && last.text == ";" {
            declared.insert(format!("{children}/{}.rs", name.text));
            declared.insert(format!("{children}/{}/mod.rs", name.text));
        }
        if first.text == "path" && name.text == "=" {
            declared.insert(joined(folder, last.text.trim_matches('"')));
        }
    }
}

/// `file` seen from `folder`, with its `..` taken away.
fn joined(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in file.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "." => {}
            other => parts.push(other),
        }
    }
    parts.join("/")
}
