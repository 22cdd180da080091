//! The mount from the outside, over each transport that this machine has.

use super::*;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use tempfile::TempDir;
use ugeom_classes::{TargetOptions, open_target};

mod data;
mod durable;
mod ends;

/// A server, its mount and what it has logged.
struct Running {
    server: Option<Server>,
    stack: Stack,
    folder: TempDir,
    log: Arc<Mutex<Vec<String>>>,
    /// How often it was told that the mount is gone.
    ended: Arc<AtomicU32>,
}

/// Serves a target over each transport that can be had, with what `change` makes of the usual
/// settings. Says so where one cannot.
fn each_transport(target: &str, change: impl Fn(&mut Settings), check: impl Fn(Running)) {
    for transport in [Transport::Classic, Transport::Ring] {
        let started = start(target, |settings| {
            settings.transport = transport;
            change(settings);
        });
        match started {
            Ok(running) => check(running),
            Err(
                error @ (FuseError::Mount { .. }
                | FuseError::System { .. }
                | FuseError::Transport(_)),
            ) => ugeom_testkit::skip(&format!("{transport:?}: {error}")),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The same with the usual settings.
fn each_as_usual(target: &str, check: impl Fn(Running)) {
    each_transport(target, |_| {}, check);
}

fn start(target: &str, change: impl FnOnce(&mut Settings)) -> Result<Running, FuseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let writable = TargetOptions::default().for_writing();
    let target = open_target(target, &writable).expect("a target");
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&log);
    let ended = Arc::new(AtomicU32::new(0));
    let told = Arc::clone(&ended);
    let mut settings = Settings {
        directory: folder.path().to_owned(),
        writable: true,
        transport: Transport::Auto,
        threads: 2,
        ranges: Ranges::default(),
        allow_other: false,
        log: Arc::new(move |line| lines.lock().expect("the log").push(line.to_owned())),
        ended: Arc::new(move || {
            told.fetch_add(1, Ordering::SeqCst);
        }),
    };
    change(&mut settings);
    let server = Server::start(&target.stack, &Shown::all(target.name), &settings)?;
    Ok(Running {
        server: Some(server),
        stack: target.stack,
        folder,
        log,
        ended,
    })
}

impl Running {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, name: &str) -> File {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).open(self.path(name));
        opened.expect("an open file")
    }

    /// The names of the files, in order.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("a list");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

/// A partition table with one partition of `sectors` at `start` (docs/formats/mbr.md).
fn mbr(start: u32, sectors: u32) -> [u8; 512] {
    let mut bytes = [0; 512];
    bytes[450] = 0x83;
    bytes[454..458].copy_from_slice(&start.to_le_bytes());
    bytes[458..462].copy_from_slice(&sectors.to_le_bytes());
    bytes[510..].copy_from_slice(&[0x55, 0xaa]);
    bytes
}
