//! The options of jobs as data: one table of declared options (`ugeom_classes::spec`) feeds
//! parsing, help, and the advice for a name that is not in it.

mod bytes;
mod data;
mod engine;
mod errors;
mod files;
mod jobs;
mod leading;
mod measured;
mod numa;
mod priorities;
mod refused;
mod requests;
mod table;
mod time;
mod traces;
mod values;
mod verify;

use std::borrow::Cow;
use std::fmt::Write as _;

use super::error::{JobError, Origin};
use super::settings::Job;
use super::value::{bytes, number, truth};

pub use refused::names as refused_names;
pub use table::OPTIONS;
use ugeom_classes::spec::values::choice;
use ugeom_classes::spec::{DeclaredOptions, OptionDefault, OptionDoc, OptionEntry, SetOption};
pub use values::{ENGINES, steady};

/// One `name=value` of a job, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name as it was written.
    pub name: String,
    /// The value; `None` for a bare name.
    pub value: Option<String>,
    /// The variables in it that the environment lacks: each was replaced by nothing.
    pub unset: Vec<String>,
    /// The line or argument that sets it, for errors.
    pub origin: Origin,
}

impl Setting {
    /// One whose variables the environment has.
    pub fn new(name: &str, value: Option<String>, origin: Origin) -> Self {
        Self {
            name: name.to_owned(),
            value,
            unset: Vec::new(),
            origin,
        }
    }
}

/// Declares an option that needs a value.
const fn option(
    name: &'static str,
    value: &'static str,
    default: OptionDefault,
    help: &'static str,
    set: SetOption<Job>,
) -> OptionEntry<Job> {
    ugeom_classes::spec::option(name, value, default, help, set)
}

/// Declares an option whose name alone means yes.
const fn switch(
    name: &'static str,
    default: OptionDefault,
    help: &'static str,
    set: SetOption<Job>,
) -> OptionEntry<Job> {
    let mut entry = option(name, "BOOL", default, help, set);
    entry.doc.bare = Some("1");
    entry
}

/// How the help of an option begins that is accepted and changes nothing; the reason follows.
pub(crate) const NO_EFFECT: &str = "no effect: ";

/// The end of the help of an option that asks for the default behaviour: it gives no warning.
pub(crate) const ANYWAY: &str = " in any case";

/// Declares an option that is accepted and changes nothing here; `help` begins with
/// [`NO_EFFECT`] and has the reason, which a warning prints, but for [`ANYWAY`].
const fn idle(name: &'static str, value: &'static str, help: &'static str) -> OptionEntry<Job> {
    option(name, value, OptionDefault::Absent, help, |_, _| Ok(()))
}

/// As [`idle`], for an option whose name alone means yes.
const fn idle_switch(name: &'static str, help: &'static str) -> OptionEntry<Job> {
    switch(name, OptionDefault::Absent, help, |_, _| Ok(()))
}

/// Declares an option whose value is a name; without one it is that of the job.
const fn named(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    set: SetOption<Job>,
) -> OptionEntry<Job> {
    let mut entry = option(name, value, OptionDefault::Absent, help, set);
    entry.doc.bare = Some("");
    entry
}

/// The error for a name that there is not: there are too many options to name them all.
fn unknown(name: &str) -> String {
    let message = OPTIONS.unknown(name).in_one_line();
    match message.split_once("; there are: ") {
        Some((start, _)) => format!("{start}; `ugeom run --cmdhelp` lists them"),
        None => message,
    }
}

/// Puts a setting into a job.
///
/// # Errors
/// An unknown name, with the nearest one; a missing or a wrong value.
pub fn apply(job: &mut Job, setting: &Setting) -> Result<(), JobError> {
    let unset = setting.unset.iter().map(|name| unset_variable(name));
    let unset: Vec<String> = unset.collect();
    let wrong = |message: String| {
        let parts: Vec<String> = [message].into_iter().chain(unset.clone()).collect();
        JobError::language(&setting.origin, parts.join("; "))
    };
    let Some(entry) = OPTIONS.find(&setting.name) else {
        return Err(wrong(match refused::reason(&setting.name) {
            Some(reason) => format!("`{}` is not supported: {reason}", setting.name),
            None => unknown(&setting.name),
        }));
    };
    let OptionDoc { name, value, .. } = entry.doc;
    let value = match (setting.value.as_deref(), entry.doc.bare) {
        (Some(""), _) | (None, None) => {
            return Err(wrong(format!("{name} needs a value: {name}={value}")));
        }
        (Some(value), _) => value,
        (None, Some(bare)) => bare,
    };
    let sizes = job.decimal_units && has_sizes(&entry.doc) && !value.contains("0x");
    check_idle(&entry.doc, value)
        .map_err(|error| wrong(format!("{}={value}: {error}", setting.name)))?;
    let read = |value: &str, job: &mut Job| match sizes {
        true => (entry.set)(job, &with_swapped_units(value)),
        false => (entry.set)(job, value),
    };
    if let Err(error) = read(value, job) {
        let parts = leading::parts(entry.doc.value, value);
        let Some(part) = parts.into_iter().find(|part| read(part, job).is_ok()) else {
            let error = error.in_one_line();
            return Err(wrong(format!("{}={value}: {error}", setting.name)));
        };
        let Setting { name, origin, .. } = setting;
        job.notes.push(format!(
            "{origin}{name}={value}: only `{part}` is read, as by fio"
        ));
    }
    let noted = |text: &String| format!("{}{text}", setting.origin);
    job.notes.extend(unset.iter().map(noted));
    job.origins.push((name, setting.origin.clone()));
    Ok(())
}

/// The warning about a variable that the environment lacks.
fn unset_variable(name: &str) -> String {
    format!("the environment variable `{name}` is not set: `${{{name}}}` is empty")
}

/// Whether an option without an effect has a value that fio takes, as far as its form shows.
fn check_idle(doc: &OptionDoc, value: &str) -> Result<(), String> {
    if !doc.help.starts_with(NO_EFFECT) {
        return Ok(());
    }
    match doc.value {
        "BOOL" => truth(value).map(drop),
        "N" | "CPU" => number(value).map(drop),
        "SIZE" => bytes(value).map(drop),
        form if form.contains('|') => {
            let known: Vec<(&str, ())> = form.split('|').map(|name| (name, ())).collect();
            // `mem=mmap:FILE`
            let name = value.split_once(':').map_or(value, |(name, _)| name);
            choice(&known, name).map_err(|error| error.in_one_line())
        }
        _ => Ok(()),
    }
}

/// Whether the values of an option are sizes, or numbers that may have their units.
fn has_sizes(doc: &OptionDoc) -> bool {
    let form = doc.value;
    form.contains("SIZE") || matches!(form, "N" | "N[,...]" | "MIN-MAX[,...]") || doc.name == "rw"
}

/// A value with `k` for `kib` and `kib` for `k`, `kb` and `ki`, and so on: what it means with
/// `kb_base=1000`.
fn with_swapped_units(value: &str) -> Cow<'_, str> {
    let mut swapped = String::new();
    let mut rest = value;
    let is_unit = |c: char| "kmgtpe".contains(c.to_ascii_lowercase());
    while let Some(at) = rest.find(is_unit) {
        let behind_digit = rest[..at].ends_with(|c: char| c.is_ascii_digit());
        let (before, unit) = rest.split_at(at + 1);
        swapped.push_str(before);
        rest = unit;
        if behind_digit {
            let behind = rest.len() - rest.trim_start_matches(['i', 'I', 'b', 'B']).len();
            let (unit, others) = rest.split_at(behind.min(2));
            rest = others;
            if !unit.eq_ignore_ascii_case("ib") {
                swapped.push_str("ib");
            }
        }
    }
    swapped.push_str(rest);
    Cow::Owned(swapped)
}

/// The description of an option, or of all of them (`all`).
///
/// # Errors
/// An unknown name.
pub fn describe(name: &str) -> Result<String, JobError> {
    let mut text = String::new();
    if name == "all" {
        for doc in OPTIONS.docs() {
            let left = format!("{}={}", doc.name, doc.value);
            let _ = write!(text, "{left:<34} {}", doc.help);
            let _ = match doc.default.shown() {
                Some(default) => writeln!(text, " [{default}]"),
                None => writeln!(text),
            };
        }
        return Ok(text);
    }
    let origin = Origin::Argument {
        text: "--cmdhelp".into(),
    };
    let unknown = || JobError::language(&origin, unknown(name));
    let doc = OPTIONS.find(name).ok_or_else(unknown)?.doc;
    let _ = writeln!(text, "{}={}", doc.name, doc.value);
    let _ = writeln!(text, "    {}", doc.help);
    if !doc.aliases.is_empty() {
        let _ = writeln!(text, "    also called: {}", doc.aliases.join(", "));
    }
    if let Some(bare) = doc.bare {
        let _ = writeln!(text, "    without a value: {bare}");
    }
    if let Some(default) = doc.default.shown() {
        let _ = writeln!(text, "    default: {default}");
    }
    Ok(text)
}

/// The output of `--enghelp`: the names of the engines, `ENGINE`: its options, `ENGINE,OPTION`:
/// that option.
///
/// # Errors
/// There is no such engine, or it has no such option.
pub fn describe_engine(text: &str) -> Result<String, JobError> {
    if text.is_empty() {
        return Ok(values::engines());
    }
    let origin = Origin::Argument {
        text: format!("--enghelp={text}").as_str().into(),
    };
    let (engine, option) = match text.split_once(',') {
        Some((engine, option)) => (engine, Some(option)),
        None => (text, None),
    };
    let wrong = |message: String| JobError::language(&origin, message);
    values::engine(engine).map_err(|error| wrong(error.in_one_line()))?;
    let names = values::engine_options(engine);
    let Some(option) = option else {
        let docs = names.iter().filter_map(|name| OPTIONS.find(name));
        let line =
            |entry: &OptionEntry<Job>| format!("{:<24}: {}\n", entry.doc.name, entry.doc.help);
        return Ok(docs.map(line).collect());
    };
    if !names.contains(&option) {
        return Err(wrong(format!("{engine} has no option `{option}`")));
    }
    describe(option)
}
