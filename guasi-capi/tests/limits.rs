//! Limits for programs in C, and the visible part of the library: `programs/limits.c` has the other
//! half.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

mod common;

use common::Library;

/// Builds the program and runs one of its parts.
fn run(part: &str, backend: &str) -> Option<Output> {
    let gcc = ugeom_testkit::program("gcc")?;
    let library = Library::new();
    let flags = ["-std=c99", "-pthread", "-rdynamic"];
    let program = library.build(&gcc, &flags, "limits.c");
    let output = Command::new(&program)
        .arg(part)
        .env("LD_LIBRARY_PATH", library.path())
        .env("GUASI_BACKEND", backend)
        .output();
    Some(output.unwrap())
}

fn right(part: &str, backend: &str) {
    let Some(output) = run(part, backend) else { return };
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {failed}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "right\n");
}

/// Defines a test for each part.
macro_rules! limits {
    ($($name:ident: $part:literal, $backend:literal;)*) => {
        $(#[test] fn $name() { right($part, $backend); })*
    };
}

limits! {
    a_request_may_have_megabytes_of_variables: "stack", "workers";
    a_request_that_ends_its_thread_ends_no_other: "leaving", "workers";
    a_child_has_what_had_ended_and_makes_contexts_of_its_own: "child", "workers";
    a_child_of_a_process_with_a_ring_has_the_same: "child", "auto";
    hundreds_of_thousands_of_requests_wait_in_thousands_of_priorities: "many", "workers";
    a_context_without_memory_is_refused: "memory", "workers";
}

#[test]
fn a_stack_that_overflows_names_the_function() {
    let Some(output) = run("guard", "workers") else {
        return;
    };
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "guasi: the function endless has overflowed its stack of 8192 KiB \
         (GUASI_STACK sets another length)\n"
    );
}

#[test]
fn the_headers_bring_what_those_of_the_original_did() {
    let Some(gcc) = ugeom_testkit::program("gcc") else { return };
    let library = Library::new();
    let program = library.build(&gcc, &["-std=gnu99"], "macros.c");
    let mut command = Command::new(program);
    let output = command.env("LD_LIBRARY_PATH", library.path()).output();
    let output = output.unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, b"7\n");
}

/// The names that libguasi 0.25 exports.
const NAMES: [&str; 24] = [
    "guasi__accept",
    "guasi__connect",
    "guasi__fstat",
    "guasi__fsync",
    "guasi__open",
    "guasi__opendir",
    "guasi__pread",
    "guasi__pwrite",
    "guasi__read",
    "guasi__readdir",
    "guasi__recv",
    "guasi__recvfrom",
    "guasi__send",
    "guasi__sendfile",
    "guasi__sendto",
    "guasi__stat",
    "guasi__write",
    "guasi_create",
    "guasi_fetch",
    "guasi_free",
    "guasi_req_cancel",
    "guasi_req_free",
    "guasi_req_info",
    "guasi_submit",
];

#[test]
fn the_library_exports_the_names_of_the_original_and_no_others() {
    let Some(nm) = ugeom_testkit::program("nm") else { return };
    let library = Library::new();
    let output = Command::new(nm)
        .args(["-D", "--defined-only"])
        .arg(library.path().join("libguasi.so.0"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    names.sort_unstable();
    assert_eq!(names, NAMES);
}
