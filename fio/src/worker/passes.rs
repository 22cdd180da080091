//! `invalidate` beyond the first pass over a file: as by fio, each pass finds the file out of the
//! cache, so that jobs with `time_based` or `loops` measure the device.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::Task;
use crate::places::Place;

/// Bytes transferred in the present pass over each file.
pub(super) struct Passes {
    /// Bytes of each kind, or of all kinds together in the first.
    bytes: Vec<[u64; 3]>,
    /// Whether a pass consists of requests of all kinds, whose places share a map.
    shared: bool,
    /// The smallest request, bytes: what is left at the end of a file may be less.
    smallest: u64,
}

impl Passes {
    /// Those of a job whose files are to be dropped from the cache; `None` when nothing is dropped,
    /// or places are drawn again and again, without an end of a pass.
    pub fn of(task: &Task<'_>) -> Option<Self> {
        let job = task.job;
        let drops = job.invalidate && !job.direct && !job.pre_read && !task.paths.is_empty();
        let ends = !job.rw.random || job.visits_once();
        let repeats = job.time_based || job.loops > 1;
        (drops && ends && repeats && job.file_operation().is_none()).then(|| Self {
            bytes: vec![[0; 3]; task.regions.len()],
            shared: job.rw.random,
            smallest: job.smallest_bytes(),
        })
    }

    /// Counts a request, and drops its file from the cache if it begins a pass.
    pub fn count(&mut self, task: &Task<'_>, kind: usize, place: &Place) {
        let file = place.file as usize;
        let bytes = &mut self.bytes[file][if self.shared { 0 } else { kind }];
        let length = task.regions[file].length;
        if bytes.saturating_add(self.smallest) > length {
            *bytes = 0;
            drop_from_cache(&task.paths[file]);
        }
        *bytes += u64::from(place.length);
    }
}

/// Advice: the system may keep pages, as with fio.
#[cold]
fn drop_from_cache(path: &Path) {
    if let Ok(file) = File::open(path) {
        let _ = fadvise(file, 0, None, Advice::DontNeed);
    }
}
