//! The verbs of geli(8) on a provider's metadata: making, changing, saving, destroying.
//!
//! Each change is one write of one sector, followed by a FLUSH, in an order that leaves good
//! metadata at every moment: a new place is written before an old one is overwritten. Sources:
//! FreeBSD `lib/geom/eli/geom_eli.c` and `sys/geom/eli/g_eli_ctl.c`, for the checks, their order
//! and their words.

mod change;
mod recover;

pub use change::{
    InitSettings, KeyChange, configure, delete_key, dump, initialize, metadata_at_old_size,
    replace_key, resize, restore, would_change,
};
pub use recover::{Candidate, candidates_at, scan};

use super::error::EliKeyError;
use super::random;
use ugeom_format::eli::{EliError, Metadata, VERSION_MAX};
use ugeom_stack::{Channel, IoError, Opened, StackError};

/// How often metadata is overwritten before it is zeroed (`kern.geom.eli.overwrites`).
pub(crate) const OVERWRITES: u32 = 5;

/// Why metadata was not read or changed. The words are geli's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum AdminError {
    #[error("Cannot read metadata from {provider}: {error}.")]
    Read {
        provider: String,
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(
        "Provider's {provider} metadata version {version} is too new. The highest supported \
         version is {VERSION_MAX}."
    )]
    TooNew { provider: String, version: u32 },
    /// The MD5 is wrong.
    #[error("Inconsistent provider's {provider} metadata.")]
    Inconsistent { provider: String },
    /// The sector cannot be written.
    #[error("Cannot write metadata to {provider}: {error}.")]
    Write {
        provider: String,
        #[source]
        error: IoError,
    },
    #[error("Wrong key for {provider}.")]
    WrongKey { provider: String },
    /// No slot is in use.
    #[error("No valid keys on {provider}.")]
    NoKeys { provider: String },
    /// A key cannot be made.
    #[error(transparent)]
    Key(EliKeyError),
    /// It must not be done, in geli's words.
    #[error("{0}")]
    Refused(String),
    /// The provider is gone.
    #[error(transparent)]
    Stack(#[from] StackError),
}

impl AdminError {
    pub(super) fn of_key(error: EliKeyError, provider: &str) -> Self {
        let provider = provider.to_owned();
        match error {
            EliKeyError::WrongKey => Self::WrongKey { provider },
            EliKeyError::NoKeys => Self::NoKeys { provider },
            error => Self::Key(error),
        }
    }

    /// The defect of bytes that should be metadata.
    pub fn of_format(error: EliError, provider: &str) -> Self {
        let provider = provider.to_owned();
        match error {
            EliError::TooNew { version } => Self::TooNew { provider, version },
            EliError::Checksum { .. } => Self::Inconsistent { provider },
            error => Self::Read {
                provider,
                error: error.into(),
            },
        }
    }
}

/// A provider that carries metadata, or is to.
pub struct EliDisk<'a> {
    channel: &'a mut Channel,
    opened: &'a Opened,
    /// Its name, for messages.
    pub name: String,
    /// Size of the provider below in bytes.
    pub media_bytes: u64,
    /// The size of its sectors, bytes.
    pub sector_bytes: u32,
}

impl<'a> EliDisk<'a> {
    /// A provider that is open, for writing too if it is to be changed.
    ///
    /// # Errors
    /// It is gone, or too small for metadata.
    pub fn new(channel: &'a mut Channel, opened: &'a Opened) -> Result<Self, AdminError> {
        let gone = || StackError::Invalid("the provider is destroyed".to_owned());
        let view = opened.view().ok_or_else(gone)?;
        let (media_bytes, sector_bytes) = (view.mediasize_bytes, view.sectorsize_bytes);
        let sectors = media_bytes.checked_div(sector_bytes.into()).unwrap_or(0);
        let least = Metadata::encoded_bytes(VERSION_MAX) as u32;
        if sectors < 2 || sector_bytes < least {
            let message = format!(
                "{} has {sectors} sectors of {sector_bytes} bytes: GELI needs two of {least}",
                view.name
            );
            return Err(AdminError::Refused(message));
        }
        Ok(Self {
            channel,
            opened,
            name: view.name,
            media_bytes,
            sector_bytes,
        })
    }

    /// Where the metadata of a provider of that size lies.
    pub fn place(&self, size_bytes: u64) -> u64 {
        let sector = u64::from(self.sector_bytes);
        (size_bytes / sector).saturating_sub(1) * sector
    }

    /// Reads the sector at a byte offset.
    ///
    /// # Errors
    /// `Read`.
    pub fn sector(&mut self, offset: u64) -> Result<Vec<u8>, AdminError> {
        self.bytes(offset, self.sector_bytes.into())
    }

    fn bytes(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, AdminError> {
        let mut bytes = vec![0; length as usize];
        let read = self.channel.read(self.opened, offset, &mut bytes);
        let read = read.map_err(|error| AdminError::Read {
            provider: self.name.clone(),
            error: error.into(),
        })?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The metadata in the last sector.
    ///
    /// # Errors
    /// `Read`, `TooNew`, `Inconsistent`.
    pub fn metadata(&mut self) -> Result<Metadata, AdminError> {
        let place = self.place(self.media_bytes);
        let sector = self.sector(place)?;
        Metadata::decode(&sector).map_err(|error| AdminError::of_format(error, &self.name))
    }

    /// Whether the last sector begins as metadata does, also if that is damaged.
    ///
    /// # Errors
    /// `Read`.
    pub fn begins_as_metadata(&mut self) -> Result<bool, AdminError> {
        let place = self.place(self.media_bytes);
        let sector = self.sector(place)?;
        let decoded = Metadata::decode(&sector);
        Ok(!matches!(decoded, Err(EliError::Magic { .. })))
    }

    /// Writes the metadata into the last sector, durably.
    ///
    /// # Errors
    /// `Write`.
    pub fn store(&mut self, metadata: &Metadata) -> Result<(), AdminError> {
        let place = self.place(self.media_bytes);
        self.write(place, &metadata.encode())
    }

    /// Writes a sector, filled up with zeroes, durably.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), AdminError> {
        let mut sector = vec![0; self.sector_bytes as usize];
        sector[..bytes.len()].copy_from_slice(bytes);
        let written = self.channel.write(self.opened, offset, &sector);
        let written = written.and_then(|_| self.channel.flush(self.opened));
        written.map_err(|error| AdminError::Write {
            provider: self.name.clone(),
            error,
        })?;
        Ok(())
    }

    /// Overwrites a sector with random bytes again and again, and then with zeroes. Each time is
    /// flushed, so that no cache keeps all but the last from the media.
    ///
    /// # Errors
    /// `Write`, or `Key` when there are no random numbers.
    pub(crate) fn trash(&mut self, offset: u64) -> Result<(), AdminError> {
        let mut noise = vec![0; self.sector_bytes as usize];
        for _ in 0..OVERWRITES {
            random::fill(&mut noise).map_err(|error| AdminError::Key(error.into()))?;
            self.write(offset, &noise)?;
        }
        self.write(offset, &[])
    }

    /// Destroys the metadata, and with it the only way to the data.
    ///
    /// # Errors
    /// As [`EliDisk::trash`].
    pub fn kill(&mut self) -> Result<(), AdminError> {
        let place = self.place(self.media_bytes);
        self.trash(place)
    }

    /// Zeroes the metadata, if there is any.
    ///
    /// # Errors
    /// `Read` when there is none, `Write`.
    pub fn clear(&mut self) -> Result<(), AdminError> {
        let place = self.place(self.media_bytes);
        let sector = self.sector(place)?;
        match Metadata::decode(&sector) {
            Err(error @ EliError::Magic { .. }) => Err(AdminError::of_format(error, &self.name)),
            _ => self.write(place, &[]),
        }
    }
}
