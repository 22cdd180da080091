//! Debian packages and crates that hold the programs tests compare with.
//!
//! Installing never asks a question: packages are installed when this process is root, or when sudo
//! works without a password; crates by cargo, into the target directory; nothing at all when
//! `UGEOM_NO_INSTALL=1` forbids it. Programs that are still missing are named; the tests that need
//! them skip themselves and report it.

use crate::run;
use std::collections::BTreeMap;
use std::process::Command;

/// One line a program: `PROGRAM PACKAGE`, or `PROGRAM cargo:CRATE@VERSION`; the program
/// `python3:MODULE` is a module of Debian's Python. The same file tells
/// `ugeom_testkit::program` what to name.
const PROGRAMS: &str = include_str!("../../testkit/programs.txt");

/// The prefix of a crate's name.
const CRATE: &str = "cargo:";

/// How long compiling a crate may take. fsx takes a minute on two cores.
const CRATE_SECONDS: &str = "300";

/// Installs what is missing where that is allowed, and says what was done.
pub fn ensure() {
    let before = missing();
    if before.is_empty() {
        return;
    }
    println!("missing: {}", listed(&before));
    let (crates, packages): (Vec<_>, Vec<_>) =
        before.keys().partition(|name| name.starts_with(CRATE));
    if forbidden() {
        println!("not installed: UGEOM_NO_INSTALL is set");
    } else {
        if !packages.is_empty() {
            match installer() {
                Ok(installer) => install(&installer, &packages),
                Err(reason) => println!("not installed: {reason}"),
            }
        }
        for name in crates {
            let _ = run::watch(&mut cargo_install(&name[CRATE.len()..]));
        }
    }
    let after = missing();
    if !after.is_empty() {
        println!(
            "tests that need these programs will be skipped: {}",
            listed(&after)
        );
        println!("to run them: {}", commands(&after).join("; "));
    }
}

/// The commands that a user would type.
fn commands(missing: &BTreeMap<&str, Vec<&str>>) -> Vec<String> {
    let (crates, packages): (Vec<&str>, Vec<&str>) =
        missing.keys().partition(|name| name.starts_with(CRATE));
    let crates = crates.iter().map(|name| &name[CRATE.len()..]).collect();
    [("apt-get install", packages), ("cargo install", crates)]
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(how, names)| format!("{how} {}", names.join(" ")))
        .collect()
}

/// Missing programs by the package that holds them.
fn missing() -> BTreeMap<&'static str, Vec<&'static str>> {
    missing_with(|program| match program.strip_prefix("python3:") {
        Some(module) => {
            let script = format!("import {module}");
            run::succeeds(run::command("/usr/bin/python3").args(["-c", &script]))
        }
        None => run::find_program(program).is_some(),
    })
}

fn missing_with(present: impl Fn(&str) -> bool) -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (program, package) in programs() {
        if !present(program) {
            packages.entry(package).or_default().push(program);
        }
    }
    packages
}

fn programs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROGRAMS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
}

fn listed(packages: &BTreeMap<&str, Vec<&str>>) -> String {
    let each = packages.iter().map(|(package, programs)| {
        let programs = programs.join(", ");
        match package.strip_prefix(CRATE) {
            Some(name) => format!("{programs} (crate {name})"),
            None => format!("{programs} (package {package})"),
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

fn forbidden() -> bool {
    std::env::var_os("UGEOM_NO_INSTALL").is_some_and(|value| value != "0")
}

/// The words in front of `apt-get`, or why it may not be used.
fn installer() -> Result<Vec<&'static str>, &'static str> {
    if run::find_program("apt-get").is_none() {
        return Err("there is no apt-get here");
    }
    if effective_uid_is_root() {
        return Ok(vec!["env"]);
    }
    if run::find_program("sudo").is_some()
        && run::succeeds(run::command("sudo").args(["-n", "true"]))
    {
        return Ok(vec!["sudo", "-n", "env"]);
    }
    Err("neither root nor passwordless sudo")
}

fn effective_uid_is_root() -> bool {
    // `/proc/self` belongs to the effective user of this process.
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

fn install(installer: &[&str], names: &[&str]) {
    let _ = run::watch(apt(installer, &["update"]).arg("-qq"));
    // apt-get installs none of them when this release of Debian lacks one.
    let mut policy = run::command("apt-cache");
    let policy = policy.arg("policy").args(names).env("LC_ALL", "C").output();
    let names = match policy {
        Ok(policy) => with_candidate(&String::from_utf8_lossy(&policy.stdout)),
        Err(_) => names.iter().map(|name| (*name).to_owned()).collect(),
    };
    if names.is_empty() {
        return;
    }
    let all = run::watch(apt(installer, &["install"]).args(&names));
    if all.is_ok_and(|all| all.success) {
        return;
    }
    // One that cannot be installed must not keep the others out.
    for name in names {
        let _ = run::watch(apt(installer, &["install"]).arg(name));
    }
}

/// The packages that `apt-cache policy` has a version to install of.
fn with_candidate(policy: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut package = "";
    for line in policy.lines() {
        match line.trim_start().strip_prefix("Candidate: ") {
            Some("(none)") => {}
            Some(_) => names.push(package.to_owned()),
            None if !line.starts_with(' ') => package = line.trim_end_matches(':'),
            None => {}
        }
    }
    names
}

fn apt(installer: &[&str], words: &[&str]) -> Command {
    let mut command = run::command(installer[0]);
    command
        .args(&installer[1..])
        .args([
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "--yes",
            "--no-install-recommends",
            // zfs-fuse takes the place of OpenZFS, where that is installed.
            "--no-remove",
        ])
        .args([
            "-o",
            "Acquire::http::Timeout=30",
            "-o",
            "Acquire::Retries=1",
        ])
        .args(["-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Use-Pty=0"])
        .args(words);
    command
}

/// Installs a crate: unoptimised, as compiling it is nearly all it costs, and with what its authors
/// have tested it with. A network that is not there ends it soon.
fn cargo_install(name: &str) -> Command {
    let mut command = run::command("timeout");
    command
        .args([CRATE_SECONDS, "cargo", "install", "--quiet", "--locked"])
        .args(["--debug", name, "--root"])
        .arg(run::crates_dir())
        .env("CARGO_TERM_COLOR", "never")
        .env("CARGO_NET_RETRY", "1")
        .env("CARGO_HTTP_TIMEOUT", "30");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_names_a_program_and_a_package() {
        let lines = PROGRAMS
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count();
        assert_eq!(programs().count(), lines);
        assert!(programs().any(|pair| pair == ("sgdisk", "gdisk")));
    }

    #[test]
    fn packages_without_a_version_are_left_out() {
        let policy = "hfsprogs:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n\
            fio:\n  Installed: (none)\n  Candidate: 3.33-3\n  Version table:\n     3.33-3 500\n";
        assert_eq!(with_candidate(policy), ["fio"]);
        assert!(with_candidate("").is_empty());
    }

    #[test]
    fn missing_programs_are_gathered_by_package() {
        let missing =
            missing_with(|program| !["qemu-img", "qemu-io", "qemu-nbd"].contains(&program));
        assert_eq!(missing.len(), 1);
        assert_eq!(missing["qemu-utils"], ["qemu-img", "qemu-io", "qemu-nbd"]);
        assert!(missing_with(|_| true).is_empty());
        assert_eq!(
            listed(&missing),
            "qemu-img, qemu-io, qemu-nbd (package qemu-utils)"
        );
        let missing = missing_with(|program| !["fsx", "fio"].contains(&program));
        let typed = commands(&missing);
        assert_eq!(typed[0], "apt-get install fio");
        assert!(typed[1].starts_with("cargo install fsx@") && typed.len() == 2);
    }
}
