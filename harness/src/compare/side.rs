//! The sides of a comparison: files whose values are taken together.

use super::Loaded;
use crate::HarnessError;
use crate::foreign::{self, Format, Series};
use ugeom_measure::summary::median;

/// A side of a comparison: the files of one state.
#[derive(Clone, Debug)]
pub struct Side {
    /// The name under which the page shows this side.
    pub name: String,
    /// The files whose values are taken together.
    pub files: Vec<Source>,
}

/// A file with results.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the file, as the page shows it.
    pub name: String,
    /// The program that wrote it.
    pub format: Format,
    /// The values of each case and metric of the file.
    pub series: Vec<Series>,
    /// The document, where it is one of ours.
    pub document: Option<Loaded>,
}

impl Source {
    /// Reads a file of any format; `case` names what a criterion result measured.
    ///
    /// # Errors
    /// [`HarnessError::Compare`] with the name, the place and what was expected there.
    pub fn read(name: &str, case: &str, text: &str) -> Result<Self, HarnessError> {
        let (format, series) = foreign::read(name, case, text)?;
        let document = match format {
            Format::Ugeom if !text.trim_start().starts_with('[') => Some(Loaded::read(name, text)?),
            _ => None,
        };
        Ok(Self {
            name: name.to_owned(),
            format,
            series,
            document,
        })
    }
}

impl From<&Loaded> for Source {
    fn from(loaded: &Loaded) -> Self {
        Self {
            name: loaded.name.clone(),
            format: Format::Ugeom,
            series: foreign::series(&loaded.document),
            document: Some(loaded.clone()),
        }
    }
}

impl Side {
    /// The values of all files. Where a file's values are all of one process and there are several
    /// files, a file is one observation.
    pub(super) fn series(&self) -> Vec<Series> {
        let mut all = Vec::new();
        for file in &self.files {
            let alone = self.files.len() == 1 || !file.format.is_of_one_process();
            for one in &file.series {
                let mut one = one.clone();
                if !alone {
                    one.values = median(&one.values).into_iter().collect();
                }
                foreign::merge(&mut all, one);
            }
        }
        all
    }
}

/// Refuses a side with one measurement twice: its values would count as independent ones.
pub(super) fn refuse_repeated(side: &Side) -> Result<(), HarnessError> {
    for (number, one) in side.files.iter().enumerate() {
        let is_ours = |other: &Source| one.document.is_some() && other.document.is_some();
        let same = |earlier: &&Source| {
            earlier.series == one.series && (earlier.name == one.name || is_ours(earlier))
        };
        if let Some(earlier) = side.files[..number].iter().find(same) {
            let problem = format!(
                "{} and {} hold the same values: give each result once",
                earlier.name, one.name
            );
            return Err(HarnessError::Compare(problem));
        }
    }
    Ok(())
}

/// A warning for each file that both sides have.
pub(super) fn shared(base: &Side, other: &Side) -> Vec<String> {
    let mut warnings = Vec::new();
    for old in &base.files {
        for new in other.files.iter().filter(|new| new.series == old.series) {
            warnings.push(format!(
                "{} and {} hold the same values: this compares a measurement with itself",
                old.name, new.name
            ));
        }
    }
    warnings
}
