//! Why a provider cannot be measured, in plain words.

use ugeom_harness::HarnessError;
use ugeom_stack::{IoError, StackError};

/// The reason why a measurement of diskinfo could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum DiskinfoError {
    #[error(
        "{provider} is too small to be measured: it has {media_bytes} bytes, and this takes at \
         least {needed_bytes} (sectors of {sector_bytes} bytes)"
    )]
    TooSmall {
        provider: String,
        media_bytes: u64,
        /// The size that is needed, bytes.
        needed_bytes: u64,
        /// Its sector size, bytes.
        sector_bytes: u64,
    },
    /// Blocks of a megabyte are not whole sectors.
    #[error(
        "{provider} cannot be measured: 1048576 bytes are not a multiple of its sectors of \
         {sector_bytes} bytes"
    )]
    SectorSize {
        provider: String,
        /// Its sector size, bytes.
        sector_bytes: u64,
    },
    /// A way into the stack could not be had.
    #[error("opening a channel to measure: {0}")]
    Stack(#[from] StackError),
    /// A request of a measurement failed.
    #[error("measuring {step}: {source}")]
    Io {
        /// The step that it was part of.
        step: String,
        /// The failed layer, the place and the reason.
        source: IoError,
    },
    #[error(
        "measuring {step}: a request for {wanted_bytes} bytes at offset {offset_bytes} ended \
         after {got_bytes}"
    )]
    Short {
        /// The step that it was part of.
        step: String,
        offset_bytes: u64,
        /// How much was asked for, bytes.
        wanted_bytes: u64,
        /// How much was done, bytes.
        got_bytes: u64,
    },
    #[error("measuring {step}: {lost} requests did not complete within a minute")]
    Lost {
        /// The step that they were part of.
        step: String,
        /// Requests that did not complete.
        lost: u64,
    },
    /// The stack cannot be waited for.
    #[error("measuring {0}")]
    Other(HarnessError),
}
