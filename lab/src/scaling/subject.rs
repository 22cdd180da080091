//! The description of scaling in a document.

use super::knobs::Knob;
use serde::{Deserialize, Serialize};

/// A finished experiment about scaling.
pub type Document = ugeom_harness::document::Document<Subject>;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "scaling";

/// The target and the knobs that `lab scaling` measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The target, as it was named.
    pub target: String,
    /// How many workers, a column each.
    pub workers: Vec<u64>,
    /// The cores that the process may use: the column that goals are judged in.
    pub cores: u64,
    /// How many requests the list has, from which each worker has a share.
    pub requests: u64,
    /// The seed of the list.
    pub requests_seed: u64,
    /// The knobs, in the order in which they were added.
    pub ladder: Vec<Knob>,
    /// Its queued rows with threads that spin.
    pub spinning: Vec<Knob>,
    /// Its last row with one knob taken away each.
    pub taken_away: Vec<Knob>,
}

/// The name of the case of a row and a number of workers.
pub(crate) fn case_name(id: &str, workers: u64) -> String {
    format!("{id}/{workers}")
}

/// The cases beside the rows: the last row a second time, and with raidtest's own mix of reads and
/// writes, and with the time of every request.
pub const AGAIN: &str = "again";
/// The last row with raidtest's mix of reads and writes.
pub const MIXED: &str = "half writes";
/// Threads that compute one step after the other and share nothing: whether each has a processor.
pub const APART: &str = "sharing nothing";
/// Threads that do as much at a time as their core can, and share nothing: whether each processor
/// is a whole core.
pub const FILLED: &str = "filling cores";
/// The last row with a stack for each worker: the same code, and only the list of requests shared.
pub const STACK_EACH: &str = "a stack each";
/// The last row with the time of every request.
pub const TIMED: &str = "timed";
