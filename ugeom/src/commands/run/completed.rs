//! The options of fio's that completions offer after `ugeom run`, which parses them itself.

use super::LONG_ABOUT;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use std::collections::BTreeSet;
use ugeom_classes::spec::DeclaredOptions as _;
use ugeom_job::options::{ENGINES, OPTIONS};

/// `run` with an argument for each option: those of the program, which its help lists, and those of
/// jobs.
pub fn with_options(run: Command) -> Command {
    let of_program = LONG_ABOUT.lines().filter_map(listed);
    let of_jobs = OPTIONS.docs().into_iter().map(|doc| Shown {
        name: doc.name,
        value: Some(doc.value),
        help: doc.help,
    });
    let known = run.get_arguments().filter_map(Arg::get_long);
    let known = known.chain(["help", "version"]).map(str::to_owned);
    let mut known: BTreeSet<String> = known.collect();
    let shown: Vec<Arg> = of_program
        .chain(of_jobs)
        .filter(|shown| known.insert(shown.name.to_owned()))
        .map(Shown::argument)
        .collect();
    run.args(shown)
}

/// An option as its help shows it.
struct Shown {
    name: &'static str,
    /// The form of its value; nothing: it takes none.
    value: Option<&'static str>,
    help: &'static str,
}

/// An option in a line of the command's help: `  --eta=WHEN   print a progress line`.
fn listed(line: &'static str) -> Option<Shown> {
    let (form, help) = line.strip_prefix("  --")?.split_once("  ")?;
    let (name, value) = match form.split_once(['=', '[']) {
        Some((name, value)) => (name, Some(value.trim_matches(['=', ']']))),
        None => (form, None),
    };
    Some(Shown {
        name,
        value,
        help: help.trim_start(),
    })
}

impl Shown {
    fn argument(self) -> Arg {
        let argument = Arg::new(self.name).long(self.name).help(self.help);
        let Some(form) = self.value else {
            return argument.action(ArgAction::SetTrue);
        };
        let argument = argument.require_equals(true).value_name(form);
        let words = words(form);
        match form {
            _ if !words.is_empty() => argument.value_parser(PossibleValuesParser::new(words)),
            "FOLDER" => argument.value_hint(ValueHint::DirPath),
            _ if form.starts_with("FILE") || form.starts_with("PATH") => {
                argument.value_hint(ValueHint::AnyPath)
            }
            _ => argument,
        }
    }
}

/// The values of an option: the words of `none|sync|dsync`; nothing where they cannot be listed.
fn words(form: &'static str) -> Vec<&'static str> {
    let is_word = |word: &&str| {
        let mut letters = word.chars();
        !word.is_empty() && letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    match form {
        "BOOL" => vec!["0", "1"],
        "ENGINE" => ENGINES.to_vec(),
        _ if form.contains('|') && form.split('|').all(|word| is_word(&word)) => {
            form.split('|').collect()
        }
        _ => Vec::new(),
    }
}
