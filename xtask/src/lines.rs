//! `cargo xtask lines`: how many lines of Rust each room has, of the product and of tests.
//!
//! Lines are physical ones. Tests are the files in `tests`, `tests.rs`, `*_tests.rs` and modules
//! that only tests compile, and the items of other files behind `#[cfg(test)]` or `#[test]`.

use crate::tidy::{Source, Tree};
use crate::{Outcome, run};
use anyhow::Result;
use std::collections::BTreeMap;

/// Lines of one room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    files: usize,
    product: usize,
    tests: usize,
}

impl Lines {
    fn add(&mut self, other: Lines) {
        self.files += other.files;
        self.product += other.product;
        self.tests += other.tests;
    }
}

pub fn run() -> Result<Outcome> {
    print!("{}", table(&Tree::read(&run::root())?));
    Ok(Outcome::Passed)
}

fn table(tree: &Tree) -> String {
    let mut rooms: BTreeMap<&str, Lines> = BTreeMap::new();
    let mut total = Lines::default();
    let sources: Vec<Source> = tree.sources().flatten().collect();
    let of_tests = tree.test_files(&sources);
    for source in &sources {
        let all = source.text.lines().count();
        let tests = if of_tests.contains(source.path) {
            all
        } else {
            source.test_lines()
        };
        let lines = Lines {
            files: 1,
            product: all - tests,
            tests,
        };
        let room = source.path.split('/').next().unwrap_or("");
        rooms.entry(room).or_default().add(lines);
        total.add(lines);
    }
    let row = |name: &str, lines: Lines| {
        let Lines {
            files,
            product,
            tests,
        } = lines;
        let sum = product + tests;
        format!("{name:<12} {files:>6} {product:>9} {tests:>9} {sum:>9}\n")
    };
    let mut text = format!(
        "{:<12} {:>6} {:>9} {:>9} {:>9}\n",
        "room", "files", "product", "tests", "sum"
    );
    for (name, lines) in rooms {
        text.push_str(&row(name, lines));
    }
    text + &row("all", total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_and_tests_are_told_apart() {
        let mut tree = Tree::default();
        for (path, text) in [
            (
                "a/src/lib.rs",
                "//! x\n#[cfg(test)]\nmod made;\n\nfn f() {}\n\
                 #[cfg(test)]\nmod t {\n    fn g() {}\n}\n",
            ),
            ("a/src/made.rs", "//! x\nfn h() {}\n"),
            ("a/tests/b.rs", "//! x\n"),
            ("b/src/lib.rs", "//! x\n"),
        ] {
            tree.files.insert(path.to_owned(), text.to_owned());
        }
        let text = table(&tree);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[1], ["a", "3", "3", "9", "12"]);
        assert_eq!(rows[2], ["b", "1", "1", "0", "1"]);
        assert_eq!(rows[3], ["all", "4", "4", "9", "13"]);
    }
}
