//! Tests of the job language.

mod errors;
mod examples;
mod properties;

use std::collections::HashMap;

use super::language::{Environment, Loader, parse_arguments};
use super::{Arguments, JobError, Understood, understand};

/// Job files that are not on a disk.
#[derive(Default)]
pub struct Shelf(pub HashMap<String, String>);

impl Loader for Shelf {
    fn load(&mut self, name: &str, _: Option<&str>) -> std::io::Result<(Vec<u8>, String)> {
        let text = self.0.get(name).cloned();
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        text.map(|text| (text.into_bytes(), name.to_owned()))
            .ok_or_else(missing)
    }
}

/// An environment with one variable.
pub struct Fixed;

impl Environment for Fixed {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "DISK").then(|| "/dev/sdx".to_owned())
    }

    fn keyword(&self, name: &str) -> Option<String> {
        (name == "ncpus").then(|| "4".to_owned())
    }
}

/// The jobs of a command line, with these files beside it.
pub fn arguments(arguments: &[&str], files: &[(&str, &str)]) -> Result<Arguments, JobError> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let mut shelf = Shelf(files.iter().map(owned).collect());
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    parse_arguments(&arguments, &mut shelf, &Fixed)
}

/// The jobs of a file called `jobs.fio`.
pub fn of_file(text: &str) -> Result<Understood, JobError> {
    understand(&arguments(&["jobs.fio"], &[("jobs.fio", text)])?.sections)
}
