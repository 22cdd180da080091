//! Shared parts of the benches of servers: a server is a process that listens to a Unix socket.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Delta, Statistics};
use ugeom_testkit::Server;

/// The error of a bench.
pub(crate) type Failure = Box<dyn Error>;

/// How long a server may take until it listens.
const START_MAX: Duration = Duration::from_secs(60);

/// A server that runs; it is killed with this value.
pub(crate) struct Process {
    pub child: Server,
    pub socket: PathBuf,
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
    words(&[&own, arguments].concat())
}

/// The words of a command line, as a process takes them.
pub(crate) fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

impl Process {
    /// Starts a command and waits until it listens to its socket.
    pub fn start(line: &[String], socket: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = Server(child.map_err(|error| format!("starting {}: {error}", line[0]))?);
        let socket = socket.to_owned();
        let mut server = Self { child, socket };
        let started = Instant::now();
        while !listens(&server.socket)? {
            if let Some(status) = server.child.try_wait()? {
                return Err(format!("{} ended with {status}", line[0]).into());
            }
            if started.elapsed() > START_MAX {
                return Err(format!("{} does not listen", line[0]).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// Of the default export.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// The default export as the bottom of a stack of this process.
    pub fn target(&self) -> Result<Target, Failure> {
        self.export("")
    }

    pub fn export(&self, name: &str) -> Result<Target, Failure> {
        let mut options = TargetOptions::untasted();
        options.writable = true;
        options.knobs.statistics = Statistics::Off;
        let uri = self.uri().replace("///", &format!("///{name}"));
        Ok(open_target(&uri, &options)?)
    }

    /// Writes random data to so many bytes of the default export.
    pub fn fill(&self, bytes: u64) -> Result<(), Failure> {
        const STEP: u64 = 1 << 20;
        let target = self.target()?;
        let opened = target.open(Delta::READ_WRITE)?;
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

/// Whether a process listens to a Unix socket: it exists before that.
fn listens(socket: &Path) -> Result<bool, Failure> {
    // __SO_ACCEPTCON in include/linux/net.h of the kernel.
    const LISTENS: &str = "00010000";
    let all = std::fs::read_to_string("/proc/net/unix")?;
    let path = socket.display().to_string();
    Ok(all.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(3) == Some(LISTENS) && fields.nth(3) == Some(&path)
    }))
}
