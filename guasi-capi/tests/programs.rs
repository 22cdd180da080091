//! Programs in C and C++ on the library, as a user would build them.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::Command;

use common::Library;

/// Runs a program to its good end; what it said.
fn run(library: &Library, program: &Path, backend: &str) -> String {
    let output = Command::new(program)
        .env("LD_LIBRARY_PATH", library.path())
        .env("GUASI_BACKEND", backend)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_program_that_uses_all_functions_gets_what_the_manual_promises() {
    let Some(gcc) = ugeom_testkit::program("gcc") else { return };
    let library = Library::new();
    let program = library.build(&gcc, &["-std=c99"], "everything.c");
    for backend in ["workers", "auto"] {
        assert_eq!(run(&library, &program, backend), "all as promised\n");
    }
}

#[test]
fn the_headers_are_clean_in_cpp() {
    let Some(compiler) = ugeom_testkit::program("g++") else { return };
    let library = Library::new();
    let program = library.build(&compiler, &["-std=c++11"], "headers.cpp");
    assert_eq!(run(&library, &program, "workers"), "");
}

#[test]
fn a_program_in_the_way_of_fio_transfers_every_block() {
    let Some(gcc) = ugeom_testkit::program("gcc") else { return };
    let library = Library::new();
    let program = library.build(&gcc, &["-std=c99"], "engine.c");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[7; 64 << 10]).unwrap();
    let output = Command::new(&program)
        .arg(file.path())
        .args(["40", "500", "2", "w", "sync", "workers", "ring", "auto"])
        .env("LD_LIBRARY_PATH", library.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains(": context (errno") {
        return ugeom_testkit::skip("no io_uring here");
    }
    assert!(output.status.success(), "{}: {said}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let failures = text.lines().map(|line| line.rsplit(' ').next());
    assert_eq!(failures.collect::<Vec<_>>(), [Some("0"); 8], "{text}");
}
