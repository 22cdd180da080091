//! Debian packages that hold the programs tests compare with.
//!
//! Installing never asks a question: it happens when this process is root, or when sudo works
//! without a password, and not at all when `UGEOM_NO_INSTALL=1` forbids it. What is still missing
//! afterwards is named; the tests that need it skip themselves and say so.

use crate::run;
use std::collections::BTreeMap;
use std::process::Command;

/// One line a program: `PROGRAM PACKAGE`. The same file tells `ugeom_testkit::program` which
/// package to name.
const PROGRAMS: &str = include_str!("../../testkit/programs.txt");

/// Installs what is missing where that is allowed, and says what was done.
pub fn ensure() {
    let before = missing();
    if before.is_empty() {
        return;
    }
    println!("missing: {}", listed(&before));
    match installer() {
        Ok(installer) => install(&installer, &before),
        Err(reason) => println!("not installed: {reason}"),
    }
    let after = missing();
    if !after.is_empty() {
        println!(
            "tests that need these programs will be skipped: {}",
            listed(&after)
        );
        let packages: Vec<&str> = after.keys().copied().collect();
        println!("to run them: apt-get install {}", packages.join(" "));
    }
}

/// Missing programs by the package that holds them.
fn missing() -> BTreeMap<&'static str, Vec<&'static str>> {
    missing_with(|program| run::find_program(program).is_some())
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
    let each = packages
        .iter()
        .map(|(package, programs)| format!("{} (package {package})", programs.join(", ")));
    each.collect::<Vec<_>>().join(", ")
}

/// The words in front of `apt-get`, or why it may not be used.
fn installer() -> Result<Vec<&'static str>, &'static str> {
    if std::env::var_os("UGEOM_NO_INSTALL").is_some_and(|value| value != "0") {
        return Err("UGEOM_NO_INSTALL is set");
    }
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

fn install(installer: &[&str], packages: &BTreeMap<&str, Vec<&str>>) {
    let names: Vec<&str> = packages.keys().copied().collect();
    let _ = run::watch(apt(installer, &["update"]).arg("-qq"));
    let all = run::watch(apt(installer, &["install"]).args(&names));
    if all.is_ok_and(|all| all.success) {
        return;
    }
    // One package that this release of Debian lacks must not keep the others out.
    for name in names {
        let _ = run::watch(apt(installer, &["install"]).arg(name));
    }
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
    fn missing_programs_are_gathered_by_package() {
        let missing = missing_with(|program| !program.starts_with("qemu"));
        assert_eq!(missing.len(), 1);
        assert_eq!(missing["qemu-utils"], ["qemu-img", "qemu-io", "qemu-nbd"]);
        assert!(missing_with(|_| true).is_empty());
        assert_eq!(
            listed(&missing),
            "qemu-img, qemu-io, qemu-nbd (package qemu-utils)"
        );
    }
}
