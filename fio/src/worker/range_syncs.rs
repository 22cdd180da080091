//! `sync_file_range`: parts of files that have been written go to the device between writes. The
//! worker makes the calls itself and waits for them, as fio does for all engines but io_uring.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use ugeom_engine::Errno;
use ugeom_load::door::{Door, Kind, Request};
use ugeom_machine::clock;
use ugeom_machine::sync_range::{SyncRangeFlags, sync_file_range};

use super::{NO_REQUEST, Worker};
use ugeom_job::settings::RangeSync;

/// The bytes written to each file since its last sync.
pub(super) struct Written {
    flags: SyncRangeFlags,
    /// From the lowest byte to the highest of each file. As by fio, the first range of a file
    /// begins with the file.
    ranges: Vec<Option<Range<u64>>>,
}

impl Written {
    /// Nothing yet, in so many files.
    pub(super) fn new(sync: RangeSync, files: usize) -> Self {
        Self {
            flags: SyncRangeFlags {
                waits_before: sync.waits_before,
                writes: sync.writes,
                waits_after: sync.waits_after,
            },
            ranges: vec![Some(0..0); files],
        }
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, request: &Request, result: Result<u64, Errno>) {
        let range = &mut self.ranges[request.file as usize];
        match (request.kind, result) {
            (Kind::Write, Ok(bytes)) => {
                let (begins, ends) = (request.offset, request.offset + bytes);
                *range = Some(match range {
                    None => begins..ends,
                    Some(range) => range.start.min(begins)..range.end.max(ends),
                });
            }
            (Kind::Sync | Kind::DataSync, _) => *range = None,
            _ => {}
        }
    }

    /// Syncs the written ranges of a file, and returns the time that took, ns.
    pub(super) fn sync(&mut self, file: u32, path: &Path) -> io::Result<u64> {
        let range = self.ranges[file as usize].take().unwrap_or_default();
        // The pages are those of the file, whichever descriptor they were written by.
        let open = File::open(path)?;
        let begun = clock::ticks();
        sync_file_range(&open, &range, self.flags)?;
        Ok(clock::ticks_to_ns(clock::ticks().saturating_sub(begun)))
    }
}

impl<D: Door> Worker<'_, D> {
    /// Counts a sync, or the error of one.
    pub(super) fn range_synced(&mut self, file: u32, made: io::Result<u64>) {
        match made {
            Ok(ns) => self.tally.syncs.record(ns),
            Err(error) => {
                let request = Request { file, ..NO_REQUEST };
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                self.failed(&request, errno);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_reaches_from_the_lowest_write_to_the_highest_since_the_last_sync() {
        let mut written = Written::new(RangeSync::default(), 2);
        let request = |kind, offset| Request {
            kind,
            file: 1,
            offset,
            length: 8,
        };
        written.ended(&request(Kind::Write, 32), Ok(8));
        assert_eq!(written.ranges, [Some(0..0), Some(0..40)]);
        written.ended(&request(Kind::Sync, 0), Ok(0));
        assert_eq!(written.ranges[1], None);
        written.ended(&request(Kind::Write, 64), Ok(8));
        written.ended(&request(Kind::Write, 32), Ok(4));
        written.ended(&request(Kind::Write, 8), Err(Errno::NOSPC));
        written.ended(&request(Kind::Read, 0), Ok(8));
        assert_eq!(written.ranges[1], Some(32..72));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        assert!(written.sync(1, &path).is_err());
        std::fs::write(&path, [7; 72]).unwrap();
        written.sync(1, &path).unwrap();
        assert_eq!(written.ranges, [Some(0..0), None]);
    }
}
