//! A file system on a disk: over a loop device, which stays for all states of a lane. Before each
//! mount the kernel is told to forget what it has cached of the device: it does so by itself when
//! the last user closes it, but any program that lists loop devices is a user for a moment. All of
//! it is done by programs: this process must not wait for its own FUSE server.

use super::leftovers::{ATTACH_MARK, LOOP_FILE, MARK, PATH, end_users};
use crate::error::{CrashError, os};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::Duration;

/// How often a busy file system is unmounted, with [`BUSY`] between: killed processes need a moment
/// to end.
const UNMOUNT_TRIES: usize = 500;
const BUSY: Duration = Duration::from_millis(20);

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

    /// Makes one, for the commands that use `folder`.
    pub(super) fn make(self, device: &Path, folder: &Path) -> Result<(), CrashError> {
        let (program, arguments): (_, &[&str]) = match self {
            // Inode tables that are made later would be writes of the kernel's own.
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0"]),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        };
        let output = run(folder, program, arguments, &[device.as_os_str()])?;
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

/// Runs a program to its end. It carries the mark of `folder`.
fn run(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    paths: &[&OsStr],
) -> Result<Output, CrashError> {
    let mut command = Command::new(program);
    command.args(arguments).args(paths);
    command.env("PATH", PATH).env(MARK, folder);
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
    folder: PathBuf,
    device: PathBuf,
    directory: PathBuf,
    is_mounted: bool,
}

impl Mounted {
    pub fn new(file_system: FileSystem, device: &Path, folder: &Path) -> Result<Self, CrashError> {
        let directory = folder.join("mnt");
        fs::create_dir(&directory).map_err(os("making", &directory))?;
        let name = folder.join(LOOP_FILE);
        let file = fs::File::create(&name).map_err(os("making", &name))?;
        let mut losetup = Command::new("losetup");
        losetup.args(["--show", "-f"]).arg(device).stdout(file);
        losetup.env("PATH", PATH).env(ATTACH_MARK, folder);
        let output = losetup.stderr(Stdio::piped()).spawn();
        let output = output.and_then(std::process::Child::wait_with_output);
        let output = output.map_err(os("starting", Path::new("losetup")))?;
        judge("losetup", &output).map_err(CrashError::Serve)?;
        let path = fs::read_to_string(&name).map_err(os("reading", &name))?;
        let path = path.trim();
        Ok(Self {
            file_system,
            folder: folder.to_owned(),
            device: PathBuf::from(path),
            directory,
            is_mounted: false,
        })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Mounts, with options of mount(8).
    pub fn mount(&mut self, options: &str) -> Result<(), CrashError> {
        self.forget()?;
        let name = self.file_system.name();
        // Copies of one XFS are mounted at the same time; without `nouuid` it refuses the second.
        let common = match self.file_system {
            FileSystem::Xfs => "noatime,nouuid",
            FileSystem::Ext4 | FileSystem::Btrfs => "noatime",
        };
        let options = [common, options].join(",");
        let options = options.trim_end_matches(',');
        let paths = [self.device.as_os_str(), self.directory.as_os_str()];
        let output = run(
            &self.folder,
            "mount",
            &["-t", name, "-o", options, "--"],
            &paths,
        )?;
        judge("mount", &output).map_err(|error| {
            CrashError::Serve(format!("the {name} file system does not mount: {error}"))
        })?;
        self.is_mounted = true;
        Ok(())
    }

    /// Makes the kernel drop the cached pages of the device (`POSIX_FADV_DONTNEED`).
    fn forget(&self) -> Result<(), CrashError> {
        let mut input = OsStr::new("if=").to_owned();
        input.push(&self.device);
        let arguments = ["iflag=nocache", "count=0", "status=none"];
        let output = run(&self.folder, "dd", &arguments, &[&input])?;
        judge("dd", &output).map_err(CrashError::Serve)
    }

    /// Brings everything that was written to the device.
    pub fn sync(&self) -> Result<(), CrashError> {
        let output = run(
            &self.folder,
            "sync",
            &["-f", "--"],
            &[self.directory.as_os_str()],
        )?;
        judge("sync", &output).map_err(CrashError::Serve)
    }

    /// Unmounts. Processes that still use the file system are killed.
    pub fn unmount(&mut self) -> Result<(), CrashError> {
        let mut problem = String::new();
        for _ in 0..UNMOUNT_TRIES {
            let output = run(
                &self.folder,
                "umount",
                &["--"],
                &[self.directory.as_os_str()],
            )?;
            match judge("umount", &output) {
                Ok(()) => {
                    self.is_mounted = false;
                    return Ok(());
                }
                Err(why) => problem = why,
            }
            end_users(&self.directory);
            sleep(BUSY);
        }
        Err(CrashError::Serve(problem))
    }

    /// Looks for damage: what the program found.
    pub fn fsck(&self) -> Result<Result<(), String>, CrashError> {
        self.forget()?;
        let (program, arguments) = self.file_system.checker();
        let output = run(&self.folder, program, arguments, &[self.device.as_os_str()])?;
        Ok(judge(program, &output))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted && self.unmount().is_err() {
            // What still uses it keeps it until it ends.
            let paths = [self.directory.as_os_str()];
            let _ = run(&self.folder, "umount", &["--lazy", "--"], &paths);
        }
        // It is freed with its last user, at the latest.
        let _ = run(&self.folder, "losetup", &["-d"], &[self.device.as_os_str()]);
    }
}
