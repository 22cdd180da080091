//! The fields of a GPT entry besides its place.

use crate::gpt::Guid;

/// An entry of a GPT that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its number, from 1.
    pub index: u32,
    /// The type of the partition.
    pub kind: Guid,
    /// GUID of the partition (`PARTUUID=`).
    pub uuid: Guid,
    /// The 64 attribute bits of the GPT entry.
    pub attributes: u64,
    /// Name of the partition (`PARTLABEL=`); may be empty.
    pub label: String,
    /// GUID of the disk, if the table is that of the medium and not of a disk inside it.
    pub disk_uuid: Option<Guid>,
    /// It is in the primary copy.
    pub primary: bool,
}
