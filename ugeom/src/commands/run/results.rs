//! Where results go: stdout, or the file of `--output`. With `--status-interval` that file gets
//! each report as it is made; without, it is written whole at the end.

use super::super::files;
use crate::output;
use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use ugeom_classes::{path_of, result_file};
use ugeom_job::Report;

/// The place of the results.
pub struct Results {
    /// The file of `--output`.
    path: Option<PathBuf>,
    /// That file, where it is written while jobs run.
    stream: Option<File>,
    /// The first error of writing to it.
    failed: io::Result<()>,
    /// What the file that is written whole begins with.
    head: String,
}

impl Results {
    /// Refuses a file that carries a table, a file system or an image, and one that cannot be
    /// written: hours of measuring must not be lost to a wrong name.
    ///
    /// # Errors
    /// Why the results cannot go there.
    pub fn open(report: &Report) -> Result<Self> {
        let path = report.output.as_deref().map(path_of);
        let mut stream = None;
        if let Some(path) = &path {
            let name = || path.display().to_string();
            result_file::refuse_carrying(path, |_| false).with_context(name)?;
            files::try_open(path, || Ok(()))?;
            if report.status_interval_ns.is_some() {
                let opened = File::create(path);
                stream = Some(opened.with_context(|| format!("{}: writing", path.display()))?);
            }
        }
        Ok(Self {
            path,
            stream,
            failed: Ok(()),
            head: String::new(),
        })
    }

    /// What is known before jobs run, for the normal output.
    ///
    /// # Errors
    /// Those of stdout.
    pub fn begin(&mut self, head: &str) -> Result<()> {
        match (&self.path, &self.stream) {
            (None, _) => output::print(head)?,
            (Some(_), None) => head.clone_into(&mut self.head),
            (Some(_), Some(_)) => self.report(head),
        }
        Ok(())
    }

    /// A report while jobs run. An error is kept for the end: the jobs go on.
    pub fn report(&mut self, text: &str) {
        match &mut self.stream {
            // The final report fails for the same reason; its error is printed then.
            None => drop(output::print(text)),
            Some(file) if self.failed.is_ok() => self.failed = file.write_all(text.as_bytes()),
            Some(_) => {}
        }
    }

    /// The result.
    ///
    /// # Errors
    /// It, or a report before it, cannot be written.
    pub fn finish(mut self, text: &str) -> Result<()> {
        let Some(path) = &self.path else {
            return output::print(text);
        };
        if self.stream.is_none() {
            return files::write(path, format!("{}{text}", self.head).as_bytes());
        }
        let name = format!("{}: writing", path.display());
        self.report(text);
        self.failed.context(name)
    }
}
