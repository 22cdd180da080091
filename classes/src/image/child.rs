//! An image that qemu opens: `qemu-nbd` as a private child, reached over a socket that nothing else
//! can reach.
//!
//! The socket lies in a folder of this user alone, and is opened and removed from it as soon as the
//! child listens: later connections go through the open descriptor. So no other program finds the
//! socket. The next process removes the leftovers of one that was killed before then
//! (`machine::temporary`). The child ends with the stack, and with the process (`machine::child`).

use super::cut::warn_of;
use super::{ImageFormat, Settings, malformed};
use crate::build::{BuildContext, BuildError};
use crate::nbd::{self, Private};
use crate::path::{path_of, text_of};
use crate::presence::Presence;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use ugeom_format::wire::nbd::GREETING_BYTES;
use ugeom_machine::child::TiedChild;
use ugeom_machine::temporary::PrivateFolder;
use ugeom_stack::Plan;

const PROGRAM: &str = "qemu-nbd";
/// How long it may take to open an image: repairing one after a crash reads all its tables.
const STARTING: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

/// The owner of a child's stack: dropping it ends the child.
struct Running {
    _child: TiedChild,
    /// The socket, which has no name any more.
    _socket: OwnedFd,
    /// Keeps others from holding or mounting the block device that the image is on.
    _device: Option<OwnedFd>,
}

/// Starts qemu-nbd on a node of its block layer, and connects to it.
///
/// # Errors
/// qemu-nbd is missing, or refuses the image.
pub(super) fn plan(
    context: &BuildContext<'_>,
    settings: &Settings<'_>,
    node: &Value,
) -> Result<Plan, BuildError> {
    let writable = context.writable();
    let device = held(settings, writable)?;
    let made = PrivateFolder::create().and_then(|folder| Ok((folder.socket("nbd")?, folder)));
    let (socket, _folder) =
        made.map_err(BuildError::system("file", "making a socket for qemu-nbd"))?;
    let mut command = Command::new(PROGRAM);
    // Not --discard=unmap: qemu 10.0 then loses the count of a cluster that is freed by one request
    // and allocated by another at the same time, and the next writer gives it away.
    command
        .args(["--persistent", "--shared=0", "--export-name="])
        .args(["--cache=writeback", "--discard=ignore"])
        .arg(format!("--socket={}", socket.display()));
    if !writable {
        command.arg("--read-only");
    }
    command.arg(format!("json:{node}"));
    let child = TiedChild::start(command).map_err(|error| not_started(settings, error))?;
    let socket = listening(settings, &child, &socket)?;
    let place = PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()));
    let mut config = super::facts(settings);
    config.push(("driver", PROGRAM.to_owned()));
    nbd::private(Private {
        name: settings.name.clone(),
        socket: place,
        sector_bytes: settings.sector_bytes,
        writable,
        config,
        presence: writable.then(|| Presence::watch(settings.path)).flatten(),
        keeps: Box::new(Running {
            _child: child,
            _socket: socket,
            _device: device,
        }),
    })
    .map_err(|problem| BuildError::refused(settings.path, problem))
}

/// Holds the block device that an image is on.
///
/// # Errors
/// It is held already, and the image is not to be shared.
fn held(settings: &Settings<'_>, writable: bool) -> Result<Option<OwnedFd>, BuildError> {
    let path = path_of(settings.path);
    if settings.shared || !is_block_device(&path) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(device) => Ok(Some(device)),
        Err(Errno::BUSY) => {
            let help = match writable {
                true => "",
                false => " (shared=1 reads it anyway)",
            };
            let problem = format!("is in use: mounted, or held by another process{help}");
            Err(BuildError::refused(settings.path, problem))
        }
        Err(errno) => Err(BuildError::open(settings.path)(errno)),
    }
}

fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_block_device())
}

fn not_started(settings: &Settings<'_>, error: io::Error) -> BuildError {
    if error.kind() == io::ErrorKind::NotFound {
        let problem = format!(
            "a {} image{} is read by {PROGRAM}, which is not installed (Debian: qemu-utils)",
            settings.format.name(),
            // Only these two have kinds that are read without it.
            match settings.format {
                ImageFormat::Qcow2 | ImageFormat::Vhd => " of this kind",
                _ => "",
            }
        );
        return BuildError::refused(settings.path, problem);
    }
    BuildError::system("file", "starting qemu-nbd")(error)
}

/// Waits until the child listens; returns the socket.
fn listening(
    settings: &Settings<'_>,
    child: &TiedChild,
    path: &Path,
) -> Result<OwnedFd, BuildError> {
    let began = Instant::now();
    loop {
        if let Some(ended) = child.ended() {
            let problem = reason(&ended.stderr);
            let is_sound = [" lock", "encrypt"]
                .iter()
                .any(|word| problem.contains(word));
            return Err(match is_sound {
                true => BuildError::refused(settings.path, problem),
                false => malformed(settings.path, &problem),
            });
        }
        if is_greeted(path) {
            let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            return opened.map_err(BuildError::system("file", "opening the socket of qemu-nbd"));
        }
        if began.elapsed() > STARTING {
            let problem = format!(
                "{PROGRAM} has not opened it within {} s",
                STARTING.as_secs()
            );
            return Err(BuildError::refused(settings.path, problem));
        }
        std::thread::sleep(LOOK);
    }
}

/// The socket is there before the image is opened; once it is, a connection is greeted.
fn is_greeted(path: &Path) -> bool {
    let greeted = UnixStream::connect(path).and_then(|mut stream| {
        stream.set_read_timeout(Some(STARTING))?;
        stream.read_exact(&mut [0; GREETING_BYTES])
    });
    greeted.is_ok()
}

/// The message of qemu-nbd, without its name and the text of the node.
fn reason(stderr: &str) -> String {
    let line = stderr.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("it ended without a message");
    let line = line.strip_prefix("qemu-nbd: ").unwrap_or(line);
    let text = match line.strip_prefix("Failed to blk_new_open 'json:") {
        Some(rest) => rest.split_once("': ").map_or(rest, |(_, reason)| reason),
        None => line,
    };
    format!("{PROGRAM} refuses it: {text}")
}

/// The node that opens an image and no other file; `vmdk`, `older` and `chain` make those of more
/// files.
///
/// # Errors
/// There is no such file.
pub(super) fn node(settings: &Settings<'_>) -> Result<Value, BuildError> {
    let path = real_path(settings.path)?;
    let driver = match settings.format {
        ImageFormat::Vhd => "vpc",
        other => other.name(),
    };
    warn_of(settings.path, &path, settings.format);
    let file = file_node(&path, !settings.shared)?;
    Ok(json!({ "driver": driver, "file": file }))
}

/// Where a file really is, without symbolic links.
pub(super) fn real_path(shown: &str) -> Result<PathBuf, BuildError> {
    std::fs::canonicalize(path_of(shown)).map_err(BuildError::os("finding", shown))
}

/// A file as qemu's block layer takes it.
///
/// # Errors
/// The path is not UTF-8, which a node of qemu has to be.
pub(super) fn file_node(path: &Path, locked: bool) -> Result<Value, BuildError> {
    let Some(name) = path.to_str() else {
        let problem = format!("{PROGRAM} reads it, and accepts only UTF-8 paths");
        return Err(BuildError::refused(&text_of(path), problem));
    };
    let locking = if locked { "auto" } else { "off" };
    let driver = match is_block_device(path) {
        true => "host_device",
        false => "file",
    };
    Ok(json!({ "driver": driver, "filename": name, "locking": locking }))
}

/// The first bytes of a file.
pub(super) fn start_of(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(bytes).read_to_end(&mut start)?;
    Ok(start)
}
