//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! Every rule reads a [`Tree`] of paths and texts and returns findings, so that each can be tested
//! on a few lines held in memory. A finding says where, what, why, and what to do.

mod arrows;
mod bans;
mod dead;
mod exports;
mod floors;
mod formats;
mod source;
#[cfg(test)]
mod tests;
mod tokens;

use crate::{Outcome, run};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use tokens::Token;

/// Folders that hold nothing of ours.
const FOREIGN: &[&str] = &[
    "target",
    ".git",
    "fuzz/target",
    "fuzz/corpus",
    "fuzz/artifacts",
    "machine/benches/ciphers/target",
    "classes/benches/foyer/target",
];

pub fn run() -> Result<Outcome> {
    let tree = Tree::read(&run::root())?;
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "tidy: {} files, {} findings",
        tree.files.len(),
        findings.len()
    );
    Ok(Outcome::of(findings.is_empty()))
}

fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = floors::check(tree);
    // Dividing a file into tokens is nearly all the work.
    let mut sources = Vec::new();
    for source in tree.sources() {
        match source {
            Ok(source) => {
                findings.extend(source::check(&source));
                findings.extend(bans::check(&source));
                sources.push(source);
            }
            Err(finding) => findings.push(finding),
        }
    }
    findings.extend(formats::check(tree));
    findings.extend(dead::check(tree, &sources));
    findings.extend(arrows::check(&sources));
    findings.extend(exports::check(tree, &sources));
    findings.sort();
    findings
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
    why: &'static str,
    remedy: String,
}

impl Finding {
    fn new(
        path: &str,
        line: usize,
        what: impl Into<String>,
        why: &'static str,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            what: what.into(),
            why,
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}; {}",
            self.path, self.line, self.what, self.why, self.remedy
        )
    }
}

/// The files of the repository that rules look at, by path from the root with `/` between folders.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

/// A Rust file with its tokens.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    tokens: Vec<Token>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> Result<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<()> {
        let dir = root.join(folder);
        let entries = std::fs::read_dir(&dir).with_context(|| format!("listing {dir:?}"))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("listing {dir:?}"))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            let kind = entry
                .file_type()
                .with_context(|| format!("reading {path}"))?;
            if kind.is_dir() && !FOREIGN.contains(&path.as_str()) {
                self.read_folder(root, &path)?;
            } else if kind.is_file() && [".rs", ".toml", ".md"].iter().any(|e| path.ends_with(e)) {
                let bytes =
                    std::fs::read(entry.path()).with_context(|| format!("reading {path}"))?;
                self.files
                    .insert(path, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        Ok(())
    }

    fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let rust = self.files.iter().filter(|(path, _)| path.ends_with(".rs"));
        rust.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = Result<Source<'_>, Finding>> {
        self.rust_files()
            .map(|(path, text)| Source::new(path, text))
    }

    /// The files of tests, and those that a module declares for its tests alone.
    pub(crate) fn test_files(&self, sources: &[Source<'_>]) -> BTreeSet<&str> {
        let mut declared = BTreeSet::new();
        for source in sources {
            dead::declare(source, true, &mut declared);
        }
        let stems: Vec<&str> = declared
            .iter()
            .map(|file| file.trim_end_matches(".rs").trim_end_matches("/mod"))
            .collect();
        let is_of_tests = |path: &str| {
            let below = |stem: &&str| {
                let rest = path.strip_prefix(*stem);
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            };
            path.starts_with("tests/") || path.contains("/tests/") || stems.iter().any(below)
        };
        let files = self.rust_files().map(|(path, _)| path);
        files.filter(|path| is_of_tests(path)).collect()
    }

    fn source(&self, path: &str) -> Option<Source<'_>> {
        let (path, text) = self.files.get_key_value(path)?;
        Source::new(path, text).ok()
    }
}

impl<'a> Source<'a> {
    fn new(path: &'a str, text: &'a str) -> Result<Source<'a>, Finding> {
        match tokens::of(text) {
            Ok(tokens) => Ok(Source { path, text, tokens }),
            Err(line) => Err(Finding::new(
                path,
                line,
                "not Rust",
                "the file does not divide into tokens",
                "mend what the compiler names",
            )),
        }
    }

    /// The top folder: the crate, or `fuzz`.
    fn crate_dir(&self) -> &str {
        self.path.split('/').next().unwrap_or("")
    }

    /// True for files that only tests compile.
    fn is_test_file(&self) -> bool {
        let mut folders = self.path.split('/').skip(1);
        self.path.ends_with("/tests.rs") || folders.any(|f| f == "tests" || f == "benches")
    }

    /// How many lines belong to items that only tests compile.
    pub(crate) fn test_lines(&self) -> usize {
        let mut lines = 0;
        let mut tokens = self.tokens.iter().peekable();
        while let Some(token) = tokens.next() {
            if token.test {
                let mut last = token.line;
                while let Some(next) = tokens.next_if(|next| next.test) {
                    last = next.line;
                }
                lines += last + 1 - token.line;
            }
        }
        lines
    }

    /// The places where `pattern` stands in the tokens.
    fn find(&self, pattern: &'a [&'a str]) -> impl Iterator<Item = &Token> {
        let windows = self.tokens.windows(pattern.len().max(1));
        windows
            .filter(move |w| {
                w.iter()
                    .zip(pattern)
                    .all(|(token, text)| token.text == *text)
            })
            .map(|window| &window[0])
    }
}
