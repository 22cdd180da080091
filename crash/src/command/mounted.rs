//! A file system on a disk: over a loop device, which stays for all states of a lane. Before each
//! mount the kernel is told to forget what it has cached of the device: it does so by itself when
//! the last user closes it, but any program that lists loop devices is a user for a moment.

use crate::error::{CrashError, os};
use rustix::fs::Advice;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::str::FromStr;

/// A file system that can be on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4(5).
    Ext4,
    /// xfs(5).
    Xfs,
    /// btrfs(5).
    Btrfs,
}

impl FromStr for FileSystem {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ext4" => Ok(Self::Ext4),
            "xfs" => Ok(Self::Xfs),
            "btrfs" => Ok(Self::Btrfs),
            _ => Err("the file systems are ext4, xfs and btrfs".to_owned()),
        }
    }
}

impl FileSystem {
    /// Its name, as mount(8) has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Makes one.
    pub(super) fn make(self, device: &Path) -> Result<(), CrashError> {
        let (program, arguments): (_, &[&str]) = match self {
            // Inode tables that are made later would be writes of the kernel's own.
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0"]),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        };
        let output = run(program, arguments, device)?;
        judge(program, &output).map_err(CrashError::Serve)
    }

    /// The program that looks for damage and changes nothing.
    const fn checker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Ext4 => ("e2fsck", &["-f", "-n"]),
            Self::Xfs => ("xfs_repair", &["-n"]),
            Self::Btrfs => ("btrfs", &["check", "--readonly"]),
        }
    }
}

/// Programs of the administrator are not in every user's path.
const PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

fn run(program: &str, arguments: &[&str], device: &Path) -> Result<Output, CrashError> {
    let mut command = Command::new(program);
    command.args(arguments).arg(device).env("PATH", PATH);
    command.output().map_err(os("starting", Path::new(program)))
}

fn judge(program: &str, output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    let printed = String::from_utf8_lossy(&printed);
    let last: Vec<&str> = printed.lines().rev().take(8).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("{program}: {}: {}", output.status, last.join("; ")))
}

/// A place for the file system. Dropping it unmounts and frees the loop device.
pub(super) struct Mounted {
    file_system: FileSystem,
    device: PathBuf,
    directory: PathBuf,
    is_mounted: bool,
}

impl Mounted {
    pub fn new(file_system: FileSystem, device: &Path, folder: &Path) -> Result<Self, CrashError> {
        let directory = folder.join("mnt");
        fs::create_dir(&directory).map_err(os("making", &directory))?;
        let output = run("losetup", &["--show", "-f"], device)?;
        judge("losetup", &output).map_err(CrashError::Serve)?;
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self {
            file_system,
            device: PathBuf::from(path),
            directory,
            is_mounted: false,
        })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Mounts, with options of the file system.
    pub fn mount(&mut self, options: &str) -> Result<(), CrashError> {
        self.forget()?;
        let options = CString::new(options).ok();
        let mounted = rustix::mount::mount(
            &self.device,
            &self.directory,
            self.file_system.name(),
            MountFlags::NOATIME,
            options.as_deref(),
        );
        mounted.map_err(|error| {
            let name = self.file_system.name();
            CrashError::Serve(format!("the {name} file system does not mount: {error}"))
        })?;
        self.is_mounted = true;
        Ok(())
    }

    fn forget(&self) -> Result<(), CrashError> {
        let device = File::open(&self.device).map_err(os("opening", &self.device))?;
        let forgotten = rustix::fs::fadvise(&device, 0, None, Advice::DontNeed);
        forgotten.map_err(|error| os("dropping the cache of", &self.device)(error.into()))
    }

    /// Brings everything that was written to the device.
    pub fn sync(&self) -> Result<(), CrashError> {
        let directory = File::open(&self.directory).map_err(os("opening", &self.directory))?;
        let synced = rustix::fs::syncfs(&directory);
        synced.map_err(|error| os("syncing", &self.directory)(error.into()))
    }

    pub fn unmount(&mut self) -> Result<(), CrashError> {
        let gone = rustix::mount::unmount(&self.directory, UnmountFlags::empty());
        gone.map_err(|error| os("unmounting", &self.directory)(error.into()))?;
        self.is_mounted = false;
        Ok(())
    }

    /// Looks for damage: what the program found.
    pub fn fsck(&self) -> Result<Result<(), String>, CrashError> {
        self.forget()?;
        let (program, arguments) = self.file_system.checker();
        let output = run(program, arguments, &self.device)?;
        Ok(judge(program, &output))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            // What still uses it keeps it until it ends.
            let _ = rustix::mount::unmount(&self.directory, UnmountFlags::DETACH);
        }
        // It is freed with its last user, at the latest.
        let _ = run("losetup", &["-d"], &self.device);
    }
}
