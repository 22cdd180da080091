//! Files with results, of this program or of others.

use crate::output::printable;
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use ugeom_harness::compare::Source;

/// The path that means standard input.
const STDIN: &str = "-";

/// Larger files are no results.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// More files are not looked at in a folder.
const FILES_MAX: usize = 10_000;

/// Folders in folders are looked at this deep.
const DEPTH_MAX: usize = 8;

/// The results in a file, or in all files of a folder. In a folder of criterion's those are the
/// samples of the last run of each benchmark.
///
/// # Errors
/// The name of a file that cannot be read, or holds no result.
pub fn read(path: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for one in files(path)? {
        let text = text(&one.path)?;
        let name = printable(&one.path.display().to_string());
        sources.push(Source::read(&name, &one.case, &text)?);
    }
    Ok(sources)
}

pub struct ResultFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The measured case, where its format does not hold that: criterion's.
    pub case: String,
}

/// The files with results that a path stands for.
///
/// # Errors
/// The name of a file that cannot be read, or holds no result.
pub fn files(path: &Path) -> Result<Vec<ResultFile>> {
    let with_case = |path: PathBuf, case: String| ResultFile { path, case };
    if path == Path::new(STDIN) {
        return Ok(vec![with_case(
            path.to_owned(),
            "standard input".to_owned(),
        )]);
    }
    let name = || printable(&path.display().to_string());
    let about = std::fs::metadata(path).with_context(name)?;
    if !about.is_dir() {
        return Ok(vec![with_case(path.to_owned(), case(path))]);
    }
    let mut samples = Vec::new();
    find(path, DEPTH_MAX, &mut samples)?;
    samples.sort();
    if !samples.is_empty() {
        let known = samples.into_iter().map(|one| {
            let case = case_in(path, &one);
            with_case(one, case)
        });
        return Ok(known.collect());
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).with_context(name)? {
        let one = entry.with_context(name)?.path();
        let extension = one.extension().and_then(|it| it.to_str());
        if matches!(extension, Some("json" | "txt")) && one.is_file() {
            files.push(one);
        }
    }
    if files.is_empty() {
        bail!(
            "{}: expected files *.json or *.txt, or criterion's new/sample.json",
            name()
        );
    }
    files.sort();
    let known = files.into_iter().map(|one| {
        let case = case(&one);
        with_case(one, case)
    });
    Ok(known.collect())
}

/// The samples of criterion below a folder: `BENCHMARK/new/sample.json`.
fn find(folder: &Path, depth: usize, samples: &mut Vec<PathBuf>) -> Result<()> {
    let name = || printable(&folder.display().to_string());
    let sample = folder.join("new/sample.json");
    if sample.is_file() {
        samples.push(sample);
    }
    if depth == 0 || samples.len() > FILES_MAX {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).with_context(name)? {
        let entry = entry.with_context(name)?;
        // No link is followed, so that there is an end.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth - 1, samples)?;
        }
    }
    Ok(())
}

/// The measured case of a single criterion sample: its folder above `new` or `base`.
fn case(path: &Path) -> String {
    let above = path.parent().and_then(Path::parent);
    let folder = above.and_then(Path::file_name).and_then(|it| it.to_str());
    folder.unwrap_or("benchmark").to_owned()
}

/// The same in a folder of all: the way to it.
fn case_in(root: &Path, sample: &Path) -> String {
    let benchmark = sample.parent().and_then(Path::parent);
    let way = benchmark.and_then(|it| it.strip_prefix(root).ok());
    match way.map(|way| way.display().to_string()) {
        Some(way) if !way.is_empty() => way,
        _ => case(sample),
    }
}

/// The text of a file; `-` is standard input.
///
/// # Errors
/// The name of a file that cannot be read, is no text, or is larger than any result.
pub fn text(path: &Path) -> Result<String> {
    let name = || printable(&path.display().to_string());
    let source: Box<dyn Read> = match path == Path::new(STDIN) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).with_context(name)?),
    };
    let mut bytes = Vec::new();
    let mut limited = source.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).with_context(name)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!(
            "{}: larger than {FILE_BYTES_MAX} bytes: not a result",
            name()
        );
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("{}: byte {at}: not UTF-8; a result is text or JSON", name())
    })
}
