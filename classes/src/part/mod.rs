//! Partition tables: five classes that taste for themselves, the slicer that they share, and the
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
//! | MBR, GPT, APM | providers that no table stands below (GEOM: rank 2, "we don't nest") |
//! | EBR | partitions of type 5, 15 or 133 that an MBR made |
//! | BSD | as MBR; slices of type 165; GPT partitions of type `freebsd`; APM's; never BSD's |
//!
//! So no stack of tables is deeper than three, and no table can contain itself. The rules are
//! FreeBSD's: `g_mbr_taste`, `g_mbrext_taste`, `g_bsd_taste`, `g_gpt_taste` and `g_apple_taste` of
//! `sys/geom`, and the `PART::` attributes and the leaf rule for BSD of `sys/geom/part`.

pub mod apm;
pub mod bsd;
pub mod ebr;
pub mod edit;
pub mod gpt;
mod look;
pub mod mbr;
mod names;
mod rules;
pub mod slicer;
