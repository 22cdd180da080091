//! Errors: their text on stderr, and the exit code.

use crate::{hyperfine, output};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io::{self, Write};
use std::process::ExitCode;
use ugeom_classes::TargetError;
use ugeom_classes::spec::{SpecError, nearest};
use ugeom_harness::HarnessError;
use ugeom_job::JobError;
use ugeom_machine::interrupt;
use ugeom_measure::gate::Outcome;

const FAILED: u8 = 1;
/// The command line is wrong, as clap has it.
const USAGE: u8 = 2;

/// A gate (`--fail-if-slower`) answered FAIL: slower by more than the limit.
const GATE_FAIL: u8 = 3;

/// A gate answered UNDECIDED.
const GATE_UNDECIDED: u8 = 4;

/// The work was ended by Ctrl-C, as shells have it: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;

/// The same of SIGTERM, which timeout(1) sends.
const TERMINATED: u8 = 143;

/// Jobs were ended by a signal, as fio has it.
const JOBS_INTERRUPTED: u8 = 128;

/// A wrong use of the program that the command finds only when it looks at its target.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A command that was run failed; its exit code is handed on, as nbdkit does.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CommandFailed {
    /// The command, and its end.
    pub message: String,
    /// Its exit code, or 128 and the number of the signal that ended it.
    pub code: u8,
}

/// The work failed, and the error has been printed already.
#[derive(Debug, thiserror::Error)]
#[error("it failed")]
pub struct Reported;

/// So many jobs of `ugeom run` failed, and the errors have been printed. The exit code is their
/// number, as fio has it.
#[derive(Debug, thiserror::Error)]
#[error("{0} jobs failed")]
pub struct JobsFailed(pub usize);

/// Jobs that cannot be understood or begun: always the code 1, as fio has it, also where other
/// commands have a code for wrong usage.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JobsRefused(pub anyhow::Error);

/// A gate did not pass; its answer has been printed.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.word())]
pub struct NotPassed(pub Outcome);

/// The end of a command with a gate: nothing to say where it passed.
///
/// # Errors
/// [`NotPassed`], which becomes an exit code of its own for each answer.
pub fn gate(outcome: Option<Outcome>) -> anyhow::Result<()> {
    match outcome {
        None | Some(Outcome::Pass) => Ok(()),
        Some(other) => Err(NotPassed(other).into()),
    }
}

/// Ctrl-C, or a signal that asks for the end, ended the work early.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Interrupted(pub String);

/// A signal ended jobs early, and their results have been printed. The exit code is fio's.
#[derive(Debug, thiserror::Error)]
#[error("a signal ended the jobs: these are the results so far")]
pub struct JobsInterrupted;

/// Prints clap's messages: help and version on stdout, errors on stderr, in the form that all
/// errors of the program have.
pub fn of_arguments(error: &clap::Error, command: &clap::Command) -> ExitCode {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        return match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&output::stdout_error(error)),
        };
    }
    if let Some(help) = help_of_help(error, command) {
        return match output::print(&help) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&error),
        };
    }
    let words = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A help text, and no message.
        let _ = io::stderr().write_all(words.as_bytes());
        return ExitCode::from(USAGE);
    }
    let words = plain(words.strip_prefix("error: ").unwrap_or(&words));
    if let Some(tip) = of_hyperfine(error, command) {
        let first = words.lines().next().unwrap_or_default();
        output::complain(&format!(
            "{first}\n\n  tip: {tip}\n\nFor more information, try '--help'."
        ));
        return ExitCode::from(USAGE);
    }
    let words = match meant(error, command) {
        Some(tip) => words.replacen('\n', &format!("\n\n  tip: {tip}\n"), 1),
        None => words,
    };
    output::complain(words.trim_end());
    ExitCode::from(USAGE)
}

/// The help that `ugeom help --help` asks for: clap's command `help` takes no options. It is that
/// of the command above, as `ugeom help` prints it.
fn help_of_help(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let is_help = |wrong: &ContextValue| {
        let flags = ["-h", "--help"];
        matches!(wrong, ContextValue::String(wrong) if flags.contains(&wrong.as_str()))
    };
    let wrong = error.get(ContextKind::InvalidSubcommand)?;
    if error.kind() != ErrorKind::InvalidSubcommand || !is_help(wrong) {
        return None;
    }
    let mut all = command.clone();
    all.build();
    let path = path_of_arguments(&all);
    // The last command of the path is `help` itself.
    let mut above = (*path.iter().rev().find(|one| one.get_name() != "help")?).clone();
    Some(above.render_long_help().to_string())
}

/// `command`, and the commands below it that the arguments of the process name.
fn path_of_arguments(command: &clap::Command) -> Vec<&clap::Command> {
    let mut path = vec![command];
    for argument in std::env::args_os().skip(1) {
        path.extend(
            path.last()
                .and_then(|inner| inner.find_subcommand(argument)),
        );
    }
    path
}

/// The tip for an option of hyperfine that `ab` has in another form.
fn of_hyperfine(error: &clap::Error, command: &clap::Command) -> Option<&'static str> {
    let is_ab = path_of_arguments(command).last()?.get_name() == "ab";
    if error.kind() != ErrorKind::UnknownArgument || !is_ab {
        return None;
    }
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(wrong) => hyperfine::instead_of(wrong),
        _ => None,
    }
}

/// A tip for a wrong option where clap has none: it counts exchanged letters (`--ndb`) as two
/// changes. Where the command has no similar option, the tip names a neighbour that prints the
/// same and has it: `part show --json` for `part list --json`.
fn meant(error: &clap::Error, command: &clap::Command) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument || error.get(ContextKind::SuggestedArg).is_some()
    {
        return None;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let wrong = wrong.strip_prefix("--")?;
    let path = path_of_arguments(command);
    let inner = path.last()?;
    if let Some(name) = similar(wrong, [*inner, command]) {
        return Some(format!("a similar argument exists: '--{name}'"));
    }
    let parent = path
        .len()
        .checked_sub(2)
        .filter(|at| *at > 0)
        .map(|at| path[at])?;
    let neighbours = ["show", "list"].into_iter();
    neighbours
        .filter_map(|name| parent.find_subcommand(name))
        .find_map(|neighbour| {
            let name = similar(wrong, [neighbour])?;
            let (parent, neighbour) = (parent.get_name(), neighbour.get_name());
            Some(format!("'ugeom {parent} {neighbour}' has '--{name}'"))
        })
}

/// The long option of these commands that is nearest to a wrong one.
fn similar<'a>(
    wrong: &str,
    commands: impl IntoIterator<Item = &'a clap::Command>,
) -> Option<&'a str> {
    let all = commands.into_iter().flat_map(clap::Command::get_arguments);
    let names: Vec<&str> = all.filter_map(clap::Arg::get_long).collect();
    nearest(wrong, names)
}

/// Without the advice to put a wrong option behind `--`, which makes it the target, and with the
/// errors of numbers in words: `write a number from 1 to 256` for `0 is not in 1..=256`.
fn plain(words: &str) -> String {
    let is_kept = |line: &&str| !line.trim_start().starts_with("tip: to pass '");
    let lines: Vec<&str> = words.lines().filter(is_kept).collect();
    let mut text = lines.join("\n");
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    let text = text.replace("invalid digit found in string", "not a whole number");
    match text.split_once(" is not in ") {
        Some((before, after)) => in_range(before, after).unwrap_or(text),
        None => text,
    }
}

/// The text around ` is not in `, with the range of Rust behind it in words.
fn in_range(before: &str, after: &str) -> Option<String> {
    let (range, rest) = after.split_at(after.find('\n').unwrap_or(after.len()));
    let (least, most) = range.split_once("..")?;
    let number = before.rfind(' ')? + 1;
    let advice = match most.strip_prefix('=') {
        Some(most) => format!("write a number from {least} to {most}"),
        None => format!("write a number from {least} on"),
    };
    Some(format!("{}{advice}{rest}", &before[..number]))
}

/// Prints an error and says with which code to end.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) && !ugeom_machine::stdout::was_closed() {
        // Its reader knows why it went; the shell is told that not all was read.
        return ExitCode::from(FAILED);
    }
    if let Some(JobsRefused(refused)) = error.downcast_ref() {
        let code = report(refused);
        let is_usage = code == ExitCode::from(USAGE) && !refused.is::<JobsFailed>();
        return if is_usage {
            ExitCode::from(FAILED)
        } else {
            code
        };
    }
    if !error.is::<Reported>() && !error.is::<JobsFailed>() && !error.is::<NotPassed>() {
        output::complain(&text(error));
    }
    ExitCode::from(code(error))
}

/// The message and its causes. Many errors show their cause themselves; it is not said twice.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    if error.chain().any(has_lines) {
        text
    } else {
        one_message(&text)
    }
}

/// An error that shows the line of a text with carets below it, and escapes quoted text.
fn has_lines(cause: &(dyn std::error::Error + 'static)) -> bool {
    let is_spec = |error: &TargetError| matches!(error, TargetError::Spec(_));
    cause.is::<SpecError>()
        || cause.is::<JobError>()
        || cause.is::<HarnessError>()
        || cause.downcast_ref().is_some_and(is_spec)
}

/// A line feed of a name is shown; one before an indented line of a list stays.
fn one_message(text: &str) -> String {
    let lines: Vec<String> = text.split("\n  ").map(output::printable).collect();
    lines.join("\n  ")
}

/// The reader of stdout has gone, which is how `ugeom show disk.img | head -1` ends.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        let error = cause.downcast_ref::<output::Closed>();
        error.is_some()
    };
    error.chain().any(closed)
}

fn code(error: &anyhow::Error) -> u8 {
    let is_spec = |error: &TargetError| matches!(error, TargetError::Spec(_));
    let is_usage = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<Usage>()
            || cause.downcast_ref().is_some_and(is_spec)
            || matches!(cause.downcast_ref(), Some(HarnessError::Subject(error)) if
                error.downcast_ref().is_some_and(is_spec)
                    || error.downcast_ref().is_some_and(JobError::is_usage))
    };
    if error.chain().any(|cause| cause.is::<Interrupted>()) {
        match interrupt::is_by_sigterm() {
            true => TERMINATED,
            false => INTERRUPTED,
        }
    } else if let Some(NotPassed(outcome)) = error.downcast_ref() {
        match outcome {
            Outcome::Fail => GATE_FAIL,
            Outcome::Pass => 0,
            Outcome::Undecided => GATE_UNDECIDED,
        }
    } else if error.is::<JobsInterrupted>() {
        JOBS_INTERRUPTED
    } else if let Some(JobsFailed(count)) = error.downcast_ref() {
        u8::try_from(*count).unwrap_or(u8::MAX)
    } else if let Some(CommandFailed { code, .. }) = error.downcast_ref() {
        *code
    } else if error.chain().any(is_usage) {
        USAGE
    } else {
        FAILED
    }
}
