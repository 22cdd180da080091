//! The language of job files: sections, settings, comments, includes, variables (fio(1), "Job file
//! format"), and the same from a command line.
//!
//! ```text
//! ; a comment, as is the text after a #
//! [global]                settings for every job that follows
//! bs=4k
//! include common.fio      another file, as if it stood here
//! [reader]                a job
//! filename=${DISK}        a variable of the environment
//! time_based              a switch
//! ```

mod arguments;
mod expand;
mod file;

use super::error::Origin;
use super::options::Setting;

pub use arguments::{Arguments, Report, parse_arguments};
pub use expand::Environment;
pub use file::{Loader, parse_file};

/// A section: the settings below a `[name]`, or of one `--name=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name; `global` is special.
    pub name: String,
    /// The line with its name, or the argument that begins it.
    pub origin: Origin,
    /// The job file that it is from, counted from 0; the command line belongs to the first.
    pub file: u32,
    /// Its settings, in order.
    pub settings: Vec<Setting>,
}

impl Section {
    /// The section as arguments of a command line, each to be quoted where a shell needs it.
    pub fn as_arguments(&self) -> Vec<String> {
        let name = (!self.is_global()).then(|| format!("--name={}", self.name));
        let setting = |setting: &Setting| match &setting.value {
            Some(value) => format!("--{}={value}", setting.name),
            None => format!("--{}", setting.name),
        };
        name.into_iter()
            .chain(self.settings.iter().map(setting))
            .collect()
    }

    /// True for settings that are meant for all jobs after it: fio compares the beginning of the
    /// name, so that `[global-read]` is no job.
    pub fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}
