//! The error of a file or another named thing, in the form of coreutils: `disk.img: No such file
//! or directory`. A failed action other than opening stands between: `disk.img: locking: ...`.

use std::error::Error;
use std::{fmt, io};

/// The system refused an operation on a named thing.
#[derive(Debug)]
pub struct FileError {
    /// The file, device, address or program.
    pub name: String,
    /// The failed operation (`locking`); none where it was opened or examined, because then the
    /// reason suffices.
    pub action: Option<&'static str>,
    /// The system's answer.
    pub error: io::Error,
}

impl FileError {
    /// The error of opening or examining `name`.
    pub fn open<E: Into<io::Error>>(name: impl Into<String>) -> impl FnOnce(E) -> Self {
        Self::of(name.into(), None)
    }

    /// The error of any other `action` on `name`.
    pub fn at<E: Into<io::Error>>(
        name: impl Into<String>,
        action: &'static str,
    ) -> impl FnOnce(E) -> Self {
        Self::of(name.into(), Some(action))
    }

    fn of<E: Into<io::Error>>(
        name: String,
        action: Option<&'static str>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self {
            name,
            action,
            error: error.into(),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            None => write!(f, "{}: {}", self.name, self.error),
            Some(action) => write!(f, "{}: {action}: {}", self.name, self.error),
        }
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thing_stands_first_and_opening_is_not_named() {
        let refused = || io::Error::other("full");
        let opened = FileError::open("a")(refused());
        assert_eq!(opened.to_string(), "a: full");
        let locked = FileError::at("a", "locking")(refused());
        assert_eq!(locked.to_string(), "a: locking: full");
    }
}
