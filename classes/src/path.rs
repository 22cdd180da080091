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

/// A path of options that are given to another process, as [`text_of`] has it: for
/// `#[serde(with)]`, since a path that is no UTF-8 has no form of its own in JSON.
pub mod optional_path {
    use super::{path_of, text_of};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::path::PathBuf;

    /// Saves the text of the path.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_ref().map(text_of).serialize(to)
    }

    /// Reads the path of a text.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.as_deref().map(path_of))
    }
}

/// A path as one word of the stack language, in quotes.
pub fn quoted_path(path: &Path) -> String {
    let text = text_of(path);
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
