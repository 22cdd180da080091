//! `cargo xtask dist`: the program as packages that need no compiler.
//!
//! ```text
//!   target/packages/ugeom-VERSION-x86_64-linux.tar.gz        program, pages, completions, licences
//!   target/packages/ugeom_VERSION_amd64.deb                  the same for Debian and Ubuntu
//!   target/packages/ugeom-VERSION-py3-none-PLATFORM.whl      the program for pip, pipx and uvx
//!   target/packages/ugeom-VERSION-x86_64-linux.debug         line tables for debuggers
//!   target/packages/SHA256SUMS
//! ```
//!
//! The binary is static (musl), so that one file runs on every distribution. Each package of this
//! machine's architecture is then tried in a root without Rust (`trial`).

mod binary;
mod deb;
mod tarball;
mod trial;
mod wheel;

use crate::{Outcome, run};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A processor that packages are made for, with its name in each format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Architecture {
    /// In rustc's target, the tarball, the wheel.
    name: &'static str,
    /// In a Debian package.
    debian: &'static str,
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        name: "x86_64",
        debian: "amd64",
    },
    Architecture {
        name: "aarch64",
        debian: "arm64",
    },
];

impl Architecture {
    fn is_native(self) -> bool {
        self.name == std::env::consts::ARCH
    }

    fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name)
    }
}

/// Builds the packages, or tries those that are there: `words` are the arguments.
pub fn run(words: &[&str]) -> Result<Outcome> {
    let out = run::target_dir().join("packages");
    let (flags, words): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| **word == "--allow-missing");
    let allow_missing = !flags.is_empty();
    match words[..] {
        [] => {
            let made = make(&out, allow_missing)?;
            // Built packages are tried, too, where something else is missing.
            let tried = trial::run(&out)?;
            Ok(match made {
                Outcome::Passed => tried,
                missing => missing,
            })
        }
        ["build"] => make(&out, allow_missing),
        ["try"] => trial::run(&out),
        ref other => bail!(
            "dist: {:?} is neither build nor try; without a word both are done",
            other.join(" ")
        ),
    }
}

fn make(out: &Path, allow_missing: bool) -> Result<Outcome> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("emptying {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
    let mut missing = Vec::new();
    let mut made: Vec<PathBuf> = Vec::new();
    // The native one first: it writes the manual pages for all.
    let (native, foreign): (Vec<_>, Vec<_>) =
        ARCHITECTURES.into_iter().partition(|a| a.is_native());
    let mut pages = None;
    for architecture in native.into_iter().chain(foreign) {
        let built = match binary::build(architecture, out) {
            Ok(built) => built,
            Err(why) => {
                missing.push(format!("{}: {why:#}", architecture.name));
                continue;
            }
        };
        if pages.is_none() {
            let program = match architecture.is_native() {
                true => built.program.clone(),
                false => {
                    bail!("dist: the manual pages are made by the native program: {missing:?}")
                }
            };
            pages = Some(Pages::make(&program)?);
        }
        let Some(pages) = &pages else { continue };
        made.push(built.debug.clone());
        made.push(tarball::make(&built, pages, out)?);
        made.push(wheel::make(&built, out)?);
        match deb::make(&built, pages, out) {
            Ok(path) => made.push(path),
            Err(why) => missing.push(format!("{} .deb: {why:#}", architecture.name)),
        }
    }
    write_sums(&made, out)?;
    for path in &made {
        let bytes = fs::metadata(path).map_or(0, |data| data.len());
        println!("{:>6.1} MB  {}", bytes as f64 / 1e6, path.display());
    }
    for what in &missing {
        println!("NOT BUILT  {what}");
    }
    if !missing.is_empty() && !allow_missing {
        println!("a missing package is a failure; --allow-missing accepts it");
    }
    Ok(outcome(made.len(), missing.len(), allow_missing))
}

/// A release without one of its packages is a failure unless it was allowed.
fn outcome(made: usize, missing: usize, allow_missing: bool) -> Outcome {
    match made > 0 && (missing == 0 || allow_missing) {
        true => Outcome::Passed,
        false => Outcome::Failed,
    }
}

/// The time of the newest change in the sources, in seconds of Unix: `SOURCE_DATE_EPOCH`
/// (<https://reproducible-builds.org/specs/source-date-epoch/>), else that of the commit, else that
/// of `CHANGELOG.md`.
fn changed_s() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        let number = text.trim().parse();
        return number.with_context(|| format!("SOURCE_DATE_EPOCH={text:?} is not a number"));
    }
    let mut git = run::command("git");
    git.args(["log", "--max-count=1", "--format=%ct"]);
    if let Ok(output) = git.stderr(std::process::Stdio::null()).output()
        && let Ok(at_s) = String::from_utf8_lossy(&output.stdout).trim().parse()
    {
        return Ok(at_s);
    }
    let changed = fs::metadata(run::root().join("CHANGELOG.md"))?.modified()?;
    Ok(changed.duration_since(std::time::UNIX_EPOCH)?.as_secs())
}

/// Manual pages and completions, which are the same for every architecture.
struct Pages {
    man: PathBuf,
    completions: PathBuf,
}

impl Pages {
    fn make(ugeom: &Path) -> Result<Self> {
        let dir = run::target_dir().join("dist-pages");
        let (man, completions) = (dir.join("man"), dir.join("completions"));
        crate::pages::Pages::Man.make(ugeom, &man)?;
        crate::pages::Pages::Completions.make(ugeom, &completions)?;
        Ok(Self { man, completions })
    }
}

/// The checksums as `sha256sum --check` reads them.
fn write_sums(files: &[PathBuf], out: &Path) -> Result<()> {
    let mut sums = String::new();
    for file in files {
        let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        writeln!(sums, "{}  {name}", hex(&Sha256::digest(&bytes)))?;
    }
    let path = out.join("SHA256SUMS");
    fs::write(&path, sums).with_context(|| format!("writing {}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The version of the workspace, which is this program's, too.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The names of the files in a folder, sorted.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.tar.gz");
        fs::write(&file, "ugeom\n").unwrap();
        write_sums(&[file], dir.path()).unwrap();
        let checked = std::process::Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(dir.path())
            .status()
            .unwrap();
        assert!(checked.success());
    }

    #[test]
    fn a_package_that_is_missing_is_a_failure_unless_it_is_allowed() {
        assert_eq!(outcome(8, 0, false), Outcome::Passed);
        assert_eq!(outcome(4, 1, false), Outcome::Failed);
        assert_eq!(outcome(4, 1, true), Outcome::Passed);
        assert_eq!(outcome(0, 2, true), Outcome::Failed);
    }

    #[test]
    fn unknown_words_are_refused_by_name() {
        let error = run(&["publish"]).unwrap_err().to_string();
        assert!(
            error.contains("\"publish\" is neither build nor try"),
            "{error}"
        );
    }
}
