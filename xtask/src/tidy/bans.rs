//! Words that do not belong in the source, each with its replacement. Those that clippy knows are
//! denied in Cargo.toml, clippy.toml and at the top of each library.

use super::{Finding, Source};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Everywhere,
    /// Everywhere but in modules that several test programs share, and each uses a part of.
    NotShared,
    /// Everywhere but in the module that replaces it.
    Replaced(&'static str),
    /// Crates that compute and do no input or output, outside their tests.
    Pure,
}

struct Ban {
    tokens: &'static [&'static str],
    scope: Scope,
    why: &'static str,
    instead: &'static str,
}

const PURE: &[&str] = &["format", "measure"];

const UNFINISHED: &str = "nothing unfinished is kept";
const IMPURE: &str = "format and measure are pure functions, so that they can be fuzzed and proved";
const IMPURE_INSTEAD: &str = "take the bytes or figures as arguments";

const BANS: &[Ban] = &[
    Ban {
        tokens: &["(", "dead_code"],
        scope: Scope::NotShared,
        why: "dead code is read, compiled and believed",
        instead: "remove the code",
    },
    Ban {
        tokens: &["static", "mut"],
        scope: Scope::Everywhere,
        why: "every use of it is unsafe",
        instead: "use an atomic, a OnceLock or a thread_local",
    },
    Ban {
        tokens: &["PoisonError"],
        scope: Scope::Replaced("machine/src/mutex.rs"),
        why: "a panic is a defect that has been reported: other threads go on",
        instead: "use the locks of ugeom_machine::mutex",
    },
    Ban {
        tokens: &["std", ":", ":", "fs"],
        scope: Scope::Pure,
        why: IMPURE,
        instead: IMPURE_INSTEAD,
    },
    Ban {
        tokens: &["std", ":", ":", "net"],
        scope: Scope::Pure,
        why: IMPURE,
        instead: IMPURE_INSTEAD,
    },
    Ban {
        tokens: &["std", ":", ":", "time"],
        scope: Scope::Pure,
        why: IMPURE,
        instead: IMPURE_INSTEAD,
    },
];

/// Marks of unfinished work, which stand in comments and so are no tokens. Spelled in two parts
/// because this file is checked, too.
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ban in BANS {
        if !applies(ban.scope, source) {
            continue;
        }
        for token in source.find(ban.tokens) {
            if ban.scope != Scope::Pure || !token.test {
                let word = ban.tokens.concat();
                let what = word.trim_start_matches('(');
                findings.push(Finding::new(
                    source.path,
                    token.line,
                    what,
                    ban.why,
                    ban.instead,
                ));
            }
        }
    }
    for (index, line) in source.text.lines().enumerate() {
        for mark in MARKS {
            if line.contains(mark) {
                let line = index + 1;
                findings.push(Finding::new(
                    source.path,
                    line,
                    *mark,
                    UNFINISHED,
                    "do it now",
                ));
            }
        }
    }
    findings
}

fn applies(scope: Scope, source: &Source) -> bool {
    match scope {
        Scope::Everywhere => true,
        Scope::NotShared => {
            let file = source.path.split_once("/tests/").map(|(_, file)| file);
            !file.is_some_and(|file| file.contains('/'))
        }
        Scope::Replaced(by) => source.path != by,
        Scope::Pure => {
            PURE.contains(&source.crate_dir())
                && source.path.contains("/src/")
                && !source.is_test_file()
        }
    }
}
