//! The leftovers of commands: daemons, mounts, loop devices, also after this process was killed.
//! This process makes no call that waits for its own FUSE server: a thread in such a call keeps
//! `/dev/fuse` open after SIGKILL, and the call never ends. Programs make these calls instead. When
//! this process is gone, the kernel ends the connection, so that the calls fail, and a shell that
//! reads from a pipe of this process cleans up.

use crate::error::{CrashError, os};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The variable in the environment of all processes that work for a folder.
pub(super) const MARK: &str = "UGEOM_CRASH_FOLDER";

/// The variable of losetup(8), which must not end between attaching a device and printing its name.
pub(super) const ATTACH_MARK: &str = "UGEOM_CRASH_ATTACH";
/// The file in the folder that names the loop device.
pub(super) const LOOP_FILE: &str = "loop";

/// Programs of the administrator are not in every user's path.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Waits for the end of its input, then ends the users of the folder `$1` and removes it. The file
/// behind a loop device is shown without the folder once the FUSE mount is detached, so the device
/// is known from the file `$4`; its name is compared with the file behind it, since another program
/// may have got the same device meanwhile.
const CLEANER: &str = r#"
trap '' HUP INT TERM
read -r _
folder=$1
tries=0
while tries=$((tries + 1)); test $tries -le 300; do
    left=
    if grep -alFs -e "$3=$folder" /proc/[0-9]*/environ; then
        sleep 0.05
        continue
    fi
    for pid in $(
        grep -alFs -e "$2=$folder" /proc/[0-9]*/environ | cut -d/ -f3
        find /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/fd -maxdepth 1 \
            \( -lname "$folder/mnt" -o -lname "$folder/mnt/*" \) | cut -d/ -f3
    ); do
        kill -9 "$pid" && left=1
    done
    umount -l "$folder/mnt"
    loops=
    if read -r device <"$folder/$4" &&
        read -r backing <"/sys/block/${device#/dev/}/loop/backing_file"; then
        case $backing in "$folder"/* | /disk)
            losetup -d "$device"
            loops=1 ;;
        esac
    fi
    if test -z "$loops"; then
        umount -l "$folder/files" || fusermount3 -u -z "$folder/files"
    fi
    if test -z "$left$loops" && ! grep -qF "$folder/" /proc/self/mounts; then
        rm -rf --one-file-system "$folder"
        exit
    fi
    sleep 0.1
done
"#;

/// A folder for mounts and sockets. When it is dropped, or this process ends, nothing that uses it
/// is left.
pub(super) struct MarkedFolder {
    cleaner: Child,
    folder: TempDir,
}

impl MarkedFolder {
    pub fn new() -> Result<Self, CrashError> {
        // Databases that refuse to run as root reach their files below it.
        let mode = Permissions::from_mode(0o711);
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix("ugeom-crash-").permissions(mode).tempdir();
        let folder = made.map_err(os("making", Path::new("a folder")))?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", CLEANER, "sh"]).arg(folder.path());
        shell.args([MARK, ATTACH_MARK, LOOP_FILE]);
        shell.env("PATH", PATH).current_dir("/");
        // Signals for the group of this process must not end it, too.
        shell.process_group(0).stdin(Stdio::piped());
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        let cleaner = shell.spawn();
        Ok(Self {
            cleaner: cleaner.map_err(os("starting", Path::new("/bin/sh")))?,
            folder,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for MarkedFolder {
    fn drop(&mut self) {
        // Waiting closes its input. Its exit code adds nothing: what it could not end stays.
        let _ = self.cleaner.wait();
    }
}

/// A moment, by the process that had been started last: later ones have larger numbers.
#[derive(Clone, Copy)]
pub(super) struct Since(i32);

impl Since {
    pub fn now() -> Self {
        Self(last_process().unwrap_or(0))
    }

    /// Processes since then have larger numbers than this. Numbers begin again from the smallest
    /// after the largest, and then any process may be meant.
    fn or_any(self) -> i32 {
        match last_process() {
            Some(last) if last >= self.0 => self.0,
            _ => 0,
        }
    }
}

/// The number of the process that was started last (proc_loadavg(5)).
fn last_process() -> Option<i32> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next_back()?.parse().ok()
}

/// Kills the processes that carry the mark of a folder and were started since that moment. Looking
/// at all processes of a busy machine would take longer than many a check.
pub(super) fn end_marked(folder: &Path, since: Since) {
    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    end_processes(since, |process| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|it| it == mark)
    });
}

/// Kills the processes with a directory or an open file below `place`, which is not touched.
pub(super) fn end_users(place: &Path) {
    let is_below = |link: &Path| fs::read_link(link).is_ok_and(|path| path.starts_with(place));
    end_processes(Since(0), |process| {
        let mut files = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        is_below(&process.join("cwd"))
            || is_below(&process.join("root"))
            || files.any(|file| is_below(&file.path()))
    });
}

/// Kills all processes since then but this one for which `is_meant` holds, given their folders in
/// `/proc`.
fn end_processes(since: Since, is_meant: impl Fn(&Path) -> bool) {
    let own = rustix::process::getpid();
    let since = since.or_any();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let name = process.file_name();
        let number = name.to_str().and_then(|text| text.parse().ok());
        let pid = number.and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|pid| *pid != own && pid.as_raw_nonzero().get() > since) else {
            continue;
        };
        // Taken before the look, so that the signal is for the process that was looked at.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if is_meant(&process.path()) {
            // It may have ended by itself meanwhile.
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
}
