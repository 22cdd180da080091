//! GEOM's names of the classes of partition tables.

/// The Apple partition map.
pub const APM: &str = "APM";
/// The BSD disklabel (FreeBSD, `sys/disklabel.h`).
pub const BSD: &str = "BSD";
/// The disklabel64 of DragonFly (`sys/disklabel64.h`).
pub const BSD64: &str = "BSD64";
/// Logical partitions of an MBR.
pub const EBR: &str = "EBR";
/// The GUID partition table.
pub const GPT: &str = "GPT";
/// The database of Windows' logical disk manager.
pub const LDM: &str = "LDM";
/// The master boot record.
pub const MBR: &str = "MBR";
/// NEC's table of the PC-98.
pub const PC98: &str = "PC98";
/// Sun's disk label (`sys/vtoc.h`).
pub const VTOC8: &str = "VTOC8";
/// The volume header of SGI's disks.
pub const SGI: &str = "SGI";
/// The Amiga's rigid disk block.
pub const AMIGA: &str = "AMIGA";
/// The root sector of Atari's disks.
pub const ATARI: &str = "ATARI";
