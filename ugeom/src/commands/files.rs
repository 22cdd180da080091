//! Files that results go to: none that this program did not write is overwritten.

use crate::failure::{self, Reported, Usage};
use crate::output;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use ugeom_machine::result_file::refuse_disk;
use ugeom_machine::temporary::is_added_to;

pub use ugeom_machine::temporary::NewFile;

/// The path that means standard output.
pub const STDOUT: &str = "-";

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
    /// A drawing of a trace.
    Picture,
    /// The events of a trace.
    Recording,
    /// Requests to be replayed, in the format of fio, written by any program.
    Iolog,
}

/// A mark of this program stands among the first bytes of its files.
const HEAD_BYTES: u64 = 4096;

impl Written {
    const ALL: [Self; 7] = [
        Self::Json,
        Self::Csv,
        Self::Report,
        Self::Markdown,
        Self::Picture,
        Self::Recording,
        Self::Iolog,
    ];

    /// Whether a file that begins so was written by this program.
    fn is_ours(self, head: &str) -> bool {
        match self {
            Self::Json => {
                head.contains("\"program\": \"ugeom ") || head.contains("\"program\":\"ugeom ")
            }
            Self::Csv => head.starts_with(ugeom_harness::tidy::HEADER),
            Self::Report => head.contains("<meta name=\"generator\" content=\"ugeom "),
            Self::Markdown => head.starts_with("# ugeom "),
            Self::Picture => head.contains("<!-- ugeom "),
            Self::Recording => head.starts_with("UGEOMTR"),
            Self::Iolog => head.starts_with("fio version "),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "a JSON result",
            Self::Csv => "a CSV table",
            Self::Report => "an HTML report",
            Self::Markdown => "a Markdown report",
            Self::Picture => "an SVG picture",
            Self::Recording => "a recorded trace",
            Self::Iolog => "an iolog",
        }
    }
}

/// A flag that names a file for a result.
#[derive(Clone, Copy)]
pub struct Output<'a> {
    /// Its name with dashes, for messages.
    pub flag: &'static str,
    /// Its value, if it is given.
    pub path: Option<&'a Path>,
    /// The content of the file.
    pub what: Written,
}

impl<'a> Output<'a> {
    /// The flag `--json`.
    pub fn json(path: Option<&'a PathBuf>) -> Self {
        Self::new("--json", path, Written::Json)
    }

    /// The flag `--report`.
    pub fn report(path: Option<&'a PathBuf>) -> Self {
        Self::new("--report", path, Written::Report)
    }

    pub fn new(flag: &'static str, path: Option<&'a PathBuf>, what: Written) -> Self {
        Self {
            flag,
            path: path.map(PathBuf::as_path),
            what,
        }
    }

    /// Whether it goes to standard output, in place of the answer.
    pub fn is_stdout(&self) -> bool {
        self.path == Some(Path::new(STDOUT))
    }

    fn file(&self) -> Option<&'a Path> {
        self.path.filter(|_| !self.is_stdout())
    }
}

/// Checks each output, and that no two have one file.
///
/// # Errors
/// [`Usage`] for two of one file; as [`check`].
pub fn check_all(outputs: &[Output<'_>], force: bool) -> Result<()> {
    for (at, one) in outputs.iter().enumerate() {
        let Some(path) = one.path else { continue };
        let same =
            |other: &&Output<'_>| other.path.is_some_and(|other| place(other) == place(path));
        if let Some(other) = outputs[..at].iter().find(same) {
            let (first, second, path) = (other.flag, one.flag, path.display());
            let problem = format!("{first} and {second} name one file, {path}; name two");
            return Err(Usage(problem).into());
        }
        check(one.path, one.what, force)?;
    }
    Ok(())
}

/// A path that is the same for all names of a file, which need not exist.
fn place(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let existing = path.canonicalize().ok();
    existing.or_else(in_folder).unwrap_or(path.to_owned())
}

/// A file of a result, and how its text is made.
pub type Delivery<'a> = (Output<'a>, &'a dyn Fn() -> Result<String>);

/// Prints the answer, or the file whose name is `-`; then writes every file. A file
/// that fails keeps none of the others back.
///
/// # Errors
/// The answer could not be printed; [`Reported`] where a file could not be written.
pub fn deliver(answer: impl FnOnce() -> Result<String>, results: &[Delivery<'_>]) -> Result<()> {
    let printed = match results.iter().find(|(output, _)| output.is_stdout()) {
        Some((_, text)) => text(),
        None => answer(),
    };
    let printed = printed.and_then(|text| output::print(&text));
    let mut failed = false;
    for (output, text) in results {
        let Some(path) = output.file() else { continue };
        match text().and_then(|text| write(path, text.as_bytes())) {
            Ok(()) if output.what == Written::Report => {
                output::remark(&format!("the report is in {}", path.display()));
            }
            Ok(()) => {}
            Err(error) => {
                output::complain(&failure::text(&error));
                failed = true;
            }
        }
    }
    printed?;
    if failed { Err(Reported.into()) } else { Ok(()) }
}

/// Writes a file whole, or leaves the old one.
pub fn write(path: &Path, text: &[u8]) -> Result<()> {
    let written = NewFile::create(path).and_then(|mut new| {
        new.file.write_all(text)?;
        new.keep()
    });
    written.with_context(|| format!("{}: writing", path.display()))
}

/// Refuses to overwrite a file that this program did not write, unless `force`; and tries to open
/// the file, which is better done before a measurement than after it. The old content stays until
/// then, and a missing file is not created.
///
/// # Errors
/// [`Usage`] for a file of others; why it cannot be written.
pub fn check(path: Option<&Path>, what: Written, force: bool) -> Result<()> {
    let Some(path) = path.filter(|path| *path != Path::new(STDOUT)) else { return Ok(()) };
    refuse_disk(path).with_context(|| path.display().to_string())?;
    try_open(path, || match found(path, what)?.filter(|_| !force) {
        None => Ok(()),
        Some(found) => {
            let problem = format!("{} {found}; --force overwrites it", path.display());
            Err(Usage(problem).into())
        }
    })
}

/// Tries to open a file for writing, as [`check`] does; `may` is asked about one that exists.
///
/// # Errors
/// Why it cannot be written; the error of `may`.
pub fn try_open(path: &Path, may: impl FnOnce() -> Result<()>) -> Result<()> {
    if std::fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo()) {
        return Ok(());
    }
    let mut options = File::options();
    options.write(true);
    let tried = match options.clone().create_new(true).open(path) {
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            may()?;
            options.open(path).map(drop)
        }
        Err(error) => Err(error),
    };
    tried.with_context(|| path.display().to_string())
}

/// The content that would be lost with a file; nothing where it is empty, an older result of the
/// same kind, or no regular file.
fn found(path: &Path, what: Written) -> Result<Option<String>> {
    let name = || path.display().to_string();
    // A link to nothing.
    let Ok(about) = std::fs::metadata(path) else { return Ok(None) };
    if is_added_to(&about) || about.len() == 0 {
        return Ok(None);
    }
    let mut head = Vec::new();
    let file = File::open(path).with_context(name)?;
    file.take(HEAD_BYTES)
        .read_to_end(&mut head)
        .with_context(name)?;
    let head = String::from_utf8_lossy(&head);
    if what.is_ours(&head) {
        return Ok(None);
    }
    let other = Written::ALL.iter().find(|kind| kind.is_ours(&head));
    Ok(Some(match other {
        Some(other) => format!("is {}, not {}", other.name(), what.name()),
        None => "was not written by ugeom".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_words(error: &anyhow::Error, words: &str) {
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn two_outputs_of_one_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let other = folder.path().join(".").join("a");
        let checked = |json, report| {
            check_all(
                &[Output::json(Some(json)), Output::report(Some(report))],
                true,
            )
        };
        let error = checked(&path, &other).unwrap_err();
        has_words(&error, "--json and --report name one file");
        let stdout = PathBuf::from(STDOUT);
        assert!(checked(&stdout, &stdout).is_err());
        assert!(checked(&path, &stdout).is_ok());
    }

    #[test]
    fn a_file_that_fails_keeps_no_other_back() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none/a.json");
        let report = folder.path().join("a.html");
        let text = || Ok("text".to_owned());
        let results: [Delivery<'_>; 2] = [
            (Output::json(Some(&missing)), &text),
            (Output::report(Some(&report)), &text),
        ];
        let error = deliver(|| Ok(String::new()), &results).unwrap_err();
        assert!(error.is::<Reported>());
        assert_eq!(std::fs::read_to_string(&report).unwrap(), "text");
    }

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
        let error = check(Some(&json), Written::Report, false).unwrap_err();
        has_words(
            &error,
            "a.json is a JSON result, not an HTML report; --force",
        );
    }
}
