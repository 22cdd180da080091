//! `ugeom lab layers`: what does GEOM cost, and what does each layer of it cost?
//!
//! The experiment of 2002 on today's machine: a 512-byte read from the first sector of a memory
//! disk, of its slice and of the partition in that slice, with GEOM and without.

pub mod published;
