//! `ugeom lab layers`: what does GEOM cost, and what does each layer of it cost?
//!
//! The experiment of 2002 on today's machine: a 512-byte read from the first sector of a memory
//! disk, of its slice and of the partition in that slice, with GEOM and without.

mod findings;
#[cfg(test)]
mod fixture;
mod names;
pub mod published;
mod subject;

pub use findings::compute;
pub use subject::{Disk, Document, EXPERIMENT, Link, Subject};
