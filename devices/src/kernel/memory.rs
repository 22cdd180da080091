//! A chain of loop devices and partitions over a file in memory, made anew for each pass: the state
//! of one loop device (its worker, the pages of its file) is no property of the layer.
//!
//! Partitions are added by `addpart` (BLKPG), which needs no table and no parser in the kernel.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};
use ugeom_harness::HarnessError;

/// The file's size, bytes: larger than a processor's cache.
const SIZE_BYTES: usize = 64 << 20;
/// Where files lie in memory.
const FOLDER: &str = "/dev/shm";
/// A partition that begins later begins as far into a MiB, after the first MiB: the file is small.
const START_BYTES_MAX: u64 = 4 << 20;
const MIB: u64 = 1 << 20;
/// How long a partition may stay in use after the last read, and how often that is looked at.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);
const CLOSED_POLL: Duration = Duration::from_millis(10);

/// A layer that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// A loop device (loop(4)) over the layer below.
    Loop,
    /// The one partition of the device below, up to the end of that.
    Partition {
        /// Where it begins in the chain that is made again, bytes.
        start_bytes: u64,
    },
}

/// Devices that are removed when dropped.
pub(super) struct InMemory {
    file: PathBuf,
    /// The created layers, the lowest first.
    layers: Vec<Made>,
    /// Existing paths, in the same order.
    devices: Vec<String>,
}

impl InMemory {
    /// These layers, the lowest first.
    pub(super) fn new(layers: Vec<Made>) -> Result<Self, HarnessError> {
        let name = format!("ugeom-{}.img", std::process::id());
        let mut chain = Self {
            file: PathBuf::from(FOLDER).join(name),
            layers,
            devices: Vec::new(),
        };
        chain.make()?;
        Ok(chain)
    }

    /// Removes the devices and the file, and makes others.
    pub(super) fn renew(&mut self) -> Result<(), HarnessError> {
        self.remove();
        self.make()
    }

    pub(super) fn top(&self) -> &str {
        self.devices.last().map_or("", String::as_str)
    }

    fn make(&mut self) -> Result<(), HarnessError> {
        let name = self.file.display().to_string();
        let failed = || HarnessError::os(&name, "filling it");
        let mut created = File::create_new(&self.file).map_err(failed())?;
        // Pages that were never written would be read without memory behind them.
        let filled = created.write_all(&vec![1; SIZE_BYTES]);
        filled.map_err(failed())?;
        let mut below = name;
        for layer in &self.layers {
            let device = match *layer {
                Made::Loop => attach(&below).map_err(HarnessError::os(&below, "losetup"))?,
                Made::Partition { start_bytes } => add_partition(&below, start_bytes)
                    .map_err(HarnessError::os(&below, "addpart"))?,
            };
            self.devices.push(device.clone());
            below = device;
        }
        Ok(())
    }

    fn remove(&mut self) {
        while let Some(device) = self.devices.pop() {
            // Nothing can be done about one that stays but to name it, which these programs do.
            let _ = match (self.layers.get(self.devices.len()), self.devices.last()) {
                (Some(Made::Partition { .. }), Some(below)) => delete_partition(below),
                _ => Command::new("losetup").args(["-d", &device]).status(),
            };
        }
        let _ = fs::remove_file(&self.file);
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.remove();
    }
}

fn attach(below: &str) -> io::Result<String> {
    printed(Command::new("losetup").args(["--direct-io=on", "-f", "--show", below]))
}

/// The path of the partition.
fn add_partition(below: &str, start_bytes: u64) -> io::Result<String> {
    let start = match start_bytes {
        near if near < START_BYTES_MAX => near,
        far => MIB + far % MIB,
    };
    let size_bytes = File::open(below)?.seek(SeekFrom::End(0))?;
    let sectors = |bytes: u64| (bytes / 512).to_string();
    let length = sectors(size_bytes.saturating_sub(start));
    // A loop device that is made again may have a partition of before.
    Command::new("delpart").args([below, "1"]).output()?;
    printed(Command::new("addpart").args([below, "1", &sectors(start), &length]))?;
    Ok(format!("{below}p1"))
}

/// Files that an io_uring has used are closed some time after it.
fn delete_partition(below: &str) -> io::Result<ExitStatus> {
    let mut delete = Command::new("delpart");
    delete.args([below, "1"]);
    let started = Instant::now();
    while started.elapsed() < CLOSED_WITHIN {
        let ended = delete.output()?;
        if ended.status.success() {
            return Ok(ended.status);
        }
        std::thread::sleep(CLOSED_POLL);
    }
    delete.status()
}

/// The output of a program; its messages as an error.
fn printed(command: &mut Command) -> io::Result<String> {
    let ended = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match ended.status.success() {
        true => Ok(text(&ended.stdout)),
        false => Err(io::Error::other(text(&ended.stderr))),
    }
}
