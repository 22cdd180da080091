//! Sockets that `ugeom serve` does not open itself: those of a service manager, and a client on
//! stdin and stdout.

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::net::{Shutdown, SocketType, sockopt};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::net::Shutdown as StreamShutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use ugeom_machine::inherited;

/// Bytes copied at a time.
const COPY_BYTES: usize = 256 << 10;

#[derive(Args)]
pub struct SocketArgs {
    /// Serve one NBD client on stdin and stdout, then exit; no effect with sockets from LISTEN_FDS
    #[arg(short = 's', long, conflicts_with_all = ["nbd", "run", "json", "fuse"])]
    pub stdio: bool,
}

/// The listeners that a service manager has passed.
pub fn passed() -> Result<Vec<Arc<OwnedFd>>> {
    let taken = inherited::take().context("taking the sockets that LISTEN_FDS announces")?;
    Ok(taken.into_iter().map(|it| Arc::new(it.fd)).collect())
}

/// The client on stdin and stdout.
pub struct Stdio {
    pub socket: Arc<OwnedFd>,
    /// Copies replies to stdout, where that is no socket.
    replies: Option<JoinHandle<()>>,
}

impl Stdio {
    /// Takes stdin and stdout: the socket that both are, or a pair of sockets between which and
    /// them threads copy.
    pub fn take() -> Result<Self> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        if stdin.is_terminal() || stdout.is_terminal() {
            bail!(
                "--stdio serves an NBD client on stdin and stdout, and one of them is a terminal"
            );
        }
        let input = stdin.as_fd().try_clone_to_owned().context("using stdin")?;
        let output = stdout
            .as_fd()
            .try_clone_to_owned()
            .context("using stdout")?;
        if is_one_socket(&input, &output) {
            let set = rustix::io::ioctl_fionbio(&input, true);
            set.context("preparing stdin")?;
            let (socket, replies) = (Arc::new(input), None);
            return Ok(Self { socket, replies });
        }
        let (ours, theirs) = UnixStream::pair().context("making a pair of sockets")?;
        theirs.set_nonblocking(true).context("preparing a socket")?;
        let mut to_server = ours.try_clone().context("copying a socket")?;
        let spawn = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let requests = spawn("ugeom-stdin").spawn(move || {
            // An error is the end, as seen by the server.
            copy(&mut File::from(input), &mut to_server);
            let _ = to_server.shutdown(StreamShutdown::Write);
        });
        requests.context("starting a thread that reads stdin")?;
        let mut from_server = ours;
        let replies = spawn("ugeom-stdout").spawn(move || {
            copy(&mut from_server, &mut File::from(output));
            let _ = from_server.shutdown(StreamShutdown::Both);
        });
        let replies = replies.context("starting a thread that writes stdout")?;
        Ok(Self {
            socket: Arc::new(theirs.into()),
            replies: Some(replies),
        })
    }

    /// Waits until the last reply is on its way. The server has ended.
    pub fn finish(self) {
        if let Some(replies) = self.replies {
            // The client may have closed it already.
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
            // The thread does nothing that could panic.
            let _ = replies.join();
        }
    }
}

/// Copies until either side ends, by read(2) and write(2). The standard library would take
/// splice(2), after which the server was not always woken (a pipe into a Unix socket).
fn copy(from: &mut impl Read, to: &mut impl Write) {
    let mut bytes = vec![0; COPY_BYTES];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) if to.write_all(&bytes[..count]).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

fn is_one_socket(input: &OwnedFd, output: &OwnedFd) -> bool {
    let place = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    sockopt::socket_type(input) == Ok(SocketType::STREAM)
        && place(input).is_ok_and(|input| place(output) == Ok(input))
}
