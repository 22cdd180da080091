//! The input of a class's builder, and the errors it may return.

use crate::spec::SpecError;
use std::io;
use std::path::Path;
use std::time::Duration;
use ugeom_machine::file_error::FileError;
use ugeom_machine::in_use::use_of;
use ugeom_stack::{ProviderPlan, ProviderView, Stack};

/// How files and devices of a target are opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileAccess {
    /// Whether writes are possible: O_RDWR instead of O_RDONLY.
    pub writable: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Without a lock: another process holds the target.
    pub unlocked: bool,
    /// To change the structure of the target, such as its partition table: refused while another
    /// program relies on it.
    pub relayout: bool,
}

/// How the passphrase and the time of a key are given to targets that are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyOptions {
    /// An open descriptor whose first line is the passphrase.
    pub passphrase_descriptor: Option<u32>,
    /// How long deriving a key may take.
    pub kdf_time_max: Option<Duration>,
}

/// The surroundings in which a geom is built.
pub struct BuildContext<'a> {
    stack: &'a Stack,
    files: FileAccess,
    keys: KeyOptions,
}

impl<'a> BuildContext<'a> {
    /// The surroundings of a geom that will stand in `stack`.
    pub fn new(stack: &'a Stack, files: FileAccess, keys: KeyOptions) -> Self {
        Self { stack, files, keys }
    }

    /// The stack in which the geom will stand.
    pub fn stack(&self) -> &Stack {
        self.stack
    }

    /// The descriptor that holds the passphrase, if the user named one.
    pub fn passphrase_descriptor(&self) -> Option<u32> {
        self.keys.passphrase_descriptor
    }

    /// How long deriving a key from a passphrase may take, if the user says so.
    pub fn kdf_time_max(&self) -> Option<Duration> {
        self.keys.kdf_time_max
    }

    /// The user asked for writing: files are opened for it, and locked.
    pub fn writable(&self) -> bool {
        self.files.writable
    }

    /// Another process keeps the target for this one: it is neither locked nor opened exclusively.
    pub fn unlocked(&self) -> bool {
        self.files.unlocked
    }

    /// The content of the target may be changed: nothing else may rely on it.
    pub fn relayout(&self) -> bool {
        self.files.relayout
    }

    /// The user asked that files are opened for direct I/O (`O_DIRECT`).
    pub fn direct(&self) -> bool {
        self.files.direct
    }

    /// A name for a provider that should be called `wanted`: where another is called so, the first
    /// of `wanted-2`, `wanted-3`, ... that is free.
    pub(crate) fn free_name(&self, wanted: String) -> String {
        let tree = self.stack.tree();
        if tree.provider(&wanted).is_none() {
            return wanted;
        }
        let count = tree.providers().count();
        let mut others = (2..=count + 1).map(|number| format!("{wanted}-{number}"));
        let free = others.find(|name| tree.provider(name).is_none());
        free.unwrap_or(wanted)
    }

    /// The first of `md0`, `md1`, ... that no provider is called yet.
    pub(crate) fn next_name(&self, prefix: &str) -> String {
        let tree = self.stack.tree();
        // Of one name more than there are providers, one is free.
        let count = tree.providers().count();
        (0..=count)
            .map(|unit| format!("{prefix}{unit}"))
            .find(|name| tree.provider(name).is_none())
            .unwrap_or_else(|| format!("{prefix}{}", count + 1))
    }
}

/// Why a geom could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum BuildError {
    /// An option is wrong; the error points at it.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The operating system refused an operation on a file.
    #[error(transparent)]
    Os(#[from] FileError),
    /// The operating system refused something that the class itself needs.
    #[error("{class}: {operation}: {error}")]
    System {
        class: &'static str,
        operation: &'static str,
        #[source]
        error: io::Error,
    },
    #[error("{path} {found}: free it first; nothing was written")]
    InUse {
        path: String,
        /// The use found: `is mounted at /mnt`, `is attached to /dev/loop0`.
        found: String,
    },
    /// The file or device is there, but cannot be used, or not in this way.
    #[error("{path}: {problem}")]
    Refused {
        /// The file or device.
        path: String,
        /// Why not, in plain words.
        problem: String,
    },
}

impl BuildError {
    /// The error of a failed action on a file, other than opening it.
    pub(crate) fn os<E: Into<io::Error>>(
        action: &'static str,
        path: &str,
    ) -> impl Fn(E) -> Self + Copy {
        move |error| FileError::at(path, action)(error).into()
    }

    /// The error of a file that cannot be opened.
    pub(crate) fn open<E: Into<io::Error>>(path: &str) -> impl Fn(E) -> Self + Copy {
        move |error| FileError::open(path)(error).into()
    }

    /// Why a file or device cannot be used, in plain words.
    pub(crate) fn refused(path: &str, problem: impl Into<String>) -> Self {
        Self::Refused {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    /// [`BuildError::os`] for an operation that the class itself needs.
    pub(crate) fn system<E: Into<io::Error>>(
        class: &'static str,
        operation: &'static str,
    ) -> impl Fn(E) -> Self + Copy {
        move |error| Self::System {
            class,
            operation,
            error: error.into(),
        }
    }
}

/// Refuses to write below the kernel: its cache and its mounts would not notice.
pub(crate) fn refuse_in_use(path: &Path, shown: &str) -> Result<(), BuildError> {
    match use_of(path) {
        None => Ok(()),
        Some(found) => Err(BuildError::InUse {
            path: shown.to_owned(),
            found,
        }),
    }
}

/// The provider of a layer whose media is that of the provider below it.
pub(crate) fn provider_over(name: String, below: &ProviderView) -> ProviderPlan {
    ProviderPlan {
        stripesize_bytes: below.stripesize_bytes,
        stripeoffset_bytes: below.stripeoffset_bytes,
        padding_bytes: below.padding_bytes,
        ..ProviderPlan::new(name, below.mediasize_bytes, below.sectorsize_bytes)
    }
}

/// The mark of an image whose last sector is not whole.
pub(crate) fn mark_of_padding(size_bytes: u64, padding_bytes: u32) -> String {
    format!("{size_bytes} bytes; the last sector is padded with {padding_bytes} zero bytes")
}
