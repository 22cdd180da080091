//! The file below a map that `imago` keeps: the target of a pointer is durable before the pointer
//! is written.
//!
//! `imago` orders its writes and waits for none of them to be durable. After a power cut the disk
//! may have a later one without an earlier one: the map then points to a copy of older data that
//! was never written, or to a place that has got other data. So each write has a rank, and is
//! preceded by fdatasync(2) when that keeps the order:
//!
//! ```text
//!   rank      a write of it waits until these are durable
//!   Data      Table, Pointer   the place may have been another cluster's until they changed
//!   Table     Data             what its entries point to
//!   Pointer   Data, Table      the table that it points to
//! ```

use imago::file::File;
use imago::io_buffers::{IoVector, IoVectorMut};
use imago::storage::drivers::CommonStorageHelper;
use imago::storage::{PreallocateMode, Storage};
use std::fmt::{self, Debug, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use ugeom_machine::mutex::Mutex;

/// The effect of a write on the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The data that the map points to.
    Data,
    /// Pointers to data, which must be durable before them.
    Table,
    /// Pointers to tables, which must be durable before them.
    Pointer,
}

/// Where in a file its map is.
pub trait Layout: Debug + Send + Sync {
    /// The kind of change of a write at this offset.
    fn rank(&self, offset: u64) -> Rank;

    /// The bytes of rank [`Rank::Pointer`] from this offset on have changed.
    ///
    /// # Errors
    /// They cannot be read.
    fn pointers_changed(&self, offset: u64, length: u64) -> io::Result<()>;
}

/// Checks of reads: `imago` takes data past the end of a file for zeroes, and refuses a whole table
/// for one wrong entry.
pub trait Checks: Debug + Send + Sync {
    /// The file has these bytes.
    ///
    /// # Errors
    /// It ends before.
    fn within(&self, offset: u64, length: u64) -> io::Result<()>;

    /// These bytes are a table whose entries are looked at.
    fn is_table(&self, offset: u64, length: u64) -> bool;

    /// Changes the wrong entries of a table that was read, so that only their own bytes are lost.
    fn mend(&self, offset: u64, table: &mut [u8]);
}

/// A file with a map.
#[derive(Debug)]
pub struct OrderedFile {
    file: File,
    /// `None` where every read is as it should be.
    checks: Option<Box<dyn Checks>>,
    /// `None` where nothing is written.
    layout: Option<Box<dyn Layout>>,
    /// How many writes of each rank have ended.
    written: [AtomicU64; 3],
    /// How many of them are durable.
    durable: [AtomicU64; 3],
    /// Held while the file is synced: writes that wait for the same have nothing to do then.
    syncing: Mutex<()>,
    /// The error of a write that made others durable, for the next [`Storage::sync`]: the system
    /// reports it once for a file.
    failed: Mutex<Option<io::Error>>,
}

impl OrderedFile {
    /// Wraps a file; without a layout its writes have no order.
    pub fn new(
        file: File,
        layout: Option<Box<dyn Layout>>,
        checks: Option<Box<dyn Checks>>,
    ) -> Self {
        Self {
            file,
            checks,
            layout,
            written: Default::default(),
            durable: Default::default(),
            syncing: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Does a write in its order.
    fn write(
        &self,
        offset: u64,
        length: u64,
        write: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(layout) = &self.layout else {
            return write(&self.file);
        };
        let rank = layout.rank(offset);
        let before = match rank {
            Rank::Data => [Rank::Table, Rank::Pointer],
            Rank::Table => [Rank::Data, Rank::Data],
            Rank::Pointer => [Rank::Data, Rank::Table],
        };
        let is_waited_for = || before.into_iter().any(|rank| self.is_pending(rank));
        if is_waited_for() {
            let _syncing = self.syncing.lock();
            if is_waited_for() {
                self.sync_before_a_write()?;
            }
        }
        let written = write(&self.file);
        // A write that failed may have changed something, too.
        self.written[rank as usize].fetch_add(1, Ordering::SeqCst);
        written?;
        match rank {
            Rank::Pointer => layout.pointers_changed(offset, length),
            Rank::Data | Rank::Table => Ok(()),
        }
    }

    fn is_pending(&self, rank: Rank) -> bool {
        let [written, durable] = [&self.written, &self.durable];
        let durable = durable[rank as usize].load(Ordering::SeqCst);
        written[rank as usize].load(Ordering::SeqCst) != durable
    }

    /// Makes everything durable that was written before.
    fn sync_all(&self) -> io::Result<()> {
        let written = [0, 1, 2].map(|rank| self.written[rank].load(Ordering::SeqCst));
        self.file.sync()?;
        for (durable, written) in self.durable.iter().zip(written) {
            durable.fetch_max(written, Ordering::SeqCst);
        }
        Ok(())
    }

    fn sync_before_a_write(&self) -> io::Result<()> {
        self.sync_all().inspect_err(|error| {
            let again = io::Error::new(error.kind(), error.to_string());
            let again = error
                .raw_os_error()
                .map_or(again, io::Error::from_raw_os_error);
            *self.failed.lock() = Some(again);
        })
    }
}

impl Display for OrderedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.file, f)
    }
}

impl Storage for OrderedFile {
    fn mem_align(&self) -> usize {
        self.file.mem_align()
    }

    fn req_align(&self) -> usize {
        self.file.req_align()
    }

    fn zero_align(&self) -> usize {
        self.file.zero_align()
    }

    fn discard_align(&self) -> usize {
        self.file.discard_align()
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn resolve_relative_path<P: AsRef<Path>>(&self, relative: P) -> io::Result<PathBuf> {
        self.file.resolve_relative_path(relative)
    }

    fn get_filename(&self) -> Option<PathBuf> {
        self.file.get_filename()
    }

    unsafe fn pure_readv(&self, mut bufv: IoVectorMut<'_>, offset: u64) -> io::Result<()> {
        if let Some(checks) = &self.checks {
            let length = bufv.len();
            checks.within(offset, length)?;
            if checks.is_table(offset, length) {
                let mut table = vec![0; length as usize];
                // SAFETY: the same place, and as many bytes as the caller asks for.
                unsafe { self.file.pure_readv((&mut table).into(), offset) }?;
                checks.mend(offset, &mut table);
                bufv.copy_from_slice(&table);
                return Ok(());
            }
        }
        // SAFETY: the caller keeps the same promise to this function.
        unsafe { self.file.pure_readv(bufv, offset) }
    }

    unsafe fn pure_writev(&self, bufv: IoVector<'_>, offset: u64) -> io::Result<()> {
        self.write(offset, bufv.len(), |file| {
            // SAFETY: the caller keeps the same promise to this function.
            unsafe { file.pure_writev(bufv, offset) }
        })
    }

    unsafe fn pure_write_zeroes(&self, offset: u64, length: u64) -> io::Result<()> {
        self.write(offset, length, |file| {
            // SAFETY: the caller keeps the same promise to this function.
            unsafe { file.pure_write_zeroes(offset, length) }
        })
    }

    unsafe fn pure_write_allocated_zeroes(&self, offset: u64, length: u64) -> io::Result<()> {
        self.write(offset, length, |file| {
            // SAFETY: the caller keeps the same promise to this function.
            unsafe { file.pure_write_allocated_zeroes(offset, length) }
        })
    }

    unsafe fn pure_discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.write(offset, length, |file| {
            // SAFETY: the caller keeps the same promise to this function.
            unsafe { file.pure_discard(offset, length) }
        })
    }

    fn flush(&self) -> io::Result<()> {
        self.file.flush()
    }

    fn sync(&self) -> io::Result<()> {
        // Not beside a write that makes others durable: the system would tell one of both, and
        // what the write was told is not kept yet.
        let _syncing = self.syncing.lock();
        let synced = self.sync_all();
        let failed = self.failed.lock().take();
        failed.map_or(synced, Err)
    }

    fn settle_writes(&self) -> io::Result<()> {
        self.file.settle_writes()
    }

    unsafe fn invalidate_cache(&self) -> io::Result<()> {
        // SAFETY: the caller keeps the same promise to this function.
        unsafe { self.file.invalidate_cache() }
    }

    fn get_storage_helper(&self) -> &CommonStorageHelper {
        self.file.get_storage_helper()
    }

    fn resize(&self, new_size: u64, mode: PreallocateMode) -> io::Result<()> {
        self.file.resize(new_size, mode)
    }
}
