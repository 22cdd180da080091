//! A chain of loop devices over a file in memory, made anew for each pass: what a loop device has
//! for as long as it lives (its worker, the pages of its file) is no property of the layer.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use ugeom_harness::HarnessError;

/// The file's size, bytes: larger than a processor's cache.
const SIZE_BYTES: usize = 64 << 20;
/// Where files lie in memory.
const FOLDER: &str = "/dev/shm";

/// Devices that are removed when dropped.
pub(super) struct InMemory {
    file: PathBuf,
    loops: usize,
    /// The uppermost last.
    devices: Vec<String>,
}

impl InMemory {
    /// So many loop devices, each on the one before.
    ///
    /// # Errors
    /// What the file or `losetup` fails with.
    pub(super) fn new(loops: usize) -> Result<Self, HarnessError> {
        let name = format!("ugeom-{}.img", std::process::id());
        let mut chain = Self {
            file: PathBuf::from(FOLDER).join(name),
            loops,
            devices: Vec::new(),
        };
        chain.make()?;
        Ok(chain)
    }

    /// Removes the devices and the file, and makes others.
    ///
    /// # Errors
    /// As for [`InMemory::new`].
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
        for _ in 0..self.loops {
            let device = attach(&below).map_err(HarnessError::os(&below, "losetup"))?;
            self.devices.push(device.clone());
            below = device;
        }
        Ok(())
    }

    fn remove(&mut self) {
        while let Some(device) = self.devices.pop() {
            // Nothing can be done about one that stays but to name it, which losetup does.
            let _ = Command::new("losetup").args(["-d", &device]).status();
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
    let made = Command::new("losetup")
        .args(["--direct-io=on", "-f", "--show", below])
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match made.status.success() {
        true => Ok(text(&made.stdout)),
        false => Err(io::Error::other(text(&made.stderr))),
    }
}
