//! `write_iolog`: the requests of a job, in version 3 of fio's log.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use ugeom_classes::result_file::refuse_carrying;

use ugeom_load::door::{Kind, Request};
use ugeom_machine::clock;

use super::super::places::Region;

/// A log that is being written.
pub struct Iolog {
    out: BufWriter<File>,
    begun: u64,
}

impl Iolog {
    /// Begins a log about these files.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &str, regions: &[Region]) -> io::Result<Self> {
        refuse_carrying(Path::new(path), |_| false)?;
        let mut log = Self {
            out: BufWriter::new(File::create(path)?),
            begun: clock::ticks(),
        };
        writeln!(log.out, "fio version 3 iolog")?;
        for action in ["add", "open"] {
            log.of_files(regions, action)?;
        }
        Ok(log)
    }

    fn us(&self) -> u64 {
        clock::ticks_to_ns(clock::ticks().saturating_sub(self.begun)) / 1000
    }

    fn of_files(&mut self, regions: &[Region], action: &str) -> io::Result<()> {
        let us = self.us();
        regions
            .iter()
            .try_for_each(|region| writeln!(self.out, "{us} {} {action}", region.name))
    }

    /// A request is made.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, request: &Request, regions: &[Region]) -> io::Result<()> {
        let action = match request.kind {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Trim => "trim",
            Kind::DataSync => "datasync",
            Kind::Sync => "sync",
        };
        let (us, name) = (self.us(), &regions[request.file as usize].name);
        let Request { offset, length, .. } = request;
        writeln!(self.out, "{us} {name} {action} {offset} {length}")
    }

    /// The job has ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close(mut self, regions: &[Region]) -> io::Result<()> {
        self.of_files(regions, "close")?;
        self.out.flush()
    }
}
