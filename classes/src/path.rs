//! Paths in the text of targets. A path need not be UTF-8; `ugeom_format::text` says how it is kept
//! in a `String`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use ugeom_format::text;

/// The path that a text means.
pub fn path_of(text: &str) -> PathBuf {
    OsString::from_vec(text::to_bytes(text)).into()
}

/// The text that means a path, or any other word of the system.
pub fn text_of(path: impl AsRef<OsStr>) -> String {
    text::from_bytes(path.as_ref().as_bytes())
}

/// A path as one word of the stack language, in quotes.
pub fn quoted_path(path: &Path) -> String {
    let text = text_of(path);
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
