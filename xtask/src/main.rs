//! Checks and chores of the repository: `cargo xtask COMMAND`.
//!
//! Each command lives in a module of its own; this file only chooses one. The exit code is 0 when
//! everything held, 1 when something failed, and 77 when a check could not be made on this machine
//! (the convention of automake, which `.ci/run` counts as skipped).
#![forbid(unsafe_code)]

mod dist;
mod fuzz;
mod install;
mod instructions;
mod lines;
mod miri;
mod notices;
mod packages;
mod pages;
mod run;
mod sanitizers;
mod terminal;
mod test;
mod tidy;
mod totals;

use anyhow::{Result, bail};
use pages::Pages;
use sanitizers::Sanitizer;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test                  install missing Debian packages and crates where allowed, then build and
                        run all tests (UGEOM_NO_INSTALL=1 forbids installing)
  tidy                  check the floors, sizes, openings, unsafe code, pages and fuzz targets
  lines                 lines of product and of tests, room by room
  instructions [--save] instructions a read under callgrind, against lab/instructions.toml
  miri [ARGS]           unit tests of machine, guasi and stack, and the life of a bio, under Miri
                        (nightly); ARGS go to cargo test, as in
                        `miri -p ugeom-stack --test path a_dropped`
  tsan [ARGS]           the tests of machine, guasi, engine and stack under ThreadSanitizer (x86-64
                        and ARM; no nightly); ARGS go to cargo test, as in
                        `tsan -p ugeom-engine --test conformance`
  asan [ARGS]           the same under AddressSanitizer
  fuzz [SECONDS]        every fuzz target for SECONDS each (60 unless given)
  man [DIR]             a manual page for each command of ugeom (target/man unless given)
  dist [build | try] [--allow-missing]
                        static binaries, .deb, wheel and tarball in target/packages, then each
                        tried in a root without Rust. A package that cannot be built is a failure
                        unless --allow-missing is given
  install --prefix DIR [OPTIONS] [ugeom] [libguasi]
                        builds and installs the program (with manual pages, completions and
                        systemd units) and the C library (headers, pkg-config, guasi(3)); both
                        unless one is named. OPTIONS:
                          --destdir DIR   put the files below DIR, for packages
                          --libdir DIR    libraries (lib), --mandir DIR manual pages (share/man);
                                          a relative DIR is below the prefix
                          --strip         without symbols
                          --debug         without optimisation
                          --locked, --offline, --frozen   passed to cargo
  terminal              docs/terminal.svg anew: the answer of `ugeom lab layers` on this machine
  completions [DIR]     completions for bash, zsh and fish (target/completions unless given)
";

/// How a command ended when it ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// The check could not be made here; the command has said why.
    Skipped,
}

impl Outcome {
    fn of(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(Outcome::Passed) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Ok(Outcome::Skipped) => ExitCode::from(77),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<Outcome> {
    match words {
        ["test"] => test::run(),
        ["tidy"] => tidy::run(),
        ["lines"] => lines::run(),
        ["instructions"] => instructions::run(false),
        ["instructions", "--save"] => instructions::run(true),
        ["miri", args @ ..] => miri::run(args),
        ["tsan"] => sanitizers::run(Sanitizer::Thread, &sanitizers::THREAD_DEFAULT),
        ["tsan", args @ ..] => sanitizers::run(Sanitizer::Thread, args),
        ["asan"] => sanitizers::run(Sanitizer::Address, &sanitizers::ADDRESS_DEFAULT),
        ["asan", args @ ..] => sanitizers::run(Sanitizer::Address, args),
        ["fuzz"] => fuzz::run(60),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds),
            Err(_) => bail!("fuzz: {seconds:?} is not a number of seconds"),
        },
        ["dist", words @ ..] => dist::run(words),
        ["install", words @ ..] => install::run(words),
        ["man"] => pages::run(Pages::Man, None),
        ["man", dir] => pages::run(Pages::Man, Some(dir)),
        ["terminal"] => terminal::run(),
        ["completions"] => pages::run(Pages::Completions, None),
        ["completions", dir] => pages::run(Pages::Completions, Some(dir)),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(Outcome::Passed)
        }
        other => bail!("no such command: {}\n\n{USAGE}", other.join(" ")),
    }
}
