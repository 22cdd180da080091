//! The build of the installed files, and the place where cargo put them.

use super::Request;
use crate::run;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The package of the program.
pub const PROGRAM: &str = "ugeom";

/// The package of the C library.
pub const LIBRARY: &str = "ugeom-guasi-capi";

/// The result of a build: its files and its target.
#[derive(Debug)]
pub struct Built {
    /// The files that cargo named.
    files: Vec<PathBuf>,
    /// The target of rustc they were built for.
    pub target: String,
}

/// Builds the parts. cargo names the files: its configuration and `CARGO_BUILD_TARGET` decide about
/// their folder, where an older build may be, too.
pub fn run(request: &Request) -> Result<Built> {
    let mut cargo = run::cargo();
    cargo.args([
        "build",
        "--quiet",
        "--message-format=json-render-diagnostics",
    ]);
    cargo.args(&request.cargo);
    if !request.debug {
        cargo.arg("--release");
    }
    for (wanted, package) in [(request.program, PROGRAM), (request.library, LIBRARY)] {
        if wanted {
            cargo.args(["--package", package]);
        }
    }
    let output = cargo.stderr(Stdio::inherit()).output();
    let output = output.context("starting cargo")?;
    if !output.status.success() {
        bail!("install: the build failed");
    }
    let files = files(&String::from_utf8_lossy(&output.stdout));
    let target = match files
        .iter()
        .find_map(|file| target(file, &run::target_dir()))
    {
        Some(target) => target,
        None => host()?,
    };
    Ok(Built { files, target })
}

/// The files that cargo's messages name, one message a line
/// (<https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages>).
fn files(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines();
    let messages = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let artifacts = messages.filter(|it| it["reason"] == "compiler-artifact");
    let names = artifacts.flat_map(|it| it["filenames"].as_array().cloned().unwrap_or_default());
    names
        .filter_map(|name| Some(PathBuf::from(name.as_str()?)))
        .collect()
}

/// The target in the path of a file, `TARGET/release/NAME`; none in that of a build for the host,
/// `release/NAME`.
fn target(file: &Path, target_dir: &Path) -> Option<String> {
    let inside = file.strip_prefix(target_dir).ok()?;
    let words: Vec<_> = inside.iter().collect();
    match words[..] {
        [target, _, _] if file.file_name()? != "deps" && words[1] != "deps" => {
            Some(target.to_string_lossy().into_owned())
        }
        _ => None,
    }
}

/// The target that rustc builds for unless told otherwise.
fn host() -> Result<String> {
    let mut rustc = run::command("rustc");
    let output = rustc.args(["--print", "host-tuple"]).output();
    let output = output.context("starting rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Built {
    pub fn file(&self, name: &str) -> Result<&Path> {
        let mut files = self.files.iter().map(PathBuf::as_path);
        let found = files.find(|file| file.file_name().is_some_and(|it| it == name));
        found.with_context(|| format!("install: cargo built no {name} for {}", self.target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"{"reason":"compiler-artifact","filenames":["/t/release/deps/a.rlib"]}
{"reason":"build-script-executed","filenames":["/t/no"]}
{"reason":"compiler-artifact","filenames":["/t/x86_64-unknown-linux-musl/release/ugeom"]}
{"reason":"build-finished","success":true}"#;

    #[test]
    fn the_files_are_those_that_cargo_names() {
        let files = files(MESSAGES);
        let dir = Path::new("/t");
        assert_eq!(target(&files[0], dir), None);
        assert_eq!(target(Path::new("/t/release/ugeom"), dir), None);
        let target = target(&files[1], dir).unwrap();
        assert_eq!(target, "x86_64-unknown-linux-musl");
        let built = Built { files, target };
        let ugeom = "/t/x86_64-unknown-linux-musl/release/ugeom";
        assert_eq!(built.file("ugeom").unwrap(), Path::new(ugeom));
        let error = built.file("libguasi.so").unwrap_err().to_string();
        assert!(
            error.contains("built no libguasi.so for x86_64-unknown-linux-musl"),
            "{error}"
        );
    }
}
