//! A side of the comparison: its kind, and its classification.

use serde::{Deserialize, Serialize};
use std::env;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use ugeom_classes::spec::{self, FILE_CLASS};
use ugeom_classes::{Target, TargetOptions, TargetText, open_target, path_of, registry};
use ugeom_harness::HarnessError;

/// One side of a comparison: a target, a job file or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// A target of the stack language, which is read.
    Target(String),
    /// The path of a job file of fio's, which is run.
    Job(String),
    /// A command of the shell, which is run.
    Command(String),
}

impl Side {
    /// The most likely class of a text; none when none fits.
    ///
    /// It is a job file when it names a file that ends in `.fio` or `.job`. It is a target when it
    /// follows the stack language and its class, or the file that it names, exists. It is a command
    /// when its first word is a program. A file that can be executed is both, and taken for a
    /// command.
    pub fn guess(text: &str) -> Option<Self> {
        if is_job_file(&path_of(text)) {
            return Some(Self::Job(text.to_owned()));
        }
        let command = first_word(text).is_some_and(is_program);
        match stands_on(text) {
            Some(Base::Class) => Some(Self::Target(text.to_owned())),
            _ if command => Some(Self::Command(text.to_owned())),
            Some(Base::File) => Some(Self::Target(text.to_owned())),
            None => None,
        }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            Self::Target(text) | Self::Job(text) | Self::Command(text) => text,
        }
    }
}

/// A target, opened with settings of its stack.
pub(super) fn opened(text: &str, set: &spec::Settings) -> Result<Target, HarnessError> {
    let options = TargetOptions {
        set: *set,
        ..TargetOptions::default()
    };
    open_target(text, &options).map_err(HarnessError::subject)
}

/// `target md:64m`, `job file a.fio`, `command sleep 0.1`.
impl fmt::Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(text) => write!(out, "target {text}"),
            Self::Job(path) => write!(out, "job file {path}"),
            Self::Command(text) => write!(out, "command {text}"),
        }
    }
}

fn is_job_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("fio" | "job")) && path.is_file()
}

/// The base layer of a target.
enum Base {
    Class,
    File,
}

fn stands_on(text: &str) -> Option<Base> {
    let target = spec::parse(text, &registry::names()).ok()?;
    if target.stack.is_some() {
        return Some(Base::Class);
    }
    let bottom = target.layers.first()?;
    if bottom.class.value != FILE_CLASS {
        return Some(Base::Class);
    }
    // A provider by the name that `show` prints stands on the file that it is in.
    let target = TargetText::parse(text).ok()?;
    path_of(target.bottom_path()?)
        .exists()
        .then_some(Base::File)
}

/// The first word that is no assignment, as in `LC_ALL=C sort file`.
fn first_word(text: &str) -> Option<&str> {
    let is_assignment = |word: &&str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        })
    };
    text.split_whitespace().find(|word| !is_assignment(word))
}

fn is_program(word: &str) -> bool {
    let is_executable = |path: &Path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return is_executable(Path::new(word));
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| is_executable(&folder.join(word)))
}
