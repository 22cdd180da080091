//! On-disk layouts, and messages of protocols, as pure functions between bytes and structs.
//!
//! Every module holds one format: `mbr` and `ebr` (the PC partition table and its chain of extended
//! boot records), `bsd` (the disklabel), `gpt`, `apm` (the Apple partition map), `vtoc8` (Sun),
//! `pc98` (NEC), `bsd64` (DragonFly), `ldm` (Windows' dynamic disks), `sgi`, `amiga` and `atari`,
//! `eli` (FreeBSD's encrypted providers); `diskstats` is a text of the kernel, `dm_table` the table
//! of a mapped device, `btf` the types of a kernel, `raidtest` the request files of that benchmark,
//! `crash_log` what a disk was written before it crashes, `qcow2` the header of such an image,
//! `vmdk` the files that one names, `gzip`, `xz` and `zstd` the frames of compressed files,
//! `ddrescue` the map of a disk with faults, `verify_state` what a job of fio wrote last; `wire`
//! holds protocols, `text` is how names and labels are kept and shown.
//! Decoders take the bytes of whole sectors, or of the file, and answer with a struct or an error
//! that names the place, the found and the expected value; they never
//! panic and never allocate more than a bound that each module states.
//! Nothing here does I/O: what has to be read next is asked of a [`SectorRead`]
//! closure or returned as a sector number.
//!
//! The layouts are described byte by byte in `docs/formats/`.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

pub mod amiga;
pub mod apm;
pub mod atari;
pub mod bsd;
pub mod bsd64;
pub mod btf;
mod bytes;
pub mod content;
pub mod crash_log;
pub mod ddrescue;
pub mod diskstats;
pub mod dm_table;
pub mod ebr;
pub mod eli;
pub mod gpt;
pub mod gzip;
pub mod ldm;
pub mod mbr;
mod media;
mod numbered;
pub mod pc98;
pub mod plan;
pub mod qcow2;
pub mod raidtest;
pub mod search;
pub mod sgi;
pub mod text;
pub mod trace;
pub mod verify_state;
pub mod vmdk;
pub mod vtoc8;
pub mod wire;
pub mod xz;
pub mod zstd;

pub use media::{Media, ReadAt, SectorRead, SectorWrite, Unreadable};
