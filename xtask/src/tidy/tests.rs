//! Each rule fails on a sample that breaks it, and passes the sample beside it that does not.

use super::*;

fn tree(files: &[(&str, &str)]) -> Tree {
    let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    Tree {
        files: files.iter().map(own).collect(),
    }
}

/// The findings in the tree, as `path:line what`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let findings = check(&tree(files));
    findings
        .iter()
        .map(|f| format!("{}:{} {}", f.path, f.line, f.what))
        .collect()
}

/// The findings in one file of a crate that may hold unsafe code, so that its root needs no
/// attribute.
fn found_in(text: &str) -> Vec<String> {
    found(&[("machine/src/lib.rs", text)])
}

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"ugeom-{name}\"\n{rest}\n")
}

#[test]
fn a_finding_says_where_what_why_and_what_to_do() {
    let finding = Finding::new("a.rs", 3, "what", "why", "do this");
    assert_eq!(finding.to_string(), "a.rs:3: what: why; do this");
}

#[test]
fn an_upward_or_level_edge_is_found_and_a_downward_one_is_not() {
    let machine = manifest(
        "machine",
        "[dependencies]\nlibc = \"1\"\nugeom-stack.workspace = true",
    );
    let format = manifest(
        "format",
        "[dependencies]\nugeom-machine = { path = \"../machine\" }",
    );
    let stack = manifest("stack", "[dependencies]\nugeom-machine.workspace = true");
    let files = [
        ("machine/Cargo.toml", machine.as_str()),
        ("format/Cargo.toml", &format),
        ("stack/Cargo.toml", &stack),
    ];
    assert_eq!(
        found(&files),
        [
            "format/Cargo.toml:4 format (floor 0) depends on machine (floor 0)",
            "machine/Cargo.toml:5 machine (floor 0) depends on stack (floor 3)",
        ]
    );
}

#[test]
fn edges_of_targets_builds_and_tests_are_seen() {
    let lab = manifest("lab", "");
    for section in [
        "target.'cfg(loom)'.dependencies",
        "build-dependencies",
        "dev-dependencies",
    ] {
        let stack = manifest("stack", &format!("[{section}]\nugeom-lab.workspace = true"));
        let files = [
            ("stack/Cargo.toml", stack.as_str()),
            ("lab/Cargo.toml", &lab),
        ];
        assert_eq!(found(&files).len(), 1, "{section}");
    }
}

#[test]
fn a_crate_stands_on_another_of_its_floor_only_where_the_list_has_it() {
    let report = manifest("report", "[dependencies]\nugeom-harness.workspace = true");
    let harness = manifest("harness", "[dependencies]\nugeom-report.workspace = true");
    assert_eq!(
        found(&[
            ("report/Cargo.toml", report.as_str()),
            ("harness/Cargo.toml", &harness)
        ]),
        ["harness/Cargo.toml:4 harness (floor 1) depends on report (floor 1)"]
    );
}

#[test]
fn stack_knows_neither_engine_nor_format() {
    let engine = manifest("engine", "");
    let format = manifest("format", "");
    let both = "ugeom-engine.workspace = true\nugeom-format.workspace = true";
    let normal = manifest("stack", &format!("[dependencies]\n{both}"));
    let files = |stack| {
        [
            ("engine/Cargo.toml", engine.as_str()),
            ("format/Cargo.toml", &format),
            stack,
        ]
    };
    assert_eq!(
        found(&files(("stack/Cargo.toml", &normal))),
        [
            "stack/Cargo.toml:4 stack depends on engine",
            "stack/Cargo.toml:5 stack depends on format"
        ]
    );
    let classes = manifest("classes", &format!("[dependencies]\n{both}"));
    assert!(found(&files(("classes/Cargo.toml", &classes))).is_empty());
}

#[test]
fn crates_for_tests_are_dev_dependencies_only() {
    let testkit = manifest("testkit", "[dependencies]\nugeom-stack.workspace = true");
    let stack = manifest("stack", "");
    let normal = manifest("classes", "[dependencies]\nugeom-testkit.workspace = true");
    let dev = manifest(
        "classes",
        "[dev-dependencies]\nugeom-testkit.workspace = true",
    );
    let files = |classes| {
        [
            ("testkit/Cargo.toml", testkit.as_str()),
            ("stack/Cargo.toml", &stack),
            classes,
        ]
    };
    assert_eq!(
        found(&files(("classes/Cargo.toml", &normal))),
        ["classes/Cargo.toml:4 classes depends on testkit outside dev-dependencies"]
    );
    assert!(found(&files(("classes/Cargo.toml", &dev))).is_empty());
}

#[test]
fn a_crate_without_a_floor_and_anyhow_in_a_library_are_found() {
    let stray = manifest("stray", "");
    assert_eq!(
        found(&[("stray/Cargo.toml", &stray)]),
        ["stray/Cargo.toml:1 stray stands on no floor"]
    );
    let lab = manifest("lab", "[dependencies]\nanyhow = \"1\"");
    assert_eq!(
        found(&[("lab/Cargo.toml", &lab)]),
        ["lab/Cargo.toml:4 lab depends on anyhow"]
    );
    let program = manifest("x", "[dependencies]\nanyhow = \"1\"");
    assert!(found(&[("ugeom/Cargo.toml", &program)]).is_empty());
    assert_eq!(found(&[("lab/Cargo.toml", "[package")]).len(), 1);
}

#[test]
fn a_file_of_701_lines_is_found() {
    let lines = |count: usize| "//! x\n".repeat(count);
    assert!(found_in(&lines(700)).is_empty());
    assert_eq!(
        found_in(&lines(701)),
        ["machine/src/lib.rs:701 701 lines, 700 are allowed"]
    );
}

#[test]
fn brackets_in_strings_comments_and_characters_do_not_end_an_item() {
    let inner = "    // }\n    let (a, b) = (\"}\", '}');\n    let c = r#\"}\"}\"#;\n";
    for head in ["fn f<'a>() -> [u8; { 1 }]", "fn f() -> A<{ 1 }>"] {
        let text = format!(
            "//! x\n#![forbid(unsafe_code)]\n#[cfg(test)]\n{head} {{\n{inner}    std::fs::a();\n\
             }}\nfn g() {{ std::fs::a() }}\n"
        );
        assert_eq!(
            found(&[("format/src/lib.rs", &text)]),
            ["format/src/lib.rs:10 std::fs"]
        );
    }
}

#[test]
fn a_line_of_101_columns_is_found_unless_it_holds_an_address() {
    let line = |columns: usize| format!("//! {}\n", "é".repeat(columns - 4));
    assert!(found_in(&line(100)).is_empty());
    assert_eq!(
        found_in(&line(101)),
        ["machine/src/lib.rs:1 101 columns, 100 are allowed"]
    );
    assert!(found_in(&format!("//! https://example.org/{}\n", "a".repeat(100))).is_empty());
}

#[test]
fn a_file_without_an_opening_is_found() {
    assert_eq!(found_in("fn f() {}\n"), ["machine/src/lib.rs:1 no opening"]);
    assert_eq!(
        found_in("/// x\nfn f() {}\n"),
        ["machine/src/lib.rs:1 no opening"]
    );
}

#[test]
fn a_file_that_is_not_rust_is_found() {
    assert_eq!(
        found_in("//! x\n\nfn f() { \"\n"),
        ["machine/src/lib.rs:3 not Rust"]
    );
}

#[test]
fn unsafe_code_is_found_outside_its_places() {
    let text = "//! x\n// unsafe\nfn f() { let _ = \"unsafe\"; unsafe { g() } }\n";
    for (path, count) in [
        ("machine/tests/a.rs", 0),
        ("engine/tests/a.rs", 0),
        ("stack/src/bio.rs", 0),
        ("stack/src/biology.rs", 1),
        ("stack/tests/a.rs", 1),
        ("format/tests/a.rs", 1),
    ] {
        let parent = ("stack/src/lib.rs", "//! x\nmod bio;\nmod biology;\n");
        let found = found(&[(path, text), parent]);
        assert_eq!(found.len(), count, "{path}: {found:?}");
    }
}

#[test]
fn a_safe_crate_must_forbid_unsafe_code() {
    assert_eq!(
        found(&[("classes/src/lib.rs", "//! x\n")]),
        ["classes/src/lib.rs:1 does not forbid unsafe code"]
    );
    assert!(found(&[("classes/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n")]).is_empty());
    assert!(found(&[("stack/src/lib.rs", "//! x\n")]).is_empty());
}

#[test]
fn banned_words_are_found_everywhere() {
    for (code, what) in [
        ("#[allow(dead_code)]\nfn f() {}", "dead_code"),
        ("static mut N: u8 = 0;", "staticmut"),
        ("use std::sync::PoisonError;", "PoisonError"),
        (concat!("// TO", "DO: more"), concat!("TO", "DO")),
        (concat!("// FIX", "ME"), concat!("FIX", "ME")),
    ] {
        let found = found_in(&format!("//! x\n{code}\n"));
        assert_eq!(found.len(), 1, "{code}: {found:?}");
        assert!(found[0].ends_with(what), "{found:?}");
    }
    assert!(found_in("//! x\nfn f() { let mark = \"static mut\"; }\n").is_empty());
}

#[test]
fn a_module_that_test_programs_share_may_hold_what_one_of_them_does_not_use() {
    let allow = "//! x\n#![allow(dead_code)]\n";
    let program = ("stack/tests/one.rs", "//! x\nmod common;\n");
    assert!(found(&[("stack/tests/common/mod.rs", allow), program]).is_empty());
    assert_eq!(
        found(&[("stack/tests/one.rs", allow)]),
        ["stack/tests/one.rs:2 dead_code"]
    );
}

#[test]
fn what_follows_the_tests_of_a_file_is_checked_again() {
    let text = "//! x\n#![forbid(unsafe_code)]\n#[cfg(test)]\n#[derive(A)]\nstruct T { a: u8 }\n\
                fn f() { std::time::a() }\n";
    assert_eq!(
        found(&[("format/src/lib.rs", text)]),
        ["format/src/lib.rs:6 std::time"]
    );
}

#[test]
fn pure_crates_do_no_input_or_output() {
    let text = "//! x\n#![forbid(unsafe_code)]\nuse std::fs::File;\n";
    assert_eq!(
        found(&[("format/src/lib.rs", text)]),
        ["format/src/lib.rs:3 std::fs"]
    );
    assert!(found(&[("classes/src/lib.rs", text)]).is_empty());
    let rustix = manifest("format", "[dependencies]\nrustix = \"1\"");
    assert_eq!(found(&[("format/Cargo.toml", &rustix)]).len(), 1);
}

#[test]
fn a_format_needs_a_fuzz_target() {
    let root = (
        "format/src/lib.rs",
        "//! x\n#![forbid(unsafe_code)]\npub mod gpt;\nmod error;\n",
    );
    let gpt = ("format/src/gpt/mod.rs", "//! x\nmod header;\n");
    let header = ("format/src/gpt/header.rs", "//! x\n");
    let error = ("format/src/error.rs", "//! x\n");
    let target = ("fuzz/fuzz_targets/gpt.rs", "//! x\n");
    assert_eq!(
        found(&[root, gpt, header, error]),
        ["format/src/lib.rs:1 format gpt has no fuzz target"]
    );
    assert!(found(&[root, gpt, header, error, target]).is_empty());
}

#[test]
fn a_file_that_no_mod_declares_is_found() {
    let root = (
        "machine/src/lib.rs",
        "//! x\nmod a;\n#[path = \"other/c.rs\"]\nmod b;\n",
    );
    let alive = [
        ("machine/src/a.rs", "//! x\nmod inner;\n"),
        ("machine/src/a/inner.rs", "//! x\n"),
        ("machine/src/other/c.rs", "//! x\n"),
        ("machine/tests/common/mod.rs", "//! x\n"),
        ("machine/tests/one.rs", "//! x\nmod common;\n"),
        ("machine/build.rs", "//! x\n"),
    ];
    let mut files = vec![root];
    files.extend(alive);
    assert!(found(&files).is_empty(), "{:?}", found(&files));
    files.push(("machine/src/inner.rs", "//! x\n"));
    assert_eq!(
        found(&files),
        ["machine/src/inner.rs:1 no mod declares this file"]
    );
}

#[test]
fn siblings_that_import_each_other_are_found_through_exports_and_in_bodies() {
    let library = "//! x\n#![forbid(unsafe_code)]\nmod a;\nmod b;\nmod c;\npub use a::A;\n";
    let of = |a: &str, b: &str| {
        let (a, b) = (format!("//! x\n{a}"), format!("//! x\n{b}"));
        let files = [
            ("measure/src/lib.rs", library),
            ("measure/src/a.rs", &a),
            ("measure/src/b.rs", &b),
            ("measure/src/c.rs", "//! x\nuse crate::b::{self, B};\n"),
        ];
        found(&files)
    };
    let both = [
        "measure/src/a.rs:2 a imports b, which imports it in turn",
        "measure/src/b.rs:2 b imports a, which imports it in turn",
    ];
    assert_eq!(of("use super::b::B;", "use crate::{A, c as _};").len(), 4);
    assert_eq!(of("use super::b::B;", "use super::A;"), both);
    assert_eq!(of("fn f() { crate::b::g(); }", "use crate::a as x;"), both);
    assert!(of("use crate::b::B;", "#[cfg(test)]\nmod t { use crate::A; }").is_empty());
    assert!(of("use crate::b::B;", "use super::C;\nuse std::a;").is_empty());
}

#[test]
fn a_public_item_that_no_other_crate_uses_is_found() {
    let stack = "pub mod shown; mod hidden; pub use hidden::Offered;";
    let shown =
        "pub fn used() {} pub fn of_own_tests() {} pub(crate) fn inner() {} fn private() {}";
    let hidden =
        "pub struct Offered; impl Offered { pub fn called(&self) {} pub fn dead(&self) {} }
        pub struct Kept; impl Kept { pub fn not_visible(&self) {} } pub fn inside() {}";
    let files = [
        ("stack/src/lib.rs", stack),
        ("stack/src/shown.rs", shown),
        ("stack/src/hidden.rs", hidden),
        ("stack/tests/own.rs", "fn test() { of_own_tests(); }"),
        (
            "serve/src/lib.rs",
            "fn f(it: &Offered) { used(); it.called(); }",
        ),
    ];
    let of_exports = found(&files);
    let of_exports: Vec<&String> = of_exports
        .iter()
        .filter(|it| it.contains("no other crate"))
        .collect();
    assert_eq!(
        of_exports,
        [
            "stack/src/hidden.rs:1 no other crate uses dead",
            "stack/src/shown.rs:1 no other crate uses of_own_tests",
        ]
    );
}
