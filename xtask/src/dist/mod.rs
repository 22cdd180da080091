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
    match words {
        [] => {
            let outcome = make(&out)?;
            if outcome == Outcome::Failed {
                return Ok(outcome);
            }
            trial::run(&out)
        }
        ["build"] => make(&out),
        ["try"] => trial::run(&out),
        other => bail!(
            "dist: {:?} is neither build nor try; without a word both are done",
            other.join(" ")
        ),
    }
}

fn make(out: &Path) -> Result<Outcome> {
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
    Ok(match made.is_empty() {
        true => Outcome::Failed,
        false => Outcome::Passed,
    })
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
    fn unknown_words_are_refused_by_name() {
        let error = run(&["publish"]).unwrap_err().to_string();
        assert!(
            error.contains("\"publish\" is neither build nor try"),
            "{error}"
        );
    }
}
