//! The library as the tests of several kinds of programs link it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with the library under the names that the compiler and the loader look for.
pub struct Library(tempfile::TempDir);

impl Library {
    pub fn new() -> Library {
        let dir = tempfile::tempdir().unwrap();
        let built = built();
        symlink(&built, dir.path().join("libguasi.so.0")).unwrap();
        symlink(&built, dir.path().join("libguasi.so")).unwrap();
        Library(dir)
    }

    pub fn build(&self, compiler: &Path, arguments: &[&str], source: &str) -> PathBuf {
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

    pub fn path(&self) -> &Path {
        self.0.path()
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
