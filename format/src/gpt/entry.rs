//! Entries of a GPT's table (UEFI 2.10, table 5.6).

use super::guid::Guid;
use crate::bytes;

/// Bytes of an entry that are defined.
pub const ENTRY_SIZE_BYTES: usize = 128;
/// UTF-16 units in a name.
pub const NAME_UNITS: usize = 36;

/// The firmware cannot do without this partition.
pub const ATTR_REQUIRED: u64 = 1 << 0;
/// Boot from this partition (gpart's `bootme`).
pub const ATTR_BOOTME: u64 = 1 << 59;
/// Boot from this partition once (gpart's `bootonce`).
pub const ATTR_BOOTONCE: u64 = 1 << 58;
/// Booting once failed (gpart's `bootfailed`).
pub const ATTR_BOOTFAILED: u64 = 1 << 57;

/// One entry, used or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The type of the partition; [`Guid::UNUSED`] for an unused entry.
    pub kind: Guid,
    /// The partition's own GUID.
    pub guid: Guid,
    /// First sector of the partition (`StartingLBA`).
    pub first: u64,
    /// Last sector, part of the partition.
    pub last: u64,
    /// Attributes; bits 48 to 63 belong to the partition's type.
    pub attributes: u64,
    /// The name in UTF-16, padded with 0.
    pub name: [u16; NAME_UNITS],
    /// The bytes after 128 of a longer entry.
    pub extra: Vec<u8>,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry::EMPTY
    }
}

impl Entry {
    /// An unused entry, all zeros.
    pub(super) const EMPTY: Entry = Entry {
        kind: Guid::UNUSED,
        guid: Guid::UNUSED,
        first: 0,
        last: 0,
        attributes: 0,
        name: [0; NAME_UNITS],
        extra: Vec::new(),
    };

    /// True when the entry is a partition.
    pub fn is_used(&self) -> bool {
        !self.kind.is_unused()
    }

    /// Length in sectors; 0 when the last sector lies before the first.
    pub fn sectors(&self) -> u64 {
        match self.last.checked_sub(self.first) {
            Some(distance) => distance.saturating_add(1),
            None => 0,
        }
    }

    /// The name as text: up to the first 0, with replacement characters for
    /// lone surrogates. Listings escape it.
    pub fn label(&self) -> String {
        let units = self.name.iter().copied().take_while(|&unit| unit != 0);
        char::decode_utf16(units)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }

    /// Sets the name. Answers false and changes nothing when the text has more
    /// than 36 UTF-16 units or contains NUL.
    #[must_use]
    pub fn set_label(&mut self, text: &str) -> bool {
        let units: Vec<u16> = text.encode_utf16().take(NAME_UNITS + 1).collect();
        if units.len() > NAME_UNITS || units.contains(&0) {
            return false;
        }
        self.name = [0; NAME_UNITS];
        self.name[..units.len()].copy_from_slice(&units);
        true
    }

    /// gpart's names of the attributes that are set, in gpart's order.
    pub fn attribute_names(&self) -> Vec<&'static str> {
        attribute_names(self.attributes)
    }

    /// Decodes one entry from `data`, of at least [`ENTRY_SIZE_BYTES`] bytes.
    pub(crate) fn decode(data: &[u8]) -> Entry {
        Entry {
            kind: Guid(bytes::take(data, 0)),
            guid: Guid(bytes::take(data, 16)),
            first: bytes::u64_le(data, 32),
            last: bytes::u64_le(data, 40),
            attributes: bytes::u64_le(data, 48),
            name: std::array::from_fn(|unit| bytes::u16_le(data, 56 + 2 * unit)),
            extra: meaningful(data.get(ENTRY_SIZE_BYTES..).unwrap_or(&[])),
        }
    }

    pub(crate) fn encode(&self, data: &mut [u8]) {
        bytes::put(data, 0, &self.kind.0);
        bytes::put(data, 16, &self.guid.0);
        bytes::put_u64_le(data, 32, self.first);
        bytes::put_u64_le(data, 40, self.last);
        bytes::put_u64_le(data, 48, self.attributes);
        for (unit, &value) in self.name.iter().enumerate() {
            bytes::put_u16_le(data, 56 + 2 * unit, value);
        }
        bytes::put(data, ENTRY_SIZE_BYTES, &self.extra);
    }
}

/// gpart's names of attributes, in gpart's order.
pub(crate) fn attribute_names(attributes: u64) -> Vec<&'static str> {
    const KNOWN: [(u64, &str); 3] = [
        (ATTR_BOOTME, "bootme"),
        (ATTR_BOOTONCE, "bootonce"),
        (ATTR_BOOTFAILED, "bootfailed"),
    ];
    let set = KNOWN.iter().filter(|(bit, _)| attributes & bit != 0);
    set.map(|known| known.1).collect()
}

/// The bytes without the zeros at their end: long entries are almost always
/// empty there, and an empty vector takes no memory.
fn meaningful(data: &[u8]) -> Vec<u8> {
    let end = data
        .iter()
        .rposition(|&b| b != 0)
        .map_or(0, |last| last + 1);
    data[..end].to_vec()
}
