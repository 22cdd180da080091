//! Programs in C and C++ on the library, as a user would build them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with the library under the names that the compiler and the loader look for.
struct Library(tempfile::TempDir);

impl Library {
    fn new() -> Library {
        let dir = tempfile::tempdir().unwrap();
        let built = built();
        symlink(&built, dir.path().join("libguasi.so.0")).unwrap();
        symlink(&built, dir.path().join("libguasi.so")).unwrap();
        Library(dir)
    }

    fn build(&self, compiler: &Path, arguments: &[&str], source: &str) -> PathBuf {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = self.0.path().join("program");
        let output = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(arguments)
            .arg("-I")
            .arg(here.join("include"))
            .arg(here.join("tests/programs").join(source))
            .arg("-o")
            .arg(&program)
            .arg("-L")
            .arg(self.0.path())
            .arg("-lguasi")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        program
    }

    fn run(&self, program: &Path) -> String {
        self.run_with(program, "workers")
    }

    fn run_with(&self, program: &Path, backend: &str) -> String {
        let output = Command::new(program)
            .env("LD_LIBRARY_PATH", self.0.path())
            .env("GUASI_BACKEND", backend)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The library itself. Cargo does not build it for every way to run tests, so it is asked to: it
/// has nothing to do where the library is there already.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--lib",
        "--package",
        env!("CARGO_PKG_NAME"),
    ]);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo
        .arg("--target-dir")
        .arg(profile.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let library = profile.join("libguasi.so");
    assert!(
        library.is_file(),
        "{} is not there: {said}",
        library.display()
    );
    library
}

#[test]
fn a_program_that_uses_all_functions_gets_what_the_manual_promises() {
    let Some(gcc) = ugeom_testkit::program("c_program_of_guasi", "gcc") else {
        return;
    };
    let library = Library::new();
    let program = library.build(&gcc, &["-std=c99"], "everything.c");
    for backend in ["workers", "auto"] {
        assert_eq!(library.run_with(&program, backend), "all as promised\n");
    }
}

#[test]
fn the_headers_are_clean_in_cpp() {
    let Some(compiler) = ugeom_testkit::program("cpp_program_of_guasi", "g++") else {
        return;
    };
    let library = Library::new();
    let program = library.build(&compiler, &["-std=c++11"], "headers.cpp");
    assert_eq!(library.run(&program), "");
}
