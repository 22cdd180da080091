//! The mount point: looked at before it is used, mounted by the system call or through
//! `fusermount3`, and unmounted again.

use super::error::FuseError;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::ffi::CString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use ugeom_machine::block_device::System;
use ugeom_machine::{fuse, mounts};

/// The program that mounts without root (fusermount3(1)).
const HELPER: &str = "fusermount3";

/// The configuration of fusermount3(1), with its permissions.
const CONFIGURATION: &str = "/etc/fuse.conf";

/// How long a mount whose server was killed may take to go, before it is said to have to be taken
/// away by hand, and how often that is looked at.
const GOING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// The script of a guard, with the directory as its argument: it waits for the end of its input,
/// and unmounts if its server is gone.
const GUARD_OF_ROOT: &str = r#"read -r _; [ -e "$1" ] || umount -l "$1""#;
const GUARD: &str = r#"read -r _; [ -e "$1" ] || fusermount3 -u -z -- "$1""#;

/// A directory that is mounted on.
pub(super) struct Mount {
    directory: PathBuf,
    /// By the system call, and not by the program.
    by_call: bool,
    mounted: bool,
    _guard: Option<Guard>,
}

/// A shell that takes the mount away when this process is killed. Its input is a pipe, of which
/// no other process has the other end.
struct Guard(Child);

impl Guard {
    /// None where there is no shell.
    fn of(directory: &Path, by_call: bool) -> Option<Self> {
        let script = if by_call { GUARD_OF_ROOT } else { GUARD };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "ugeom-guard"]).arg(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        // Ctrl-C is for the server alone.
        command.stderr(Stdio::null()).process_group(0);
        command.spawn().ok().map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The mount is gone by now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a mount was unmounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// No program had it open.
    Now,
    /// Still in use: no new user finds it.
    InUse,
    /// It was gone before.
    Before,
}

/// Looks whether a directory can be mounted on, and gives its full path.
pub(super) fn check(directory: &Path) -> Result<PathBuf, FuseError> {
    let problem = |problem: &str| FuseError::Place {
        directory: directory.to_owned(),
        problem: problem.to_owned(),
    };
    let shown = directory.display();
    let began = Instant::now();
    let mut found = std::fs::metadata(directory);
    while found.as_ref().is_err_and(is_dead) && began.elapsed() < GOING {
        std::thread::sleep(LOOK);
        found = std::fs::metadata(directory);
    }
    let found = match found {
        Ok(found) => found,
        Err(error) if is_dead(&error) => {
            return Err(problem(&format!(
                "the server of this mount has ended; unmount it with `{HELPER} -u {shown}`, or \
                 as root with `umount {shown}`"
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(problem("there is no such directory; make it first"));
        }
        Err(error) => return Err(problem(&error.to_string())),
    };
    if !found.is_dir() {
        return Err(problem("it is not a directory"));
    }
    let path = directory.canonicalize();
    let path = path.map_err(|error| problem(&error.to_string()))?;
    if let Some(mount) = on_path(&path) {
        return Err(problem(&format!(
            "a file system ({}) is mounted here already",
            mount.kind
        )));
    }
    let entries = std::fs::read_dir(&path);
    let mut entries = entries.map_err(|error| problem(&format!("it cannot be listed: {error}")))?;
    if entries.next().is_some() {
        return Err(problem("it is not empty; a mount would hide its files"));
    }
    Ok(path)
}

/// Whether an error is that of a mount whose server is gone, or is just going.
fn is_dead(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOTCONN | Errno::CONNABORTED))
}

/// The uppermost mount on a path.
fn on_path(path: &Path) -> Option<mounts::Mount> {
    let all = System::default().mounts();
    all.into_iter().rfind(|mount| mount.point == path)
}

impl Mount {
    /// Mounts on a directory that was checked, and gives the descriptor that stands for it.
    pub fn new(
        directory: PathBuf,
        writable: bool,
        allow_other: bool,
    ) -> Result<(Self, OwnedFd), FuseError> {
        let called = if rustix::process::geteuid().is_root() {
            by_call(&directory, writable, allow_other)
        } else {
            Err(Errno::PERM.into())
        };
        let (by_call, device) = match called {
            Ok(device) => (true, device),
            // Root of a container may lack the right, too; the helper has it or says what is wrong.
            Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => {
                (false, by_helper(&directory, writable, allow_other)?)
            }
            Err(error) => {
                let problem = match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::NOENT | Errno::NODEV) => {
                        "this kernel has no FUSE (`modprobe fuse`)"
                    }
                    _ => "the system refuses it",
                };
                return Err(FuseError::Mount {
                    directory,
                    problem: problem.to_owned(),
                    source: Some(error),
                });
            }
        };
        let mount = Self {
            _guard: Guard::of(&directory, by_call),
            directory,
            by_call,
            mounted: true,
        };
        Ok((mount, device))
    }

    /// The directory on which the files are mounted.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number of the kernel's connection: the minor number of the mount's device.
    pub fn connection(&self) -> Option<u32> {
        on_path(&self.directory).map(|mount| mount.number.1)
    }

    /// Takes the mount away, at once if it is unused.
    pub fn take_away(&mut self) -> Gone {
        if !std::mem::replace(&mut self.mounted, false) {
            return Gone::Before;
        }
        let lazily = || {
            if self.by_call {
                rustix::mount::unmount(&self.directory, UnmountFlags::DETACH).is_ok()
            } else {
                self.unmount_by_helper(&["-u", "-z"])
            }
        };
        let now = if self.by_call {
            rustix::mount::unmount(&self.directory, UnmountFlags::NOFOLLOW).is_ok()
        } else {
            self.unmount_by_helper(&["-u"])
        };
        if now {
            return Gone::Now;
        }
        if lazily() { Gone::InUse } else { Gone::Before }
    }

    fn unmount_by_helper(&self, how: &[&str]) -> bool {
        let mut command = Command::new(HELPER);
        command.args(how).arg("--").arg(&self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // An error about a busy mount is expected: the next attempt is a lazy one.
        command.stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// The option that lets other users use the mount.
fn others(allow_other: bool) -> &'static str {
    if allow_other { ",allow_other" } else { "" }
}

/// Whether fuse.conf lets users who are not root let others in (fusermount3(1)).
fn allows_other(configuration: &str) -> bool {
    let mut lines = configuration.lines().map(str::trim);
    lines.any(|line| line == "user_allow_other")
}

/// Mounts by mount(2), which needs root.
fn by_call(directory: &Path, writable: bool, allow_other: bool) -> io::Result<OwnedFd> {
    let device = fuse::open(false)?;
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions{}",
        device.as_raw_fd(),
        uid.as_raw(),
        gid.as_raw(),
        others(allow_other)
    );
    let options = CString::new(options)?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    flags.set(MountFlags::RDONLY, !writable);
    rustix::mount::mount(
        "ugeom",
        directory,
        "fuse.ugeom",
        flags,
        Some(options.as_c_str()),
    )?;
    Ok(device)
}

/// fusermount3(1), which sends the descriptor back through the socket that it finds as its input.
fn by_helper(directory: &Path, writable: bool, allow_other: bool) -> Result<OwnedFd, FuseError> {
    let configuration = std::fs::read_to_string(CONFIGURATION).unwrap_or_default();
    let is_root = rustix::process::getuid().is_root();
    if allow_other && !is_root && !allows_other(&configuration) {
        return Err(FuseError::Mount {
            directory: directory.to_owned(),
            problem: format!(
                "--allow-other needs root, or the line `user_allow_other` in {CONFIGURATION}"
            ),
            source: None,
        });
    }
    let system = |source: Errno| FuseError::system("making a socket for fusermount3", source);
    let (ours, theirs) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .map_err(system)?;
    let mode = if writable { "rw" } else { "ro" };
    let others = others(allow_other);
    let options =
        format!("{mode},nosuid,nodev,fsname=ugeom,subtype=ugeom,default_permissions{others}");
    let failed = |problem: String, source: Option<io::Error>| FuseError::Mount {
        directory: directory.to_owned(),
        problem,
        source,
    };
    let mut command = Command::new(HELPER);
    command.args(["-o", &options, "--"]).arg(directory);
    command.env("_FUSE_COMMFD", "0").stdin(Stdio::from(theirs));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| {
        let problem = format!("mounting without root needs {HELPER}, which cannot be started");
        failed(problem, Some(error))
    })?;
    // The command keeps the other end of the socket open until it is dropped.
    drop(command);
    let device = receive(&ours);
    let output = child.wait_with_output();
    let said = output.map(|it| String::from_utf8_lossy(&it.stderr).trim().to_owned());
    match device {
        Ok(Some(device)) => Ok(device),
        Ok(None) => Err(failed(said.unwrap_or_default(), None)),
        Err(error) => Err(failed(format!("{HELPER} sent nothing"), Some(error.into()))),
    }
}

/// The descriptor that a socket brings; `None` when the other side has closed without one.
fn receive(socket: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        let mut pieces = [IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(socket, &mut pieces, &mut control, flags) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.find_map(|mut it| it.next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_users_are_let_in_only_where_the_configuration_says_so() {
        assert!(allows_other(
            "# users\nmount_max = 1000\n user_allow_other \n"
        ));
        assert!(!allows_other("#user_allow_other\nmount_max = 1\n"));
        assert!(!allows_other(""));
    }
}
