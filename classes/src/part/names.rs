//! GEOM's names of the classes of partition tables.

/// The Apple partition map.
pub const APM: &str = "APM";
/// The BSD disklabel.
pub const BSD: &str = "BSD";
/// Logical partitions of an MBR.
pub const EBR: &str = "EBR";
/// The GUID partition table.
pub const GPT: &str = "GPT";
/// The master boot record.
pub const MBR: &str = "MBR";
