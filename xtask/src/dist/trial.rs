//! Each package tried where no Rust is: the .deb in a fresh Debian root, the wheel in an empty
//! Python environment, the tarball's program in a root that holds nothing else.

use super::{ARCHITECTURES, Architecture, VERSION, files_in};
use crate::{Outcome, run};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The first answer that a new user gets.
const FIRST_ANSWER: [&str; 2] = ["lab", "layers"];

/// Tries the packages in `out`.
pub fn run(out: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::Passed;
    for (name, trial) in [
        ("checksums", checksums as fn(&Path) -> Result<Tried>),
        ("lintian", lintian),
        ("tarball", tarball),
        ("wheel", wheel),
        (".deb", deb),
        ("aarch64", foreign),
    ] {
        match trial(out) {
            Ok(Tried::Passed(what)) => println!("PASS {name}: {what}"),
            Ok(Tried::Skipped(why)) => println!("SKIP {name}: {why}"),
            Err(error) => {
                println!("FAIL {name}: {error:#}");
                outcome = Outcome::Failed;
            }
        }
    }
    Ok(outcome)
}

enum Tried {
    Passed(String),
    Skipped(String),
}

fn native() -> Result<Architecture> {
    let found = ARCHITECTURES.into_iter().find(|a| a.is_native());
    found.context("packages are made for x86_64 and aarch64 only")
}

/// The package whose name ends so.
fn package(out: &Path, end: &str) -> Result<PathBuf> {
    let files = files_in(out)?.into_iter();
    let mut named = files.filter(|file| file.to_string_lossy().ends_with(end));
    named
        .next()
        .with_context(|| format!("no *{end} in {}: cargo xtask dist build", out.display()))
}

/// Runs a command that must succeed, and returns what it printed on stdout.
fn output(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {name}"))?;
    if !output.status.success() {
        // lintian complains on its stdout.
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let mut last: Vec<&str> = text.lines().rev().take(5).collect();
        last.reverse();
        bail!("{name}: {}: {}", output.status, last.join(" | "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn checksums(out: &Path) -> Result<Tried> {
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "SHA256SUMS"]);
    let lines = output(check.current_dir(out))?;
    Ok(Tried::Passed(format!("{} files", lines.lines().count())))
}

fn lintian(out: &Path) -> Result<Tried> {
    if run::find_program("lintian").is_none() {
        return Ok(Tried::Skipped("not installed".into()));
    }
    let deb = package(out, &format!("_{}.deb", native()?.debian))?;
    let mut lintian = run::command("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    output(lintian.arg(&deb))?;
    Ok(Tried::Passed("no error, no warning".into()))
}

/// Only root can change its root directory.
fn is_root() -> bool {
    run::command("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n")
}

/// The time until `ugeom lab layers` has answered, and that all of `ugeom lab` runs.
fn labs(command: impl Fn() -> Command, started: Instant) -> Result<String> {
    let answer = output(command().args(FIRST_ANSWER))?;
    let first_s = started.elapsed().as_secs_f64();
    if answer.trim().is_empty() {
        bail!("ugeom lab layers printed nothing");
    }
    output(command().arg("lab"))?;
    Ok(format!(
        "first answer after {first_s:.0} s from the package, ugeom lab after {:.0} s",
        started.elapsed().as_secs_f64()
    ))
}

fn tarball(out: &Path) -> Result<Tried> {
    let tarball = package(out, &format!("-{}-linux.tar.gz", native()?.name))?;
    let root = tempfile::tempdir().context("an empty root")?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "--extract", "--file"]);
    output(tar.arg(&tarball).arg("--directory").arg(root.path()))?;
    if !is_root() {
        let mut version = Command::new(root.path().join("bin/ugeom"));
        let version = output(version.env_clear().arg("version"))?;
        let line = version.lines().next().unwrap_or_default();
        return Ok(Tried::Passed(format!("{line} (no chroot without root)")));
    }
    let mut version = run::command("chroot");
    version.arg(root.path()).args(["/bin/ugeom", "version"]);
    let version = output(
        version
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
    )?;
    let line = version.lines().next().unwrap_or_default();
    Ok(Tried::Passed(format!(
        "{line}, in a root without any other file"
    )))
}

fn wheel(out: &Path) -> Result<Tried> {
    let wheel = package(out, &format!("musllinux_1_1_{}.whl", native()?.name))?;
    let work = tempfile::tempdir().context("a Python environment")?;
    let mut venv = Command::new("python3");
    if let Err(why) = output(venv.args(["-m", "venv"]).arg(work.path())) {
        return Ok(Tried::Skipped(format!("no Python environment: {why:#}")));
    }
    let started = Instant::now();
    let mut pip = Command::new(work.path().join("bin/pip"));
    pip.args(["install", "--quiet", "--no-index", "--no-cache-dir"]);
    output(pip.env("PIP_DISABLE_PIP_VERSION_CHECK", "1").arg(&wheel))?;
    let program = work.path().join("bin/ugeom");
    let run = || {
        let mut command = Command::new(&program);
        command.env_clear().current_dir(work.path());
        command
    };
    Ok(Tried::Passed(labs(run, started)?))
}

fn deb(out: &Path) -> Result<Tried> {
    let deb = package(out, &format!("_{}.deb", native()?.debian))?;
    if !is_root() {
        return Ok(Tried::Skipped("debootstrap needs root".into()));
    }
    if run::find_program("debootstrap").is_none() {
        return Ok(Tried::Skipped("debootstrap is not installed".into()));
    }
    let work = tempfile::tempdir().context("a Debian root")?;
    let root = work.path().join("root");
    let mut debootstrap = run::command("debootstrap");
    debootstrap.args(["--variant=minbase", "stable"]);
    if let Err(why) = output(debootstrap.arg(&root)) {
        return Ok(Tried::Skipped(format!("no Debian root: {why:#}")));
    }
    std::fs::copy(&deb, root.join("ugeom.deb")).context("copying the package")?;
    let inside = || {
        let mut command = run::command("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child"]);
        command.arg(format!("--mount-proc={}", root.join("proc").display()));
        command.arg("chroot").arg(&root);
        command.env_clear();
        command.env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
        command.env("HOME", "/root");
        command
    };
    let started = Instant::now();
    output(inside().args(["dpkg", "--install", "/ugeom.deb"]))?;
    let run = || {
        let mut command = inside();
        command.arg("ugeom");
        command
    };
    Ok(Tried::Passed(labs(run, started)?))
}

/// A package for another processor starts under emulation; its figures would mean nothing.
fn foreign(out: &Path) -> Result<Tried> {
    let Some(other) = ARCHITECTURES.into_iter().find(|a| !a.is_native()) else {
        return Ok(Tried::Skipped("no other architecture".into()));
    };
    let end = format!("ugeom-{VERSION}-{}-linux.tar.gz", other.name);
    let Ok(tarball) = package(out, &end) else {
        return Ok(Tried::Skipped(format!("{end} was not built")));
    };
    let emulator = format!("qemu-{}", other.name);
    if run::find_program(&emulator).is_none() {
        return Ok(Tried::Skipped(format!(
            "{emulator} is not installed (qemu-user)"
        )));
    }
    let root = tempfile::tempdir().context("a folder")?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "--extract", "--file"]);
    output(tar.arg(&tarball).arg("--directory").arg(root.path()))?;
    let program = root.path().join("bin/ugeom");
    let mut show = run::command(&emulator);
    let tree = output(show.arg(&program).args(["show", "md:64m | nop"]))?;
    if !tree.contains("nop") {
        bail!("ugeom show 'md:64m | nop' under {emulator} printed {tree:?}");
    }
    Ok(Tried::Passed(format!("ugeom show under {emulator}")))
}
