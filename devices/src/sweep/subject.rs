//! The description of a sweep in its document.

use serde::{Deserialize, Serialize};

/// The saved result of a sweep, with its processes and figures.
pub type Document = ugeom_harness::document::Document<Subject>;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "sweep";

/// The targets, blocks and orders that `lab sweep` measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The targets: the one that was asked for, or a temporary file and a simulated disk.
    pub parts: Vec<SweepTarget>,
    /// The work of each case, in the order of the cases.
    #[serde(rename = "cells")]
    pub cases: Vec<CaseFacts>,
    /// The bytes that each block size was to move.
    pub bytes: u64,
    /// Whether blocks were written.
    pub write: bool,
    /// Whether blocks were taken at random and not one after the other.
    pub random: bool,
    /// The cases left out, with reasons.
    pub left_out: Vec<String>,
}

/// A target: the file or device, or the simulated disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepTarget {
    /// Its name in the names of cases: `file`, `disk`, `target`.
    pub name: String,
    /// The target as the user wrote it, or its substitute.
    pub target: String,
    /// How many bytes of it were used.
    pub region_bytes: u64,
    /// The device whose counters were read beside the runs.
    pub device: Option<String>,
    /// The largest transfer that the kernel asks the device for, bytes.
    pub transfer_bytes_max: Option<u64>,
    /// The limits that a simulated disk was given.
    pub set: Option<SetLimits>,
}

/// The limits of a simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetLimits {
    /// The time of a transaction, ns.
    pub transaction_ns: u64,
    /// The bandwidth, bytes a second.
    pub bytes_per_second: u64,
}

/// The work of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseFacts {
    /// The index of its target.
    pub part: usize,
    /// The way to the device.
    pub way: CacheMode,
    /// The role of the case.
    pub role: Role,
    /// Bytes of one block.
    pub block_bytes: u64,
}

/// How blocks reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// Direct (O_DIRECT), past the page cache.
    Direct,
    /// Buffered (page cache); the cache is emptied of the target before each run.
    Buffered,
    /// Through a stack that stands on no file.
    Stack,
}

impl CacheMode {
    /// The word in tables and names.
    pub fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Stack => "stack",
        }
    }
}

/// The role of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A step of the sweep: one block after the other.
    Step,
    /// A step of the sweep once more, for the noise.
    Again,
    /// Every second block of the smallest size, so many in flight.
    Depth(u64),
}

impl CaseFacts {
    /// The name of the case: `file/direct/512`, `file/direct/depth 4`.
    pub fn name(&self, part: &str) -> String {
        let (way, block) = (self.way.word(), self.block_bytes);
        match self.role {
            Role::Step => format!("{part}/{way}/{block}"),
            Role::Again => format!("{part}/{way}/{block} again"),
            Role::Depth(depth) => format!("{part}/{way}/depth {depth}"),
        }
    }
}
