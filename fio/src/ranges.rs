//! Engines that change files instead of transferring data, a system call a request: `falloc`
//! reserves the range of a read or write and punches that of a trim, `ftruncate` cuts or extends a
//! file to the offset of each write.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use ugeom_engine::Errno;
use ugeom_load::door::{Door, Event, Explain, Kind, Request};
use ugeom_machine::buffer::Buffer;

use ugeom_job::settings::RangeCall;

/// Does each request when it is submitted.
pub struct RangeDoor {
    call: RangeCall,
    files: Vec<Arc<File>>,
    buffers: Vec<Buffer>,
    ended: Vec<Event>,
}

impl RangeDoor {
    /// A door to files with so many slots; no buffer is read or filled.
    pub fn new(call: RangeCall, files: Vec<Arc<File>>, slots: u32, bytes: usize) -> Self {
        Self {
            call,
            files,
            buffers: (0..slots).map(|_| Buffer::new(bytes)).collect(),
            ended: Vec::with_capacity(slots as usize),
        }
    }

    /// The calls are those of fio 3.33, engines/falloc.c and engines/ftruncate.c.
    fn call(&self, request: &Request) -> Result<u64, Errno> {
        let file = &self.files[request.file as usize];
        let length = u64::from(request.length);
        let mode = match (self.call, request.kind) {
            (_, Kind::DataSync) => return rustix::fs::fdatasync(file).map(|()| 0),
            (_, Kind::Sync) => return rustix::fs::fsync(file).map(|()| 0),
            (RangeCall::Truncate, Kind::Write) => {
                return ftruncate(file, request.offset).map(|()| length);
            }
            (RangeCall::Truncate, Kind::Read | Kind::Trim) => return Err(Errno::INVAL),
            (RangeCall::Allocate, Kind::Read) => FallocateFlags::KEEP_SIZE,
            (RangeCall::Allocate, Kind::Write) => FallocateFlags::empty(),
            (RangeCall::Allocate, Kind::Trim) => {
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE
            }
        };
        fallocate(file, mode, request.offset, length).map(|()| length)
    }
}

impl Explain for RangeDoor {}

impl Door for RangeDoor {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        &mut self.buffers[slot as usize]
    }

    fn submit(&mut self, slot: u32, request: &Request) {
        let result = self.call(request);
        self.ended.push(Event { slot, result });
    }

    fn flush(&mut self) {}

    fn reap(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.ended);
    }

    fn renew(&mut self, files: Vec<Arc<File>>) -> Result<(), Errno> {
        self.files = files;
        Ok(())
    }

    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}
