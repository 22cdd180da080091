//! A loop device over a file, for tests that need a block device of the kernel.

use crate::{program, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device; detached when dropped, and unmounted before.
pub struct LoopDevice {
    /// Where it is (`/dev/loop0`).
    pub path: PathBuf,
}

impl LoopDevice {
    /// A device over `file`; `None`, after reporting why, where there can be none. `arguments` go
    /// to losetup(8).
    pub fn over(file: &Path, arguments: &[&str]) -> Option<Self> {
        let losetup = program("losetup")?;
        let mut command = Command::new(losetup);
        command.args(["--find", "--show"]).args(arguments).arg(file);
        let made = command.output().ok()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let path = text(&made.stdout);
        if !made.status.success() || path.is_empty() {
            skip(&format!("no loop device: {}", text(&made.stderr)));
            return None;
        }
        Some(Self { path: path.into() })
    }

    /// The path as an argument of a program.
    pub fn text(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // After any failure nothing may be left behind. Neither call is missed if it fails.
        let _ = Command::new("umount").arg(&self.path).output();
        let mut losetup = Command::new("losetup");
        let _ = losetup.arg("--detach").arg(&self.path).output();
    }
}
