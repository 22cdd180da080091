//! A file system on a disk: over a loop device, which stays for all states of a lane. All of it is
//! done by programs: this process must not wait for its own FUSE server.
//!
//! No state may see the kernel's cache of the one before:
//!
//! - A mount namespace that was copied while a state was mounted (unshare(1), a container that
//!   starts) keeps the file system alive after umount(8). It would still write, and the next mount
//!   of the device would show it again. So each unmount waits until the device can be claimed
//!   (`O_EXCL`), which is after the last write of the file system.
//! - Before each mount the kernel is told to forget the pages of the device. It does so by itself
//!   when the last user closes it, but any program that lists devices is a user for a moment.

use super::leftovers::{ATTACH_MARK, LOOP_FILE, MARK, PATH, end_users};
use crate::error::{CrashError, os};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

/// How often a busy file system is unmounted, with [`BUSY`] between: killed processes need a moment
/// to end.
const UNMOUNT_TRIES: usize = 500;
const BUSY: Duration = Duration::from_millis(20);
/// How often a device is claimed, with [`BUSY`] between.
const CLAIM_TRIES: usize = 500;

/// A file system that can be on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Linux' ext4, see ext4(5).
    Ext4,
    /// Linux' XFS, see xfs(5).
    Xfs,
    /// Linux' btrfs, see btrfs(5).
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
    let mut command = Command::new(found(program));
    command.args(arguments).args(paths);
    // Messages are read: see `run_on_device`.
    command.env(MARK, folder).env("LC_ALL", "C");
    command.output().map_err(os("starting", Path::new(program)))
}

/// Runs a program that wants a device for itself. A claim that was closed may live on for a moment,
/// in a child of another thread that has not started its program yet: the descriptor goes away
/// there only with execve(2). So a busy device is tried again.
fn run_on_device(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    paths: &[&OsStr],
) -> Result<Output, CrashError> {
    let mut output = run(folder, program, arguments, paths)?;
    for _ in 0..CLAIM_TRIES {
        let failed = judge(program, &output).err();
        if !failed.is_some_and(|text| text.contains("busy")) {
            break;
        }
        sleep(BUSY);
        output = run(folder, program, arguments, paths)?;
    }
    Ok(output)
}

/// Where a program is in [`PATH`]. With its whole path it is started by posix_spawn(3), which does
/// not copy the page tables of this process, as fork(2) would for each state.
fn found(program: &str) -> PathBuf {
    let folders = PATH
        .split(':')
        .map(|folder| Path::new(folder).join(program));
    let mut there = folders.filter(|path| path.is_file());
    // Without it, the error of the start names it.
    there.next().unwrap_or_else(|| PathBuf::from(program))
}

fn judge(program: &str, output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    let printed = String::from_utf8_lossy(&printed);
    Err(format!(
        "{program}: {}: {}",
        output.status,
        end_of(&printed)
    ))
}

/// The last lines of a program's output as one line, without indents and empty lines.
fn end_of(printed: &str) -> String {
    let lines = printed.lines().map(str::trim).filter(|it| !it.is_empty());
    let lines: Vec<&str> = lines.collect();
    let last = &lines[lines.len().saturating_sub(8)..];
    last.join("; ")
}

/// A place for the file system. Dropping it unmounts and frees the loop device.
pub(super) struct Mounted {
    file_system: FileSystem,
    folder: PathBuf,
    device: PathBuf,
    directory: PathBuf,
    is_mounted: bool,
    /// The device, for this process alone: no file system is on it.
    claim: Option<fs::File>,
}

impl Mounted {
    pub fn new(file_system: FileSystem, device: &Path, folder: &Path) -> Result<Self, CrashError> {
        let directory = folder.join("mnt");
        fs::create_dir(&directory).map_err(os("making", &directory))?;
        let name = folder.join(LOOP_FILE);
        let file = fs::File::create(&name).map_err(os("making", &name))?;
        let mut losetup = Command::new(found("losetup"));
        losetup.args(["--show", "-f"]).arg(device).stdout(file);
        losetup.env(ATTACH_MARK, folder);
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
            claim: None,
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
        let arguments = ["-t", name, "-o", options, "--"];
        let output = run_on_device(&self.folder, "mount", &arguments, &paths)?;
        judge("mount", &output).map_err(|error| {
            CrashError::Serve(format!("the {name} file system does not mount: {error}"))
        })?;
        self.is_mounted = true;
        Ok(())
    }

    /// Makes the kernel drop the cached pages of the device (`POSIX_FADV_DONTNEED`). The program is
    /// the last to close it, since that may wait for pages.
    fn forget(&mut self) -> Result<(), CrashError> {
        let claim = match self.claim.take() {
            Some(claim) => claim,
            None => self.claimed()?,
        };
        let mut dd = Command::new(found("dd"));
        dd.args(["iflag=nocache", "count=0", "status=none"]);
        dd.stdin(claim).env(MARK, &self.folder);
        let output = dd.output().map_err(os("starting", Path::new("dd")))?;
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
                    self.claim = Some(self.claimed()?);
                    return Ok(());
                }
                Err(why) => problem = why,
            }
            end_users(&self.directory);
            sleep(BUSY);
        }
        Err(CrashError::Serve(problem))
    }

    /// The device without a file system, once no mount namespace has it any more.
    fn claimed(&self) -> Result<fs::File, CrashError> {
        let failed = os("claiming", &self.device);
        let mut options = fs::OpenOptions::new();
        options.read(true).custom_flags(OFlags::EXCL.bits() as i32);
        for _ in 0..CLAIM_TRIES {
            match options.open(&self.device) {
                Ok(file) => return Ok(file),
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(BUSY),
                Err(error) => return Err(failed(error)),
            }
        }
        let holders = namespaces_with(&self.directory).join(", ");
        Err(CrashError::Serve(format!(
            "the file system of a state is still in use after its unmount; processes whose mount \
             namespace has it: {holders}"
        )))
    }

    /// Looks for damage; returns the program's findings.
    pub fn fsck(&mut self) -> Result<Result<(), String>, CrashError> {
        self.forget()?;
        let (program, arguments) = self.file_system.checker();
        let device = [self.device.as_os_str()];
        let output = run_on_device(&self.folder, program, arguments, &device)?;
        Ok(judge(program, &output))
    }
}

/// The processes that see a mount at that place, as `PID (NAME)`.
fn namespaces_with(directory: &Path) -> Vec<String> {
    let place = format!(" {} ", directory.display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let has = |process: &fs::DirEntry| {
        let mounts = fs::read_to_string(process.path().join("mountinfo"));
        mounts.is_ok_and(|mounts| mounts.contains(&place))
    };
    let named = |process: fs::DirEntry| {
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        format!("{} ({})", process.file_name().display(), name.trim())
    };
    processes.filter(has).map(named).collect()
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted && self.unmount().is_err() {
            // Processes that still use it keep it until they end.
            let paths = [self.directory.as_os_str()];
            let _ = run(&self.folder, "umount", &["--lazy", "--"], &paths);
        }
        // Without the claim it is freed now, else with its last user.
        if self.claim.is_some() {
            let _ = self.forget();
        }
        let _ = run(&self.folder, "losetup", &["-d"], &[self.device.as_os_str()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_printed_is_one_line_without_indents() {
        let printed = "mkfs.ext4: too big for a\n\tfilesystem with 0 blocks\n\n\tor lower it.\n\n";
        assert_eq!(
            end_of(printed),
            "mkfs.ext4: too big for a; filesystem with 0 blocks; or lower it."
        );
        let many: String = (0..20).map(|line| format!("{line}\n")).collect();
        assert_eq!(end_of(&many), "12; 13; 14; 15; 16; 17; 18; 19");
        assert_eq!(end_of(""), "");
    }
}
