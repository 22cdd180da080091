//! The program `ugeom`: its arguments, its commands, and their output.
//!
//! | question | file |
//! |---|---|
//! | which commands are there? | [`commands`] |
//! | what becomes of an error? | `failure.rs` |
//! | what does `ab` have for an option of hyperfine? | `hyperfine.rs` |
//! | where do sockets and mounts of our own go? | `folder.rs` |
//! | how is anything printed? | `output.rs` |
//! | how is a target opened? | `opening.rs` |
//! | may it be written to? | `safety.rs` |
//! | how do layers say what no request can? | `warnings.rs` |
//! | how do others look at what it serves? | `control.rs` |
//! | how do bytes get from a provider to stdout, and from stdin to a provider? | `transfer/` |
//!
//! Results go to stdout, everything else to stderr. Exit code 0: done; 1: the work failed, or
//! stdout did not take all of the result (no message if its reader closed the pipe); 2: wrong
//! usage, which is also a target that does not follow the stack language; 130 or 143: interrupted
//! by SIGINT or SIGTERM.
#![forbid(unsafe_code)]

mod commands;
mod contents;
mod control;
mod failure;
mod hyperfine;
mod opening;
mod output;
mod progress;
mod safety;
mod transfer;
mod warnings;

use clap::{CommandFactory, FromArgMatches, Parser};
use log::LevelFilter;
use std::process::ExitCode;

const ABOUT: &str =
    "FreeBSD's GEOM as a Linux program: compose, read, serve and measure block devices";

const LONG_ABOUT: &str = "\
Compose block devices from layers, read any disk through them, and measure what each layer costs, \
with confidence intervals.

A TARGET is a disk or an image, a device made of layers, or a partition found inside:

  disk.img                          an image or a block device
  disk.img@s1a                      partition s1a of it
  md:64m                            a disk in memory
  'disk.img | nop:delay=1ms | mbr'  layers, from the bottom up
  stacks.toml#slow                  a stack described in a file

Only commands that write open a target for writing.";

const EXAMPLES: &str = "\
Examples:
  ugeom show disk.img                      # what is on this disk?
  ugeom read disk.img@s1a > root.img       # copy a partition out
  ugeom part create -s gpt disk.img        # make a partition table
  ugeom lab                                # what do layers and disks cost?";

#[derive(Parser)]
#[command(
    name = "ugeom",
    bin_name = "ugeom",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = EXAMPLES,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,

    #[command(flatten)]
    stderr: Stderr,
}

/// How much is printed on stderr, and how.
#[derive(clap::Args)]
struct Stderr {
    /// Print errors only on stderr: no warnings, no progress
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    quiet: bool,

    /// Print more: what was opened and how, what each process of a measurement did, every cause of
    /// an error
    #[arg(short, long, global = true, help_heading = "Output")]
    verbose: bool,

    /// When to use colours
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        global = true,
        help_heading = "Output"
    )]
    color: output::Color,
}

impl Arguments {
    /// The least important messages that are printed.
    fn level(&self) -> LevelFilter {
        let verbose = self.stderr.verbose && !self.command.has_own_verbose();
        match (self.stderr.quiet, verbose) {
            (true, _) => LevelFilter::Off,
            (false, true) => LevelFilter::Debug,
            (false, false) => LevelFilter::Warn,
        }
    }
}

/// The tree of commands with all their flags, as help and manual pages show it.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// The tree with the options of `run`, which that parses itself, as completions know it.
fn completed_command() -> clap::Command {
    command().mut_subcommand("run", commands::run_with_options)
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    if let Err(error) = ugeom_machine::stdout::refuse_where_closed() {
        return failure::report(&error.into());
    }
    if let Err(error) = ugeom_machine::interrupt::let_long_writes_fail() {
        return failure::report(&error.into());
    }
    let parsed = command()
        .try_get_matches()
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return failure::of_arguments(&error, &command()),
    };
    output::set(arguments.stderr.quiet, arguments.stderr.color);
    warnings::print(arguments.level());
    match arguments.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

#[cfg(test)]
mod tests {
    use ugeom_testkit::has;
    #[test]
    fn the_tree_of_commands_is_consistent() {
        super::command().debug_assert();
    }

    /// `command` and all commands below it that a user sees, each by its words.
    fn every(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
        let is_seen = |one: &&clap::Command| !one.is_hide_set() && one.get_name() != "help";
        for below in command.get_subcommands().filter(is_seen) {
            every(below, &format!("{words} {}", below.get_name()), found);
        }
        found.push((words.to_owned(), command.clone()));
    }

    #[test]
    fn every_command_has_help_with_examples_that_a_terminal_of_80_columns_does_not_break() {
        let mut commands = Vec::new();
        let mut all = super::command();
        all.build();
        every(&all, "ugeom", &mut commands);
        assert!(commands.len() > 60, "{}", commands.len());
        for (words, mut command) in commands {
            let help = command.render_long_help().to_string();
            let examples = help
                .split_once("Examples:\n")
                .map_or("", |(_, examples)| examples);
            let is_own = |line: &str| line.contains(words.as_str());
            assert!(examples.lines().any(is_own), "{words}: no example");
            // A whole line can be pasted: what follows the command is a comment of the shell.
            let commands = examples.lines().filter(|line| line.starts_with("  ugeom "));
            let comments = commands.filter_map(|line| Some(line.trim_start().split_once("  ")?.1));
            for comment in comments {
                assert!(comment.trim_start().starts_with('#'), "{words}: {comment}");
            }
            let widest = help.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(100), "{words}: a line of {widest:?} columns");
            // Examples and lists are not filled: clap would break a longer line at the margin.
            let texts = [command.get_long_about(), command.get_after_help()];
            let texts = texts.into_iter().flatten().map(ToString::to_string);
            for line in texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()) {
                let is_wide = line.starts_with("  ") && line.chars().count() > 80;
                assert!(!is_wide, "{words}: {line}");
            }
        }
    }

    #[test]
    fn sizes_and_times_of_arguments_have_one_grammar() {
        for arguments in [
            "ugeom lab layers --budget 5m",
            "ugeom lab layers --budget 300",
            "ugeom lab sweep --budget 1.5h md:64m",
            "ugeom stat -I 24h",
            "ugeom serve --spin 0 --idle-timeout 24h md:64m",
            "ugeom read --offset 8s --length 0x1000 md:64m",
            "ugeom read --set spin=20us --length 1.5k md:64m",
        ] {
            let read = super::command().try_get_matches_from(arguments.split(' '));
            assert!(read.is_ok(), "{arguments}: {read:?}");
        }
        let refused = |arguments: &str| {
            let read = super::command().try_get_matches_from(arguments.split(' '));
            read.err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let error = refused("ugeom lab layers --budget 5k");
        has(&error, "this is not a duration; write a number with ns");
        let error = refused("ugeom read --set spin=20 md:64m");
        has(&error, "more than 1s; a bare number counts seconds");
    }
}
