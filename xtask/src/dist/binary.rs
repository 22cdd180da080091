//! The static binary of one architecture, stripped, and its line tables in a file beside it.

use super::Architecture;
use crate::{notices, run};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A binary to pack.
pub struct Built {
    pub architecture: Architecture,
    pub program: PathBuf,
    /// The stripped debug data; debuggers find it by the build's id or its name.
    pub debug: PathBuf,
    /// The notices of what is linked into it.
    pub notices: String,
}

/// Builds the program for `architecture`.
///
/// # Errors
/// The target or a compiler for it cannot be installed, or the build fails.
pub fn build(architecture: Architecture, out: &Path) -> Result<Built> {
    let target = architecture.target();
    install(&target)?;
    let tools = Tools::find(architecture)?;
    let mut cargo = run::cargo();
    let variable = target.replace('-', "_");
    cargo.args([
        "rustc",
        "--profile",
        "dist",
        "--package",
        "ugeom",
        "--bin",
        "ugeom",
    ]);
    cargo.args(["--target", &target]);
    // A table of relative relocations takes an eighth of the bytes of one that names each.
    cargo.args(["--", "-C", "link-arg=--pack-dyn-relocs=relr"]);
    // Generic code makes functions with the same instructions; one of each is kept.
    cargo.args(["-C", "link-arg=--icf=all"]);
    cargo.env(format!("CC_{variable}"), &tools.compiler);
    cargo.env(
        format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
        "rust-lld",
    );
    if !cargo.status().context("starting cargo")?.success() {
        bail!("the build failed");
    }
    let from = run::target_dir().join(&target).join("dist/ugeom");
    let folder = run::target_dir().join("dist-bin").join(architecture.name);
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let program = folder.join("ugeom");
    let debug = out.join(format!(
        "ugeom-{}-{}-linux.debug",
        super::VERSION,
        architecture.name
    ));
    let objcopy = |first: &str, from: &Path, to: &Path| {
        let mut command = Command::new(&tools.objcopy);
        command.arg(first).arg(from).arg(to);
        finish(&mut command)
    };
    objcopy("--only-keep-debug", &from, &debug)?;
    objcopy("--strip-all", &from, &program)?;
    let mut link = Command::new(&tools.objcopy);
    link.arg(format!("--add-gnu-debuglink={}", debug.display()));
    finish(link.arg(&program))?;
    Ok(Built {
        architecture,
        program,
        debug,
        notices: notices::of("ugeom", &target, &[])?,
    })
}

fn finish(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status();
    let status = status.with_context(|| format!("starting {name}"))?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// Installs rustc's target where rustup is there; a distribution's Rust may have it already.
fn install(target: &str) -> Result<()> {
    let mut installed = run::command("rustc");
    installed.args(["--print", "target-libdir", "--target", target]);
    let libraries = installed.output().context("starting rustc")?.stdout;
    let libraries = String::from_utf8_lossy(&libraries);
    if Path::new(libraries.trim()).is_dir() {
        return Ok(());
    }
    let mut add = run::command("rustup");
    add.args(["target", "add", target]);
    match add.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("rustup target add {target}: {status}"),
        Err(error) => bail!("rustup target add {target}: {error}"),
    }
}

/// Programs for an architecture.
struct Tools {
    compiler: String,
    objcopy: String,
}

impl Tools {
    fn find(architecture: Architecture) -> Result<Self> {
        let name = architecture.name;
        // The C in the dependencies calls nothing of the C library, so that any compiler for the
        // architecture will do.
        let (compilers, objcopies, package) = match architecture.is_native() {
            true => (
                vec!["musl-gcc".to_owned(), "cc".to_owned()],
                vec!["objcopy".to_owned(), "llvm-objcopy".to_owned()],
                "gcc and binutils".to_owned(),
            ),
            false => (
                vec![
                    format!("{name}-linux-musl-gcc"),
                    format!("{name}-linux-gnu-gcc"),
                ],
                vec![
                    format!("{name}-linux-gnu-objcopy"),
                    "llvm-objcopy".to_owned(),
                ],
                format!("gcc-{name}-linux-gnu"),
            ),
        };
        let first = |names: Vec<String>| {
            let missing = names.join(" nor ");
            names
                .into_iter()
                .find(|name| run::find_program(name).is_some())
                .with_context(|| format!("neither {missing} is there (Debian: {package})"))
        };
        Ok(Self {
            compiler: first(compilers)?,
            objcopy: first(objcopies)?,
        })
    }
}
