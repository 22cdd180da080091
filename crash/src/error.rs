//! Errors of the laboratory itself; a failing state is no error.

use std::io;
use std::path::{Path, PathBuf};
use ugeom_classes::crash::LogError;
use ugeom_format::crash_log::CrashLogError;
use ugeom_machine::file_error::FileError;
use ugeom_stack::StackError;

/// Why a recording or a campaign could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum CrashError {
    /// The system refused an operation on a file.
    #[error(transparent)]
    Os(#[from] FileError),
    /// The log is damaged, or none.
    #[error("{path}: record {record}: {error}")]
    Log {
        path: PathBuf,
        /// The number of the record, from 0; 0 for the header, too.
        record: u64,
        #[source]
        error: CrashLogError,
    },
    /// The log cannot be written.
    #[error(transparent)]
    Recorder(#[from] LogError),
    /// The text of a state cannot be read, or names a change that is not in the log.
    #[error("state `{text}`: {problem}")]
    State { text: String, problem: String },
    /// The stack that serves the device could not be built.
    #[error(transparent)]
    Stack(#[from] StackError),
    #[error("serving the device: {0}")]
    Serve(String),
    /// A command of the user failed that must not: the set-up or the run.
    #[error("{what} `{command}` failed: {how}")]
    Command {
        /// The name of the command.
        what: &'static str,
        command: String,
        how: String,
    },
    #[error("the check fails on the device as the run left it, before anything is lost: {0}")]
    Unsound(String),
    /// The log holds no write after the set-up.
    #[error("{0}: the run wrote nothing, so there is nothing to lose")]
    NothingWritten(PathBuf),
}

/// The error of a failed action on a file, other than opening it.
pub(crate) fn os(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> CrashError + use<> {
    let error = FileError::at(path.display().to_string(), action);
    move |source| error(source).into()
}

/// The error of a file that cannot be opened.
pub(crate) fn open(path: &Path) -> impl FnOnce(io::Error) -> CrashError + use<> {
    let error = FileError::open(path.display().to_string());
    move |source| error(source).into()
}
