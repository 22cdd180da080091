//! A chain of loop devices over a file in memory: as many as the chain of a device has, without the
//! noise of a disk.

use crate::failure::Usage;
use anyhow::{Context, Result, anyhow};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use ugeom_trace::tree::{Class, KernelTree};

/// The file's size, bytes: larger than a processor's cache.
const SIZE_BYTES: usize = 64 << 20;
/// Where files lie in memory.
const FOLDER: &str = "/dev/shm";

/// Devices that are removed when dropped, the uppermost last in the list.
pub struct InMemory {
    file: PathBuf,
    devices: Vec<String>,
}

/// How many loop devices the chain has; other layers cannot be made in memory.
pub fn depth_of(tree: &KernelTree, top: usize) -> Result<usize> {
    let classes = || tree.chain(top).into_iter().map(|at| &tree.nodes[at]);
    let stays = |class| matches!(class, Class::Loop | Class::File | Class::Fs);
    let loops = classes().filter(|node| node.class == Class::Loop).count();
    // What lies below the lowest loop device is replaced.
    let upper = classes().take_while({
        let mut left = loops;
        move |node| {
            left -= usize::from(left > 0 && node.class == Class::Loop);
            left > 0
        }
    });
    let other = upper.into_iter().find(|node| !stays(node.class));
    match (other, loops) {
        (Some(node), _) => {
            let why = format!("{}: only loop devices can be made in memory", node.name);
            Err(Usage(why).into())
        }
        (None, 0) => {
            let name = &tree.nodes[top].name;
            let why = format!("{name}: no loop device in its chain that could be made in memory");
            Err(Usage(why).into())
        }
        (None, loops) => Ok(loops),
    }
}

impl InMemory {
    /// Makes so many loop devices, each on the one before.
    pub fn new(depth: usize) -> Result<Self> {
        let file = PathBuf::from(FOLDER).join(format!("ugeom-{}.img", std::process::id()));
        let mut chain = Self {
            file,
            devices: Vec::new(),
        };
        let name = chain.file.display().to_string();
        let mut created = File::create_new(&chain.file).with_context(|| name.clone())?;
        // Pages that were never written would be read without memory behind them.
        let filled = created.write_all(&vec![1; SIZE_BYTES]);
        filled.with_context(|| format!("{name}: filling it"))?;
        let mut below = name;
        for _ in 0..depth {
            let made = Command::new("losetup")
                .args(["--direct-io=on", "-f", "--show", &below])
                .output()
                .context("losetup")?;
            if !made.status.success() {
                let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
                return Err(anyhow!("losetup of {below}: {why}"));
            }
            below = String::from_utf8_lossy(&made.stdout).trim().to_owned();
            chain.devices.push(below.clone());
        }
        Ok(chain)
    }

    /// The uppermost device.
    pub fn top(&self) -> &str {
        self.devices.last().map_or("", String::as_str)
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        while let Some(device) = self.devices.pop() {
            // Nothing can be done about one that stays but to name it, which losetup does.
            let _ = Command::new("losetup").args(["-d", &device]).status();
        }
        let _ = fs::remove_file(&self.file);
    }
}
