//! Why a provider's key cannot be had.

use std::io;
use std::time::Duration;
use ugeom_format::eli::EliError;

/// Why a key does not open a provider, or cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum EliKeyError {
    /// The metadata cannot be used.
    #[error(transparent)]
    Format(#[from] EliError),
    /// Neither a keyfile nor a passphrase was given.
    #[error("No key components given.")]
    NoComponents,
    /// The key opens no slot.
    #[error("Wrong key")]
    WrongKey,
    /// No slot is in use.
    #[error("No valid keys")]
    NoKeys,
    /// The passphrase takes longer than the limit.
    #[error(
        "{iterations} iterations of PBKDF2 would take about {estimate:.0?}, and the limit is \
         {limit:.0?}; --max-kdf-time raises it"
    )]
    TooSlow {
        /// Rounds that the metadata asks for.
        iterations: u32,
        /// How long they would take here.
        estimate: Duration,
        limit: Duration,
    },
    /// The user has interrupted it.
    #[error("interrupted")]
    Cancelled,
    /// There is no memory for keys, or there are no random numbers.
    #[error("keys: {0}")]
    Memory(#[from] io::Error),
}
