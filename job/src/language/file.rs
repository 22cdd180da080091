//! Job files: lines into sections.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::error::{JobError, Origin};
use super::expand::expand;
use super::{Environment, Section, Setting};

/// How deep files may include each other (fio allows 16).
const INCLUDES_MAX: usize = 16;
/// How many settings a job file may have with all that it includes.
const SETTINGS_MAX: usize = 100_000;
/// How many files may be included in all: a file that includes its own kind twice grows as 2^n.
const FILES_MAX: usize = 256;

/// Where the texts of job files come from.
pub trait Loader {
    /// The bytes of `name`, named in the file `from` (`None`: on the command line), and the name
    /// under which it was found. A relative name is tried as it is, then beside `from`; on the
    /// command line `-` is standard input.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn load(&mut self, name: &str, from: Option<&str>) -> std::io::Result<(Vec<u8>, String)>;
}

/// Reads the job file `name`, and the files that it includes.
///
/// # Errors
/// The line that is wrong, and why.
pub fn parse_file(
    name: &str,
    loader: &mut dyn Loader,
    environment: &dyn Environment,
) -> Result<Vec<Section>, JobError> {
    let mut reader = Reader {
        loader,
        environment,
        open: Vec::new(),
        sections: Vec::new(),
        settings: 0,
        files: 0,
    };
    reader.file(name, None, &Origin::Default)?;
    Ok(reader.sections)
}

struct Reader<'a> {
    loader: &'a mut dyn Loader,
    environment: &'a dyn Environment,
    /// The files that are being read, the outermost first.
    open: Vec<Arc<str>>,
    sections: Vec<Section>,
    settings: usize,
    files: usize,
}

impl Reader<'_> {
    fn file(&mut self, name: &str, from: Option<&str>, origin: &Origin) -> Result<(), JobError> {
        let (text, found) = self
            .loader
            .load(name, from)
            .map_err(|error| JobError::language(origin, format!("{name}: {error}")))?;
        let found: Arc<str> = found.into();
        if self.open.contains(&found) {
            let mut chain: Vec<&str> = self.open.iter().map(AsRef::as_ref).collect();
            chain.push(&found);
            let message = format!("includes form a loop: {}", chain.join(" -> "));
            return Err(JobError::language(origin, message));
        }
        self.files += 1;
        if self.open.len() >= INCLUDES_MAX || self.files > FILES_MAX {
            let message = format!(
                "at most {INCLUDES_MAX} files may include each other, and {FILES_MAX} in all"
            );
            return Err(JobError::language(origin, message));
        }
        self.open.push(Arc::clone(&found));
        // Editors of Windows put a byte order mark in front.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        for (number, line) in (1_u32..).zip(text.split(|byte| *byte == b'\n')) {
            let origin = Origin::Line {
                file: Arc::clone(&found),
                line: number,
            };
            self.line(line, origin)?;
        }
        self.open.pop();
        Ok(())
    }

    fn line(&mut self, line: &[u8], origin: Origin) -> Result<(), JobError> {
        // As fio has it, a comment begins anywhere, also between quotation marks.
        let end = line.iter().position(|byte| b";#".contains(byte));
        let line = line[..end.unwrap_or(line.len())].trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        let is_shown_only = line.starts_with(b"[") || line.starts_with(b"description");
        if matches!(text, Cow::Owned(_)) && !is_shown_only {
            let message = "the line is not UTF-8: only comments, names and descriptions may \
                           contain other bytes";
            return Err(JobError::language(&origin, message));
        }
        let line = text.trim();
        if let Some(header) = line.strip_prefix('[') {
            return self.header(header, origin);
        }
        if let Some(name) = included(line) {
            if name.is_empty() {
                return Err(JobError::language(
                    &origin,
                    "include needs the name of a file",
                ));
            }
            let from = self.open.last().map(ToString::to_string);
            return self.file(name, from.as_deref(), &origin);
        }
        let setting = self.setting(line, origin)?;
        self.settings += 1;
        if self.settings > SETTINGS_MAX {
            let message = format!("there are more than {SETTINGS_MAX} settings");
            return Err(JobError::language(&setting.origin, message));
        }
        match self.sections.last_mut() {
            Some(section) => section.settings.push(setting),
            None => {
                let message = "a setting before the first [section]";
                return Err(JobError::language(&setting.origin, message));
            }
        }
        Ok(())
    }

    fn header(&mut self, header: &str, origin: Origin) -> Result<(), JobError> {
        if !header.contains(']') {
            return Err(JobError::language(&origin, "the [ of a section has no ]"));
        }
        // fio leaves the last character out, whatever it is: `[a]]` is the job `a]`.
        let mut name = header.chars();
        name.next_back();
        let name = name.as_str();
        if name.is_empty() {
            return Err(JobError::language(&origin, "a section needs a name"));
        }
        self.sections.push(Section {
            name: name.to_owned(),
            origin,
            file: 0,
            settings: Vec::new(),
        });
        Ok(())
    }

    fn setting(&self, line: &str, origin: Origin) -> Result<Setting, JobError> {
        let mut unset = Vec::new();
        let text = expand(line, self.environment, &mut unset)
            .map_err(|message| JobError::language(&origin, message))?;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (text.trim(), None),
        };
        if name.is_empty() {
            return Err(JobError::language(
                &origin,
                "a setting needs a name before the =",
            ));
        }
        Ok(Setting {
            name: name.to_owned(),
            value,
            unset,
            origin,
        })
    }
}

/// The file of an `include` line.
fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    match rest.chars().next() {
        None => Some(""),
        Some(c) if c.is_whitespace() => Some(rest.trim()),
        Some(_) => None,
    }
}
