//! The servers that are compared: each a process of its own with a Unix socket.

use crate::canned;
use crate::shared::{Failure, Process, program, ugeom, words};
use std::ops::Deref;
use std::path::Path;

/// The size of every export, bytes.
pub(crate) const EXPORT_BYTES: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    Ours,
    Canned,
    Nbdkit,
    Qemu,
}

impl ServerKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Ours => "ugeom",
            Self::Canned => "canned replies",
            Self::Nbdkit => "nbdkit memory",
            Self::Qemu => "qemu null-co",
        }
    }
}

/// A server that runs; it ends with this value.
pub(crate) struct Server {
    pub kind: ServerKind,
    process: Process,
}

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Server {
    /// Starts one, with random data where it keeps any; none when it is not installed.
    pub fn start(kind: ServerKind, folder: &Path) -> Result<Option<Self>, Failure> {
        let socket = folder.join(kind.word().replace(' ', "-"));
        let path = socket.display().to_string();
        let line: Vec<String> = match kind {
            ServerKind::Ours => ugeom(&socket, &["md:1g", "--rw"]),
            ServerKind::Canned => {
                let own = std::env::current_exe()?.display().to_string();
                words(&[&own, canned::WORD, &path])
            }
            ServerKind::Nbdkit => words(&["nbdkit", "-f", "-U", &path, "memory", "1G"]),
            ServerKind::Qemu => {
                let server = format!("addr.type=unix,addr.path={path}");
                words(&[
                    "qemu-storage-daemon",
                    "--blockdev",
                    "null-co,node-name=d,size=1073741824",
                    "--nbd-server",
                    &server,
                    "--export",
                    "type=nbd,id=e,node-name=d,name=",
                ])
            }
        };
        if !Path::new(&line[0]).is_file() && program(&line[0]).is_none() {
            return Ok(None);
        }
        let server = Self::run(kind, &line, &socket)?;
        if matches!(kind, ServerKind::Ours | ServerKind::Nbdkit) {
            server.fill(EXPORT_BYTES)?;
        }
        Ok(Some(server))
    }

    /// Starts a command and waits until it listens.
    pub fn run(kind: ServerKind, line: &[String], socket: &Path) -> Result<Self, Failure> {
        let process = Process::start(line, socket)?;
        Ok(Self { kind, process })
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.process.child.id()
    }

    /// Asks it to end, and waits for that.
    pub fn terminate(mut self) -> Result<(), Failure> {
        let id = i32::try_from(self.id())?;
        let id = rustix::process::Pid::from_raw(id).ok_or("no process")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        self.process.child.wait()?;
        Ok(())
    }
}
