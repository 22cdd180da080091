//! The job files of a comparison, which the parent and each process of it read.

use super::run::{job_file, may_write};
use anyhow::Result;
use std::collections::BTreeMap;
use ugeom_ab::{AbOptions, Jobs, Side};
use ugeom_fio::Meaning;

/// The job files among the candidates; `note` takes the warnings about their jobs.
pub(super) fn jobs(options: &AbOptions, note: &'static dyn Fn(&str)) -> Result<Jobs<'static>> {
    let mut files = BTreeMap::new();
    for candidate in &options.subject.candidates {
        if let Side::Job(path) = &candidate.side
            && !files.contains_key(path)
        {
            files.insert(path.clone(), job_file(path)?);
        }
    }
    let allowed: &dyn Fn(&Meaning) -> Result<(), String> = match options.destroy {
        true => &|target| may_write(target, true),
        false => &|target| may_write(target, false),
    };
    Ok(Jobs {
        files,
        may_write: allowed,
        note,
    })
}
