//! Recording a run.

use crate::disk::{Disk, SECTOR_BYTES};
use crate::error::CrashError;
use std::path::Path;
use std::sync::Arc;
use ugeom_classes::crash::{Promises, Recorder, recording};
use ugeom_format::crash_log::Header;
use ugeom_stack::{Stack, StackError, StackKnobs};

/// A disk whose writes, flushes and promises go into a log.
pub struct Recording {
    recorder: Arc<Recorder>,
    plain: Disk,
    disk: Disk,
}

impl Recording {
    /// An empty disk of that size, a whole number of sectors of 512 bytes, and its log.
    ///
    /// # Errors
    /// The log or the image cannot be made.
    pub fn start(log: &Path, size_bytes: u64) -> Result<Self, CrashError> {
        let header = Header {
            media_bytes: size_bytes,
            sector_bytes: SECTOR_BYTES,
        };
        let recorder = Arc::new(Recorder::create(log, header)?);
        let plain = Disk::new(&std::env::temp_dir(), size_bytes, false)?;
        let disk = plain.recorded(Arc::clone(&recorder))?;
        Ok(Self {
            recorder,
            plain,
            disk,
        })
    }

    /// The disk, for programs that write to it in this process.
    pub fn disk(&self) -> Disk {
        self.disk.clone()
    }

    /// The disk as a stack, for programs that it is served to, and the name of its provider.
    ///
    /// # Errors
    /// The stack cannot be made.
    pub fn stack(&self) -> Result<(Stack, String), StackError> {
        let (stack, name) = stack_of(&self.plain)?;
        let tree = stack.tree();
        let below = tree.provider(&name).cloned();
        let below = below.ok_or_else(|| StackError::NoProvider {
            name: name.clone(),
            known: Vec::new(),
        })?;
        let plan = recording(&below, Arc::clone(&self.recorder));
        let name = plan.name.clone();
        stack.create("CRASH", plan, &[below.id])?;
        Ok((stack, name))
    }

    /// The set-up is over: everything written so far is durable, and crashes begin.
    pub fn begin(&self) {
        self.recorder.begin();
    }

    /// The workload was told that this key is durable.
    pub fn promise(&self, key: &str) {
        self.recorder.promise(key.as_bytes());
    }

    /// Asks `promises` for keys before each record, from now on.
    pub(crate) fn listen(&self, promises: Option<Promises>) {
        self.recorder.listen(promises);
    }

    /// Takes the promises of `promises`, without a record.
    pub(crate) fn hear(&self) -> Result<(), CrashError> {
        Ok(self.recorder.write_out()?)
    }

    /// The run is over.
    ///
    /// # Errors
    /// The log could not be written.
    pub fn finish(self) -> Result<(), CrashError> {
        Ok(self.recorder.write_out()?)
    }
}

/// A stack over a disk, and the name of its provider.
pub(crate) fn stack_of(disk: &Disk) -> Result<(Stack, String), StackError> {
    let name = "disk".to_owned();
    let stack = Stack::new(StackKnobs::default(), Vec::new())?;
    stack.create("DISK", disk.plan(&name), &[])?;
    Ok((stack, name))
}
