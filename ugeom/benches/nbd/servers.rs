//! The servers that are compared: each a process of its own with a Unix socket.

use crate::{Failure, canned};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Delta, StackKnobs, Statistics};

/// What every server exports, bytes.
pub(crate) const EXPORT_BYTES: u64 = 1 << 30;

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Canned,
    Nbdkit,
    Qemu,
}

impl Kind {
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
    pub kind: Kind,
    child: Child,
    socket: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a program is.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.into_iter().find(|place| place.is_file())
}

/// `ugeom serve` with these arguments, listening to the socket.
pub(crate) fn ugeom(socket: &Path, arguments: &[&str]) -> Vec<String> {
    let listen = format!("unix:{}", socket.display());
    let own = [env!("CARGO_BIN_EXE_ugeom"), "serve", "--nbd", &listen];
    let all = own.iter().chain(arguments);
    all.map(|word| (*word).to_owned()).collect()
}

impl Server {
    /// Starts one, with random data where it keeps any; none when it is not installed.
    pub fn start(kind: Kind, folder: &Path) -> Result<Option<Self>, Failure> {
        let socket = folder.join(kind.word().replace(' ', "-"));
        let path = socket.display().to_string();
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let line: Vec<String> = match kind {
            Kind::Ours => ugeom(&socket, &["md:1g", "--rw"]),
            Kind::Canned => {
                let own = std::env::current_exe()?.display().to_string();
                text(&[&own, canned::WORD, &path])
            }
            Kind::Nbdkit => text(&["nbdkit", "-f", "-U", &path, "memory", "1G"]),
            Kind::Qemu => {
                let server = format!("addr.type=unix,addr.path={path}");
                text(&[
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
        let server = Self::run(kind, &line, socket)?;
        if matches!(kind, Kind::Ours | Kind::Nbdkit) {
            server.fill(EXPORT_BYTES)?;
        }
        Ok(Some(server))
    }

    /// Starts a command and waits until its socket is there.
    pub fn run(kind: Kind, line: &[String], socket: PathBuf) -> Result<Self, Failure> {
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("starting {}: {error}", line[0]))?;
        let mut server = Self {
            kind,
            child,
            socket,
        };
        let started = Instant::now();
        while !server.socket.exists() {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("{} ended with {status}", line[0]).into());
            }
            if started.elapsed() > Duration::from_secs(60) {
                return Err(format!("{} does not listen", line[0]).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // The socket exists before the server listens on it.
        std::thread::sleep(Duration::from_millis(50));
        Ok(server)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits for that.
    pub fn terminate(mut self) -> Result<(), Failure> {
        let id = i32::try_from(self.id())?;
        let id = rustix::process::Pid::from_raw(id).ok_or("no process")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }

    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// The export as the bottom of a stack of this process.
    pub fn target(&self) -> Result<Target, Failure> {
        self.export("")
    }

    /// An export by its name.
    pub fn export(&self, name: &str) -> Result<Target, Failure> {
        let options = TargetOptions {
            writable: true,
            knobs: StackKnobs {
                taste: false,
                statistics: Statistics::Off,
                ..StackKnobs::default()
            },
            ..TargetOptions::default()
        };
        let text = format!("nbd+unix:///{name}?socket={}", self.socket.display());
        Ok(open_target(&text, &options)?)
    }

    /// Writes random data to so many bytes of the top provider.
    pub fn fill(&self, bytes: u64) -> Result<(), Failure> {
        const STEP: u64 = 1 << 20;
        let target = self.target()?;
        let opened = target.stack.open(target.top, Delta::READ_WRITE)?;
        let mut channel = target.stack.channel(1)?;
        let mut random = fastrand::Rng::with_seed(1);
        let mut data = Buffer::new(STEP as usize);
        for at in (0..bytes).step_by(STEP as usize) {
            random.fill(&mut data[..]);
            channel.write(&opened, at, &data)?;
        }
        Ok(())
    }
}
