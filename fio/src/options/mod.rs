//! The options of jobs as data: one table feeds parsing, help, and the advice for a name that is
//! not in it.

mod table;
mod values;

use std::fmt::Write as _;

use super::error::{JobError, Origin};
use super::language::Setting;
use super::settings::Job;

pub use table::OPTIONS;

/// One option.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it takes, for help.
    pub takes: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// What a bare name means; `None`: it needs a value.
    pub bare: Option<&'static str>,
    /// Puts a value into a job.
    pub set: fn(&mut Job, &str) -> Result<(), String>,
}

/// The option of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    let known = |entry: &&Entry| entry.name == name || entry.aliases.contains(&name);
    OPTIONS.iter().find(known)
}

fn names() -> impl Iterator<Item = &'static str> {
    let of =
        |entry: &'static Entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied());
    OPTIONS.iter().flat_map(of)
}

/// Puts a setting into a job.
///
/// # Errors
/// An unknown name, with the nearest one; a missing or a wrong value.
pub fn apply(job: &mut Job, setting: &Setting) -> Result<(), JobError> {
    let wrong = |message: String| JobError::language(&setting.origin, message);
    let Some(entry) = find(&setting.name) else {
        return Err(wrong(unknown(&setting.name)));
    };
    let value = match (setting.value.as_deref(), entry.bare) {
        (Some(""), _) | (None, None) => {
            let Entry { name, takes, .. } = entry;
            return Err(wrong(format!("{name} needs a value: {name}={takes}")));
        }
        (Some(value), _) => value,
        (None, Some(bare)) => bare,
    };
    (entry.set)(job, value).map_err(|message| wrong(format!("{}: {message}", setting.name)))?;
    job.origins.push((entry.name, setting.origin.clone()));
    Ok(())
}

fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(64).collect();
    match ugeom_classes::spec::nearest(name, names()) {
        Some(nearest) => format!("there is no option `{shown}`; did you mean `{nearest}`?"),
        None => format!("there is no option `{shown}`; --cmdhelp lists those that there are"),
    }
}

/// The description of an option, or of all of them (`all`).
///
/// # Errors
/// An unknown name.
pub fn describe(name: &str) -> Result<String, JobError> {
    let mut text = String::new();
    if name == "all" {
        for entry in OPTIONS {
            let left = format!("{}={}", entry.name, entry.takes);
            let _ = writeln!(text, "{left:<34} {}", entry.help);
        }
        return Ok(text);
    }
    let origin = Origin::Argument {
        text: "--cmdhelp".into(),
    };
    let entry = find(name).ok_or_else(|| JobError::language(&origin, unknown(name)))?;
    let _ = writeln!(text, "{}={}", entry.name, entry.takes);
    let _ = writeln!(text, "    {}", entry.help);
    if !entry.aliases.is_empty() {
        let _ = writeln!(text, "    also called: {}", entry.aliases.join(", "));
    }
    if let Some(bare) = entry.bare {
        let _ = writeln!(text, "    without a value: {bare}");
    }
    Ok(text)
}
