//! Files that results go to: none that this program did not write is overwritten.

use crate::failure::Usage;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use ugeom_machine::result_file::refuse_disk;

/// The path that means standard output.
pub const STDOUT: &str = "-";

/// What is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A document, or several.
    Json,
    /// A table of samples.
    Csv,
    /// An HTML report, known by its `generator`.
    Report,
    /// The same as Markdown.
    Markdown,
}

/// A mark of this program stands among the first bytes of what it writes.
const HEAD_BYTES: u64 = 4096;

impl Written {
    /// Whether a file that begins so was written by this program.
    fn is_ours(self, head: &str) -> bool {
        match self {
            Self::Json => {
                head.contains("\"program\": \"ugeom ") || head.contains("\"program\":\"ugeom ")
            }
            Self::Csv => head.starts_with(ugeom_harness::tidy::HEADER),
            Self::Report => head.contains("<meta name=\"generator\" content=\"ugeom "),
            Self::Markdown => head.starts_with("# ugeom "),
        }
    }
}

/// Refuses to overwrite a file that this program did not write, unless `force`; and tries to open
/// the file, which is better done before a measurement than after it. What is in it stays until
/// then, and where there is none, none is left.
///
/// # Errors
/// [`Usage`] for a file of others; why it cannot be written.
pub fn check(path: Option<&Path>, what: Written, force: bool) -> Result<()> {
    let Some(path) = path.filter(|path| *path != Path::new(STDOUT)) else { return Ok(()) };
    refuse_disk(path).with_context(|| path.display().to_string())?;
    let mut options = File::options();
    options.write(true);
    let tried = match options.clone().create_new(true).open(path) {
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !force && !is_replaceable(path, what)? {
                let name = path.display();
                let problem = format!("{name} was not written by ugeom; --force overwrites it");
                return Err(Usage(problem).into());
            }
            options.open(path).map(drop)
        }
        Err(error) => Err(error),
    };
    tried.with_context(|| format!("opening {} for writing", path.display()))
}

/// Whether nothing of others is lost with a file: it is empty, ours, or no regular file.
fn is_replaceable(path: &Path, what: Written) -> Result<bool> {
    let name = || format!("reading {}", path.display());
    let about = std::fs::metadata(path).with_context(name)?;
    if !about.is_file() || about.len() == 0 {
        return Ok(true);
    }
    let mut head = Vec::new();
    let file = File::open(path).with_context(name)?;
    file.take(HEAD_BYTES)
        .read_to_end(&mut head)
        .with_context(name)?;
    Ok(what.is_ours(&String::from_utf8_lossy(&head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_others_stays_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let tried = |force| check(Some(&path), Written::Report, force).is_ok();
        assert!(
            tried(false) && !path.exists(),
            "nothing is left where nothing was"
        );
        std::fs::write(&path, "<html>my thesis</html>").unwrap();
        let error = check(Some(&path), Written::Report, false).unwrap_err();
        assert!(
            error.is::<Usage>() && error.to_string().contains("--force"),
            "{error}"
        );
        assert!(tried(true));
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "<html>my thesis</html>"
        );
        std::fs::write(&path, ugeom_report::to_html(&[])).unwrap();
        assert!(tried(false), "our own report may be replaced");
        let json = folder.path().join("a.json");
        std::fs::write(&json, "{\"schema\": 1, \"program\": \"ugeom 0.1.0\"}").unwrap();
        assert!(check(Some(&json), Written::Json, false).is_ok());
        assert!(check(Some(&json), Written::Report, false).is_err());
    }
}
