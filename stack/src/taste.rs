//! [`Taster`]: a provider as a tasting class sees it: sizes, a few reads, attributes.
//!
//! All classes taste through one consumer and share the sectors read, so that a class more does not
//! mean the same sectors once more.

use crate::bio::AttributeValue;
use crate::channel::Channel;
use crate::error::{Errno, IoError};
use crate::opened::Opened;
use crate::topology::{GeomView, ProviderView};
use std::cell::OnceCell;

/// The largest single read of a taste; metadata is small (GEOM's limit is `maxphys`).
pub(crate) const TASTE_READ_MAX_BYTES: u64 = 1 << 20;

/// Reads kept for the next class.
const KEPT_READS: usize = 32;

/// A provider that is being tasted.
pub struct Taster<'a> {
    provider: ProviderView,
    geom: OnceCell<GeomView>,
    channel: &'a mut Channel,
    opened: &'a Opened,
    kept: Vec<(u64, Vec<u8>)>,
    bytes_read: u64,
    /// The error of a read that found the provider gone.
    gone: Option<IoError>,
    insists: bool,
}

impl<'a> Taster<'a> {
    pub(crate) fn new(
        provider: ProviderView,
        channel: &'a mut Channel,
        opened: &'a Opened,
    ) -> Self {
        Self {
            provider,
            geom: OnceCell::new(),
            channel,
            opened,
            kept: Vec::new(),
            bytes_read: 0,
            gone: None,
            insists: false,
        }
    }

    /// The same for a class that the user named.
    pub(crate) fn insist(&mut self) {
        self.insists = true;
    }

    /// The user named this class for this provider: it probes where it would not look by itself,
    /// and answers with the reason where it finds nothing. GEOM's `G_TF_INSIST`.
    pub fn insists(&self) -> bool {
        self.insists
    }

    /// Name of the provider that is tasted.
    pub fn name(&self) -> &str {
        &self.provider.name
    }

    /// The provider that is tasted: its sizes, facts and fault.
    pub fn provider(&self) -> &ProviderView {
        &self.provider
    }

    /// The geom that it belongs to, with all its providers. Most classes can do without, and a
    /// geom may have thousands, so it is only made on demand.
    pub fn geom(&self) -> &GeomView {
        self.geom.get_or_init(|| self.opened.geom())
    }

    /// The size of its media, bytes.
    pub fn mediasize_bytes(&self) -> u64 {
        self.provider.mediasize_bytes
    }

    /// The size of its sectors, bytes.
    pub fn sectorsize_bytes(&self) -> u32 {
        self.provider.sectorsize_bytes
    }

    /// How many bytes this tasting has read from the provider.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Reads `length` bytes at `offset`, both multiples of the sector size; shorter at the end of
    /// the media.
    ///
    /// # Errors
    /// The error of the provider, or EINVAL for more than [`TASTE_READ_MAX_BYTES`].
    pub fn read(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, IoError> {
        let inside = |(start, bytes): &&(u64, Vec<u8>)| {
            *start <= offset && offset + length <= start + bytes.len() as u64
        };
        if let Some((start, bytes)) = self.kept.iter().find(inside) {
            let at = (offset - start) as usize;
            return Ok(bytes[at..at + length as usize].to_vec());
        }
        if let Some(gone) = &self.gone {
            return Err(gone.clone());
        }
        let length = length.min(TASTE_READ_MAX_BYTES) as usize;
        let read = self.channel.read_to_taste(self.opened, offset, length);
        if let Err(error) = &read
            && error.errno == Errno::NXIO
        {
            self.gone = Some(error.clone());
        }
        let bytes = read?;
        self.bytes_read += bytes.len() as u64;
        if self.kept.len() < KEPT_READS {
            self.kept.push((offset, bytes.clone()));
        }
        Ok(bytes)
    }

    /// The error of a read that found the device unreachable (ENXIO): each further one may take a
    /// timeout, and fails with the same.
    pub(crate) fn gone(&self) -> Option<&IoError> {
        self.gone.as_ref()
    }

    /// Reads one sector by its number; empty past the end of the media.
    ///
    /// # Errors
    /// The error of the provider.
    pub fn sector(&mut self, number: u64) -> Result<Vec<u8>, IoError> {
        let size = u64::from(self.sectorsize_bytes());
        match number.checked_mul(size) {
            Some(offset) if offset < self.mediasize_bytes() => self.read(offset, size),
            _ => Ok(Vec::new()),
        }
    }

    /// Asks the provider for an attribute; `None` when it has none of that name.
    #[must_use]
    pub fn attribute(&mut self, name: &str) -> Option<AttributeValue> {
        self.channel.attribute(self.opened, name).ok().flatten()
    }
}
