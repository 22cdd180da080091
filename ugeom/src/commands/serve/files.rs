//! The options of `ugeom serve` that are about files.

use crate::output;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use ugeom_serve::fuse::{Settings, Transport};
use ugeom_serve::ranges::Ranges;

#[derive(Args)]
pub struct FilesArgs {
    /// Mount a file for each provider on this empty directory
    #[arg(long, value_name = "DIR")]
    fuse: Option<PathBuf>,

    /// Let other users use the files, with permissions by the umask
    #[arg(long, requires = "fuse")]
    allow_other: bool,

    /// Transport of FUSE requests; auto: io_uring if the kernel offers it, else classic
    #[arg(long, value_name = "HOW", requires = "fuse", default_value = "auto")]
    fuse_transport: How,

    /// Threads of the classic transport [default: one per core, at least 2]
    #[arg(long, value_name = "N", requires = "fuse")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    fuse_threads: Option<u16>,
}

/// The names of the transports.
#[derive(Clone, Copy, clap::ValueEnum)]
enum How {
    Auto,
    Classic,
    Uring,
}

impl FilesArgs {
    /// Whether files are to be served.
    pub fn wanted(&self) -> bool {
        self.fuse.is_some()
    }

    /// Whether the transport was chosen that not every kernel has.
    pub fn asks_for_uring(&self) -> bool {
        matches!(self.fuse_transport, How::Uring)
    }

    /// How to serve files, if that is asked for.
    pub fn settings(
        &self,
        writable: bool,
        ranges: Ranges,
        ended: impl Fn() + Send + Sync + 'static,
    ) -> Option<Settings> {
        Some(Settings {
            directory: self.fuse.clone()?,
            writable,
            allow_other: self.allow_other,
            transport: match self.fuse_transport {
                How::Auto => Transport::Auto,
                How::Classic => Transport::Classic,
                How::Uring => Transport::Ring,
            },
            threads: self
                .fuse_threads
                .map_or_else(|| super::cores().max(2), usize::from),
            ranges,
            log: Arc::new(|line| output::remark(&output::printable(line))),
            ended: Arc::new(ended),
        })
    }
}
