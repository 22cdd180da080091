//! Facts about the file for the data path.

use super::data_run::DataRun;
use crate::presence::Presence;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Facts about the file for the data path.
pub(super) struct Facts {
    pub path: PathBuf,
    /// The size of the image, bytes; zeroes follow up to a whole sector. It may grow.
    pub size_bytes: Arc<AtomicU64>,
    /// Data of the image that needs no question.
    pub data_run: Arc<DataRun>,
    pub sector_bytes: u64,
    /// All of the file is the disk, so a longer file is a larger disk.
    pub may_grow: bool,
    pub writable: bool,
    /// An image that is open for writing.
    pub presence: Option<Presence>,
    /// An image that shows its holes. A simulated engine does not, as none of its delays would
    /// meet them.
    pub shows_holes: bool,
    /// The alignment of memory for direct I/O, bytes; 1 otherwise.
    pub align_bytes: usize,
    pub fwsectors: u64,
    pub fwheads: u64,
}
