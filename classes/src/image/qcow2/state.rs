//! A thread's engine, for the data in plain clusters.

use crate::engines::Carried;
use crate::failures::Failures;
use std::any::Any;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use ugeom_engine::{Completion, Engine, FileId, Op, OpKind};
use ugeom_stack::{Bio, Carrier, Command, Completions, Errno, ThreadState};

/// The I/O engine of one thread.
pub(super) struct ThreadEngine {
    engine: Box<dyn Engine<Carried>>,
    files: Vec<FileId>,
    failures: Arc<Failures>,
}

impl ThreadEngine {
    pub fn new<'a>(
        files: impl Iterator<Item = &'a Arc<File>>,
        mut engine: Box<dyn Engine<Carried>>,
        failures: &Arc<Failures>,
    ) -> Result<Self, Errno> {
        let files = files.map(|file| engine.register(Arc::clone(file)));
        let files = files.collect::<Result<_, _>>()?;
        let failures = Arc::clone(failures);
        Ok(Self {
            engine,
            files,
            failures,
        })
    }

    /// Reads or writes at `offset` of a file of the chain.
    pub fn submit(&mut self, bio: Bio, file: usize, offset: u64) {
        let Some(&file) = self.files.get(file) else {
            return bio.fail(Errno::IO, "the image has no such file");
        };
        let kind = match bio.command() {
            Command::Write => OpKind::Write { durable: false },
            _ => OpKind::Read,
        };
        let length = bio.length();
        let op = Op {
            kind,
            file,
            offset,
            length,
        };
        self.engine
            .submit(op, (Carrier::new(bio, 1), self.failures.count()));
    }
}

impl Drop for ThreadEngine {
    fn drop(&mut self) {
        // The kernel takes a ring apart at its leisure; files that are taken out of it first are
        // free at once, with their locks.
        for file in self.files.drain(..) {
            self.engine.unregister(file);
        }
    }
}

impl ThreadState for ThreadEngine {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn poll(&mut self, completions: &mut Completions<'_>) {
        let failures = &self.failures;
        self.engine
            .reap(&mut |Completion { memory, result }: Completion<Carried>| {
                let (carrier, before) = memory;
                let mut bio = carrier.into_bio();
                match result {
                    Ok(bytes) if bytes < bio.length() && bio.command() == Command::Read => {
                        // A cluster at the end of the file may be there in part.
                        bio.fill(|at, piece| {
                            let start = bytes.saturating_sub(at).min(piece.len() as u64);
                            piece[start as usize..].fill(0);
                        });
                        let length = bio.length();
                        completions.push(bio, Ok(length));
                    }
                    Ok(bytes) if bytes < bio.length() => {
                        completions.push_failed(bio, Errno::IO, "the file takes no more");
                    }
                    Ok(bytes) => {
                        if bio.command() == Command::Write {
                            failures.wrote(bio.offset()..bio.offset() + bytes, before);
                        }
                        completions.push(bio, Ok(bytes));
                    }
                    Err(errno) => completions.push_failed(bio, errno, "the system failed it"),
                }
            });
        self.engine.flush_submissions();
    }

    fn in_flight(&self) -> usize {
        self.engine.in_flight()
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.engine.wait_fd()
    }
}
