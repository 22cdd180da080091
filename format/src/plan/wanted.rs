//! The requests to a planner: a table, a partition, a change.

use super::{Error, Scheme};
use crate::media::Media;
use crate::pc98::Geometry;
use std::ops::RangeInclusive;

/// The parameters of a new table.
#[derive(Debug, Clone, Default)]
pub struct Create {
    /// Number of entries, where the scheme lets one choose: 16 to 1023 for APM
    /// (default 16), 8 to 20 for BSD (default 8), 1 to 4096 for GPT (default
    /// 128).
    pub entries: Option<u32>,
    /// Random bytes for the disk's GUID or the NT disk signature.
    pub random: [u8; 16],
    /// Sector 0 as it is; its boot code is kept. Empty for none.
    pub sector0: Vec<u8>,
    /// Heads, and sectors a track, where the disk says so: PC98 and VTOC8 count
    /// in cylinders.
    pub geometry: Option<Geometry>,
}

impl Create {
    /// Refuses a number of entries that is not the scheme's.
    pub(super) fn fixed_entries(&self, scheme: Scheme, count: u32) -> Result<(), Error> {
        self.entries_within(scheme, count..=count).map(|_| ())
    }

    /// The number of entries, the least one where none is asked for.
    pub(super) fn entries_within(
        &self,
        scheme: Scheme,
        range: RangeInclusive<u32>,
    ) -> Result<u32, Error> {
        let (least, most) = range.into_inner();
        match self.entries.unwrap_or(least) {
            found if found < least || found > most => Err(Error::EntryCount {
                scheme,
                found,
                least,
                most,
            }),
            count => Ok(count),
        }
    }

    /// The disk's geometry, or one whose cylinders are not too large for it.
    pub(super) fn geometry_for(&self, media: Media) -> Geometry {
        const SMALL_MEDIA_SECTORS: u64 = 1 << 21;
        let heads = if media.sectors < SMALL_MEDIA_SECTORS {
            16
        } else {
            255
        };
        self.geometry.unwrap_or(Geometry {
            heads,
            track_sectors: 63,
        })
    }
}

/// A partition to be added.
#[derive(Debug, Clone, Default)]
pub struct NewPart {
    /// First sector; free space is searched without it.
    pub start: Option<u64>,
    /// Length in sectors; all of the free space without it.
    pub sectors: Option<u64>,
    /// Alignment of start and length in sectors, 1 without it.
    pub align_sectors: Option<u64>,
    /// Alignment of the start, in sectors, when `start` and `align_sectors` are
    /// `None` and there is room. The length is not rounded.
    pub preferred_align_sectors: Option<u64>,
    /// Place in the table, the first free one without it.
    pub index: Option<u32>,
    /// gpart's name of the type, or `!` and the number or GUID.
    pub kind: String,
    /// Name of the partition, GPT only.
    pub label: Option<String>,
    /// Random bytes for the partition's GUID, GPT only.
    pub random: [u8; 16],
}

impl NewPart {
    /// Refuses a label for the reason given.
    pub(super) fn refuse_label(&self, reason: &'static str) -> Result<(), Error> {
        match self.label.as_deref() {
            Some(label) if !label.is_empty() => Err(Error::label(label, reason)),
            _ => Ok(()),
        }
    }
}

/// A change of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Its type: gpart's name, or `!` and the number or GUID.
    Kind(String),
    /// Its name, GPT only.
    Label(String),
    /// Its length in sectors; the first sector stays.
    Sectors(u64),
    /// One of its attributes.
    Attribute {
        /// gpart's name of it.
        name: String,
        /// True to set the attribute, false to clear it.
        on: bool,
    },
}
