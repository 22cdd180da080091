//! Partition tables: twelve classes that taste for themselves, the slicer that they share, and the
//! writers.
//!
//! ```text
//!  md0s1a   md0s1c                 classes       BSD    one consumer, one provider a partition
//!     \       /                                   |
//!      md0s1      md0s2  md0s5     classes       MBR, EBR on its extended partition
//!         \        /                              |
//!            md0                                  MD, file, disk, nop ...
//! ```
//! Every table is a geom with one consumer; all of them are [`slicer::Slicer`]s and differ only in
//! how they taste. Which table may stand on which:
//!
//! | class | tastes |
//! |---|---|
//! | EBR | partitions of type 5, 15 or 133 that an MBR made |
//! | MBR | disks; partitions of other tables |
//! | BSD, GPT, APM, BSD64, VTOC8, PC98 | disks; partitions of any table |
//! | LDM, SGI, AMIGA, ATARI | disks |
//!
//! Nothing is looked for in a partition of a leaf (BSD, BSD64, VTOC8, SGI, AMIGA, ATARI: a label is
//! usually seen once more through `c`), in one that begins where its disk does (it would be the
//! disk's table again), in one that begins inside another (a hostile image could multiply its
//! tables), and in those of a table with more than 256. So each table stands on sectors of its own,
//! and no table can contain itself. A class that the user names probes everywhere. The rules are
//! FreeBSD's: `PART::isleaf`, `PART::depth` and the probes of `sys/geom/part` with
//! `kern.geom.part.allow_nesting`, and the tasting of `sys/geom/geom_mbr.c`, `geom_bsd.c` and
//! `geom_apple.c`.

pub mod amiga;
pub mod apm;
pub mod atari;
pub mod bsd;
pub mod bsd64;
pub mod ebr;
pub mod edit;
pub mod gpt;
pub mod ldm;
mod look;
pub mod mbr;
mod names;
pub mod pc98;
mod rules;
pub mod sgi;
pub mod slicer;
pub mod vtoc8;
