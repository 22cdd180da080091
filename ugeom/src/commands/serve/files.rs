//! The options of `ugeom serve` that are about files.

use crate::output;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use ugeom_serve::fuse::{Settings, Transport};
use ugeom_serve::ranges::Ranges;

#[derive(Args)]
pub struct FilesArgs {
    /// Mount here, with a file for each provider: an empty directory
    #[arg(long, value_name = "DIR")]
    fuse: Option<PathBuf>,

    /// Let other users use the files, too: the umask decides who may do what
    #[arg(long, requires = "fuse")]
    allow_other: bool,

    /// Transport of FUSE requests: io_uring where the kernel offers it (auto), or only one way
    #[arg(long, value_name = "HOW", requires = "fuse", default_value = "auto")]
    fuse_transport: How,

    /// Threads that serve files over the classic channel [default: one per core, at least 2]
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

    /// How to serve files, if that is asked for.
    pub fn settings(
        &self,
        writable: bool,
        only_top: bool,
        ranges: Ranges,
        ended: impl Fn() + Send + Sync + 'static,
    ) -> Option<Settings> {
        Some(Settings {
            directory: self.fuse.clone()?,
            writable,
            allow_other: self.allow_other,
            only_top,
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
