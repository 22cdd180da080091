//! Calls of the system, or of a function of this program, as a door.

use super::{Direct, Explain, Kind, Request};
use std::ops::DerefMut;
use std::os::fd::AsFd;
use ugeom_engine::Errno;

/// A function that does requests, and the memory that it fills or takes.
pub struct Calls<F, M> {
    call: F,
    memory: M,
}

impl<F, M> Calls<F, M> {
    /// A door of a function, which gets the request and memory of its length.
    pub fn new(memory: M, call: F) -> Self {
        Self { call, memory }
    }
}

impl<F, M> Explain for Calls<F, M> {}

impl<F, M> Direct for Calls<F, M>
where
    F: FnMut(&Request, &mut [u8]) -> Result<u64, Errno>,
    M: DerefMut<Target = [u8]>,
{
    #[inline(always)]
    fn call(&mut self, request: &Request) -> Result<u64, Errno> {
        (self.call)(request, &mut self.memory[..request.length as usize])
    }
}

/// pread(2), pwrite(2), fdatasync(2) and fsync(2) on a file.
pub fn file_calls<F: AsFd>(file: F) -> impl FnMut(&Request, &mut [u8]) -> Result<u64, Errno> {
    move |request, memory| match request.kind {
        Kind::Read => rustix::io::pread(&file, memory, request.offset).map(|done| done as u64),
        Kind::Write => rustix::io::pwrite(&file, memory, request.offset).map(|done| done as u64),
        Kind::DataSync => rustix::fs::fdatasync(&file).map(|()| 0),
        Kind::Sync => rustix::fs::fsync(&file).map(|()| 0),
        Kind::Trim => Err(Errno::OPNOTSUPP),
    }
}
