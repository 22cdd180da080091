//! Engines that do something to each file instead of transferring data: `filecreate`, `filestat`,
//! `filedelete`. As in fio, the work is done when a file is opened, before its first request, and
//! what it takes is the completion latency. The requests do nothing: they are counted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use ugeom_load::door::{Door, Request};
use ugeom_machine::clock;

use super::{Task, Worker};
use ugeom_job::settings::{FileOperation, Job, READ, StatCall, WRITE};

/// The mode of a file that `filecreate` makes, as by fio.
const FILE_MODE: u32 = 0o600;
/// EIO, where no system call says more.
const FAILED: i32 = 5;

/// A file as the engine sees it.
enum FileState {
    Closed,
    Open,
    /// It has a descriptor.
    Held(File),
}

/// The files of a job whose engine does something to them.
pub(super) struct Operations<'a> {
    operation: FileOperation,
    paths: &'a [PathBuf],
    states: Vec<FileState>,
    /// The kind of requests whose latencies these are: that of the job, reads in a mix.
    side: usize,
    /// `disable_lat=0`: latencies are measured.
    timed: bool,
    /// Created files are synced when they are closed (`fsync_on_close`), and at the end.
    syncs: [bool; 2],
}

impl<'a> Operations<'a> {
    /// Those of a task; `None` where the engine transfers data.
    pub(super) fn of(task: &Task<'a>) -> Option<Self> {
        let job: &Job = task.job;
        let writes = job.rw.does[WRITE];
        Some(Self {
            operation: job.file_operation()?,
            paths: task.paths,
            states: task.paths.iter().map(|_| FileState::Closed).collect(),
            side: if writes && !job.rw.does[READ] {
                WRITE
            } else {
                READ
            },
            timed: !job.unmeasured.lat,
            syncs: [job.fsync_on_close, job.fsync_on_close || job.end_fsync].map(|on| on && writes),
        })
    }

    fn open(&self, path: &Path) -> io::Result<FileState> {
        match self.operation {
            FileOperation::Create => {
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true).mode(FILE_MODE);
                let file = options.open(path)?;
                return Ok(FileState::Held(file));
            }
            FileOperation::Stat(StatCall::Stat) => rustix::fs::stat(path).map(drop)?,
            FileOperation::Stat(StatCall::Lstat) => rustix::fs::lstat(path).map(drop)?,
            FileOperation::Stat(StatCall::Statx) => {
                let path = path.canonicalize()?;
                rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::ALL).map(drop)?;
            }
            FileOperation::Delete => std::fs::remove_file(path)?,
        }
        Ok(FileState::Open)
    }

    fn close(&mut self, file: u32) -> io::Result<()> {
        match std::mem::replace(&mut self.states[file as usize], FileState::Closed) {
            FileState::Held(open) if self.syncs[0] => open.sync_all(),
            _ => Ok(()),
        }
    }

    /// Closes the files that are open; ends at the first error.
    pub(super) fn close_all(&mut self) -> io::Result<()> {
        (0..self.states.len() as u32).try_for_each(|file| self.close(file))
    }

    /// The name in errors.
    fn doing(&self) -> &'static str {
        match self.operation {
            FileOperation::Create => "creating",
            FileOperation::Stat(StatCall::Stat) => "stat of",
            FileOperation::Stat(StatCall::Lstat) => "lstat of",
            FileOperation::Stat(StatCall::Statx) => "statx of",
            FileOperation::Delete => "deleting",
        }
    }

    /// `end_fsync`: syncs all created files; closed ones are opened again.
    fn sync(&mut self) -> io::Result<()> {
        if !self.syncs[1] || self.operation != FileOperation::Create {
            return Ok(());
        }
        for (state, path) in self.states.iter().zip(self.paths) {
            match state {
                FileState::Held(open) => open.sync_all()?,
                _ => File::open(path)?.sync_all()?,
            }
        }
        Ok(())
    }
}

impl<D: Door> Worker<'_, D> {
    /// Opens the file of a request, if it is not open: the work of the engine. The job ends where
    /// that fails.
    pub(super) fn has_opened(&mut self, request: &Request) -> bool {
        let Some(operations) = &mut self.operations else {
            return true;
        };
        let closed = self.places.closed();
        if let Some(error) = closed
            .filter_map(|file| operations.close(file).err())
            .last()
        {
            self.failed_to("closing the files", &error);
            return false;
        }
        let index = request.file as usize;
        if !matches!(operations.states[index], FileState::Closed) {
            return true;
        }
        let path = &operations.paths[index];
        let begun = clock::ticks();
        let opened = operations.open(path);
        let ended = clock::ticks();
        match opened {
            Ok(state) => operations.states[index] = state,
            Err(error) => {
                let doing = format!("{} {}", operations.doing(), path.display());
                self.failed_to(&doing, &error);
                return false;
            }
        }
        if operations.timed {
            let ns = clock::ticks_to_ns(ended.saturating_sub(begun));
            let side = operations.side;
            self.tally.sides[side].clat.record(ns);
            if self.counting
                && let Some(logs) = &mut self.logs
            {
                let at_ns = clock::ticks_to_ns(ended.saturating_sub(self.started));
                logs.add_clat(at_ns, side, ns);
            }
        }
        true
    }

    /// `end_fsync` and `fsync_on_close` of files that were created.
    pub(super) fn sync_created(&mut self) {
        let synced = self.operations.as_mut().map_or(Ok(()), Operations::sync);
        if let Err(error) = synced {
            self.failed_to("syncing the files", &error);
        }
    }

    #[cold]
    fn failed_to(&mut self, doing: &str, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(FAILED);
        self.end_with(errno, format!("{doing}: {error}"));
    }
}
