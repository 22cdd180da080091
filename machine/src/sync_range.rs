//! sync_file_range(2): a part of a file is written to its device, without its metadata.

use crate::call::done;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;

/// The writes that a call waits for, and whether it begins to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRangeFlags {
    /// `SYNC_FILE_RANGE_WAIT_BEFORE`: wait for pages that are being written.
    pub waits_before: bool,
    /// `SYNC_FILE_RANGE_WRITE`: begin to write pages that are dirty.
    pub writes: bool,
    /// `SYNC_FILE_RANGE_WAIT_AFTER`: wait until they are written.
    pub waits_after: bool,
}

/// Writes a range of a file, in bytes; 0 to 0 does nothing.
///
/// # Errors
/// The kernel's own: ESPIPE for a file without pages, EIO for pages that could not be written.
pub fn sync_file_range(file: &File, range: &Range<u64>, flags: SyncRangeFlags) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let bits = [
        (flags.waits_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (flags.writes, libc::SYNC_FILE_RANGE_WRITE),
        (flags.waits_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ];
    let bits = bits.into_iter().filter(|(is_set, _)| *is_set);
    let bits = bits.fold(0, |all, (_, bit)| all | bit);
    let too_large = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let offset = libc::off64_t::try_from(range.start).map_err(too_large)?;
    let bytes = libc::off64_t::try_from(range.end - range.start).map_err(too_large)?;
    // SAFETY: the descriptor is open as long as `file`; the call takes no memory of ours.
    done(unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, bits) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows sync_file_range(2) for files alone")]
    fn a_range_of_a_file_is_written_and_a_pipe_has_none() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let all = SyncRangeFlags {
            waits_before: true,
            writes: true,
            waits_after: true,
        };
        sync_file_range(&file, &(0..8192), all).unwrap();
        sync_file_range(&file, &(0..0), all).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(reader));
        assert!(sync_file_range(&pipe, &(0..1), all).is_err());
        assert!(sync_file_range(&file, &(u64::MAX - 1..u64::MAX), all).is_err());
    }
}
