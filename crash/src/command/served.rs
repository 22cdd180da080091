//! A disk as a file of a FUSE mount, and over NBD. Both stay for all states of a lane: neither
//! keeps anything of the data.

use crate::error::{CrashError, os};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ugeom_serve::ranges::Ranges;
use ugeom_serve::shown::Shown;
use ugeom_serve::{fuse, nbd};
use ugeom_stack::Stack;

pub(super) struct Served {
    /// The file that programs open as the disk.
    pub device: PathBuf,
    /// The URI under which the NBD server offers the disk.
    pub uri: String,
    // They are dropped in this order.
    _files: fuse::Server,
    _nbd: nbd::Server,
}

impl Served {
    pub fn start(stack: &Stack, name: &str, folder: &Path) -> Result<Self, CrashError> {
        let directory = folder.join("files");
        fs::create_dir(&directory).map_err(os("making", &directory))?;
        let ranges = Ranges::default();
        let serving = |error: &dyn std::fmt::Display| CrashError::Serve(error.to_string());
        let settings = fuse::Settings {
            directory: directory.clone(),
            writable: true,
            transport: fuse::Transport::Classic,
            threads: 2,
            ranges: ranges.clone(),
            log: Arc::new(|_| {}),
            ended: Arc::new(|| {}),
            allow_other: false,
        };
        let files =
            fuse::Server::start(stack, &Shown::only(name), &settings).map_err(|it| serving(&it))?;
        let settings = nbd::Settings {
            addresses: vec![nbd::Address::Unix(folder.join("nbd"))],
            writable: true,
            ranges,
            ..nbd::Settings::default()
        };
        let nbd =
            nbd::Server::start(stack, &Shown::only(name), &settings).map_err(|it| serving(&it))?;
        Ok(Self {
            device: directory.join(name),
            uri: nbd.uris().first().cloned().unwrap_or_default(),
            _files: files,
            _nbd: nbd,
        })
    }
}
