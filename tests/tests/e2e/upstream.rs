//! An NBD server that loses unflushed writes when it is killed, and a plain client.

use crate::disks;
use crate::pki::certificates;
use crate::run::command as process;
use crate::run::words_of;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use ugeom_format::wire::nbd::{OptionHeader, Request, command, option};
use ugeom_testkit::{Server, program};

/// `nbdkit --filter=cache file`: it keeps writes in memory until FLUSH. It can be killed and
/// started again.
pub struct Upstream {
    nbdkit: PathBuf,
    folder: TempDir,
    /// The folders with certificates, if it speaks TLS only.
    certificates: Option<TempDir>,
    child: Server,
}

impl Upstream {
    /// `None`, after saying why, without nbdkit.
    pub fn start(bytes: u64) -> Option<Self> {
        Self::open(bytes, None)
    }

    /// The same over TLS; `None` without certtool, too.
    pub fn start_with_tls(bytes: u64) -> Option<Self> {
        Self::open(bytes, Some(certificates()?))
    }

    fn open(bytes: u64, certificates: Option<TempDir>) -> Option<Self> {
        let nbdkit = program("nbdkit")?;
        let folder = tempfile::tempdir().expect("a folder");
        let image = std::fs::File::create(folder.path().join("image")).expect("an image");
        image.set_len(bytes).expect("its size");
        let child = spawn(&nbdkit, folder.path(), certificates.as_ref());
        Some(Self {
            nbdkit,
            folder,
            certificates,
            child,
        })
    }

    /// The target that is served.
    pub fn target(&self) -> String {
        let socket = self.folder.path().join("up");
        let plain = format!("nbd+unix:///?socket={}", socket.display());
        match &self.certificates {
            None => plain,
            Some(folders) => {
                let pki = disks::at(folders, "pki");
                format!("{}&tls-certificates={pki}", plain.replace("nbd+", "nbds+"))
            }
        }
    }

    pub fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// SIGKILL, and its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it has ended");
    }

    pub fn start_again(&mut self) {
        let certificates = self.certificates.as_ref();
        self.child = spawn(&self.nbdkit, self.folder.path(), certificates);
    }
}

fn spawn(nbdkit: &Path, folder: &Path, certificates: Option<&TempDir>) -> Server {
    let place = |name: &str| disks::at(folder, name);
    for name in ["up", "pid"] {
        // Those of the one before, if there was one.
        let _ = std::fs::remove_file(place(name));
    }
    let (socket, pid, image) = (place("up"), place("pid"), place("image"));
    let all = format!("-f -P {pid} -U {socket} --filter=cache file {image}");
    let all = words_of(&all);
    let mut nbdkit = process(nbdkit, &all);
    if let Some(folders) = certificates {
        let pki = disks::at(folders, "pki");
        nbdkit.args(words_of(&format!(
            "--tls=require --tls-verify-peer --tls-certificates {pki}"
        )));
    }
    nbdkit.stdin(Stdio::null()).stdout(Stdio::null());
    let child = Server(nbdkit.stderr(Stdio::null()).spawn().expect("nbdkit"));
    while std::fs::read(&pid).map_or(true, |pid| pid.is_empty()) {
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

/// A connection to the default export.
pub fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.read_exact(&mut [0; 18])?;
    let (option, length) = (option::EXPORT_NAME, 0);
    let header = OptionHeader { option, length }.encode();
    stream.write_all(&[&3_u32.to_be_bytes()[..], &header].concat())?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}

/// Sends a request and waits for its reply; the error in it, 0 for none.
pub fn ask(
    stream: &mut UnixStream,
    kind: u16,
    flags: u16,
    at: u64,
    data: &[u8],
) -> std::io::Result<u32> {
    let request = Request {
        flags,
        command: kind,
        cookie: 0,
        offset_bytes: at,
        length_bytes: data.len() as u32,
    };
    stream.write_all(&[&request.encode()[..], data].concat())?;
    let mut reply = [0; 16];
    stream.read_exact(&mut reply)?;
    let mut error = [0; 4];
    error.copy_from_slice(&reply[4..8]);
    Ok(u32::from_be_bytes(error))
}

/// FLUSH; the error, 0 for none.
pub fn flush(stream: &mut UnixStream) -> u32 {
    ask(stream, command::FLUSH, 0, 0, &[]).expect("a reply")
}
