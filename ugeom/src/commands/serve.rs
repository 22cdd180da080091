//! `ugeom serve`: the providers of a target, to any program, over NBD and as files.

mod exports;
mod files;
mod limits;
mod metrics;
mod running;
mod sockets;
mod tls;

use crate::control::ControlArgs;
use crate::opening;
use crate::output;
use anyhow::{Context, Result};
use clap::Args;
use exports::Exports;
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc;
use ugeom_machine::temporary::PrivateFolder;
use ugeom_machine::{cpu, interrupt, open_files};
use ugeom_serve::control::Control;
use ugeom_serve::metrics::Metrics;
use ugeom_serve::nbd::{Address, Given, OnlyClient, Rule, Server, Settings};
use ugeom_serve::ranges::Ranges;

const LONG_ABOUT: &str = "\
Serves every provider of a target over NBD, the network block device protocol. Each provider is an \
export under its name; the top one, or the addressed one, is also the default export. qemu, \
nbdcopy, fio and the kernel's nbd-client can then use a partition of an image, or a stack of \
layers, like any other disk. With --fuse, each provider is a file of a mount. Several targets are \
served together; the default export is that of the first. NAME=TARGET serves the top of a target \
only, as NAME.

The server prints the URI of each address and the directory of --fuse as soon as clients can use \
them. On SIGTERM or Ctrl-C it answers the requests that it has read, flushes writes, and exits. \
--run starts a command with the URI in $uri and the directory in $mnt, and the server exits with \
it and with its exit code; a command that a signal ends early gives 130 or 143. --stdio serves \
one client on stdin and stdout. Sockets passed by systemd or by a client such as nbdcopy \
(LISTEN_FDS) are served, too.

Exports are read-only without --rw. With --rw, GEOM's rules apply: a disk cannot be opened for \
writing while a partition of it is in use, and its tables are read again after the last writer has \
closed it. `:ro` after the name of an export opens it read-only. Every client that reaches the \
address is served, unless --tls require --tls-verify-peer requires a certificate. `ugeom stat` \
shows the load and the cost of each layer; --metrics serves them for Prometheus. docs/serve.md has \
the details.";

const EXAMPLES: &str = "\
Examples:
  ugeom serve disk.img --nbd unix:/tmp/u.sock       # all partitions, read-only
  ugeom serve disk.img@s1a --run 'nbdcopy $uri a.img'  # copy one of them out
  ugeom serve md:1g --nbd tcp:localhost:10809 --rw  # a disk in memory
  ugeom serve disk.img --fuse /mnt/geom             # all partitions, as files
  ugeom serve root=a.img home=b.qcow2 --nbd unix:/tmp/u.sock  # by name
  ugeom serve 'disk.img | nop:delay=5ms' \\
      --run 'qemu-img bench -f raw $uri'            # a slow disk";

/// Serve the providers of a target to any program, over NBD and as files
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Serve {
    #[command(flatten)]
    targets: exports::ExportArgs,

    /// Address to listen on: unix:PATH or tcp:HOST:PORT (port 0: a free port); may be repeated
    #[arg(long, value_name = "ADDRESS")]
    nbd: Vec<String>,

    #[command(flatten)]
    sockets: sockets::SocketArgs,

    #[command(flatten)]
    tls: tls::TlsArgs,

    #[command(flatten)]
    files: files::FilesArgs,

    /// Let clients write; images are locked
    #[arg(long)]
    rw: bool,

    /// Refuse writes of clients: the default, for scripts that state it
    #[arg(short = 'r', long = "read-only", conflicts_with = "rw")]
    _read_only: bool,

    /// Run a shell command with the URI in $uri and the directory in $mnt, then exit; without --nbd
    /// and --fuse, serve a temporary socket
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,

    #[command(flatten)]
    limits: limits::LimitArgs,

    #[command(flatten)]
    control: ControlArgs,

    #[command(flatten)]
    metrics: metrics::MetricsArgs,

    /// Print URIs, control socket and exports as JSON
    #[arg(long, conflicts_with = "run")]
    json: bool,
}

#[derive(Serialize)]
struct Served {
    uris: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    /// The control socket, if there is one.
    control: Option<String>,
    /// Where the metrics are.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    writable: bool,
    exports: Vec<exports::Export>,
}

/// Why the server is to end.
enum End {
    Signal,
    /// The mount is gone, and nothing else is served.
    Unmounted,
    /// The client on stdin and stdout is gone.
    Client,
    /// The command of `--run` is over.
    Command,
}

impl Serve {
    pub fn run(&self) -> Result<()> {
        let mut given = Given {
            listening: sockets::passed()?,
            client: None,
        };
        let passed = !given.listening.is_empty();
        let stdio = self.sockets.stdio && !passed;
        if self.nbd.is_empty() && !stdio && !passed {
            self.check_without_addresses()?;
        }
        let (mut addresses, rules) = (self.addresses()?, self.tls.rules()?);
        // Lives as long as the server: its socket lies in there.
        let wanted = self.run.is_some() && addresses.is_empty() && !self.files.wanted() && !passed;
        let folder = if wanted {
            Some(PrivateFolder::create()?)
        } else {
            None
        };
        if let Some(folder) = &folder {
            addresses.push(Address::Unix(folder.socket("nbd")?));
        }
        let files_before = open_files::raise();
        let open = self.targets.open(self.rw)?;
        let signals = interrupt::end_signals().context("listening for signals")?;
        let (tell, ends) = mpsc::channel();
        let stdio = stdio.then(sockets::Stdio::take).transpose()?;
        given.client = stdio.as_ref().map(|stdio| {
            let tell = tell.clone();
            OnlyClient {
                socket: Arc::clone(&stdio.socket),
                ended: Arc::new(move || {
                    // The receiver is gone once all is over.
                    let _ = tell.send(End::Client);
                }),
            }
        });
        let servers = self.start(&open, (addresses, given, rules), &tell)?;
        let (what, target) = ((&open.stack, &open.shown), &self.targets.text());
        let metrics = self.metrics.start(what, target)?;
        let watched = (self.control.start(what, target, &servers.files)?, metrics);
        let told = tell.clone();
        let listening = std::thread::Builder::new().spawn(move || {
            // An end of the pipe would be a signal, too; and the receiver is gone once all is over.
            let _ = File::from(signals).read(&mut [0; 1]);
            let _ = told.send(End::Signal);
        });
        listening.context("starting a thread that listens for signals")?;
        let Some(command) = &self.run else {
            let silent = stdio.is_some() || (passed && !self.json);
            self.announce(&open, &servers, &watched, silent)?;
            let _ = ends.recv();
            servers.stop();
            if let Some(stdio) = stdio {
                stdio.finish();
            }
            return opening::ended(&open.stack, Ok(()));
        };
        let child = running::start(command, &servers)?;
        files_before.give_to(&child);
        let status = running::wait(child, &tell, &ends);
        servers.stop();
        let outcome = status.and_then(|(end, status)| running::judge(command, &end, status));
        opening::ended(&open.stack, outcome)
    }

    /// Refuses options that need an address for NBD where none is given: `--run` has its own
    /// socket, unless there are files.
    fn check_without_addresses(&self) -> Result<()> {
        let message = match self.tls.first_given().or(self.limits.first_given()) {
            Some(option) if self.files.wanted() => {
                format!("{option} has no effect on files; add --nbd ADDRESS")
            }
            _ if self.run.is_none() && !self.files.wanted() => {
                let doors = "--nbd ADDRESS, --fuse DIR, --run COMMAND and --stdio";
                format!("nothing to serve on: give at least one of {doors}")
            }
            _ => return Ok(()),
        };
        Err(crate::failure::Usage(message).into())
    }

    /// Where NBD is to be listened to.
    fn addresses(&self) -> Result<Vec<Address>> {
        let mut addresses = Vec::new();
        for text in &self.nbd {
            let address = text.parse::<Address>();
            let address = address.map_err(|error| crate::failure::Usage(error.to_string()))?;
            if addresses.contains(&address) {
                let message = format!("--nbd {text} is given twice");
                return Err(crate::failure::Usage(message).into());
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// Starts the wanted servers.
    fn start(
        &self,
        open: &Exports,
        (addresses, given, rules): (Vec<Address>, Given, Vec<Rule>),
        tell: &mpsc::Sender<End>,
    ) -> Result<Servers> {
        let Exports { stack, shown } = open;
        let ranges = Ranges::default();
        let alone = addresses.is_empty() && given.listening.is_empty() && given.client.is_none();
        let nbd = if alone {
            None
        } else {
            let mut settings = self.settings((addresses, given), ranges.clone());
            settings.tls = self.tls.open()?;
            settings.allow = rules;
            Some(Server::start(stack, shown, &settings)?)
        };
        let tell = tell.clone();
        let ended = move || {
            output::remark("fuse: another program has unmounted it");
            if alone {
                // The receiver is gone once all is over.
                let _ = tell.send(End::Unmounted);
            }
        };
        let settings = self.files.settings(self.rw, ranges, ended);
        let files = settings.map(|it| ugeom_serve::fuse::Server::start(stack, shown, &it));
        let files = files.transpose()?;
        if let Some(files) = &files {
            match self.files.asks_for_uring() {
                true => output::remark(&files.used().to_string()),
                false => log::debug!("{}", files.used()),
            }
        }
        Ok(Servers { nbd, files })
    }

    fn settings(&self, (addresses, given): (Vec<Address>, Given), ranges: Ranges) -> Settings {
        Settings {
            addresses,
            given,
            tls: None,
            allow: Vec::new(),
            writable: self.rw,
            threads: self.limits.threads(),
            spin: self.limits.spin(),
            limits: self.limits.limits(),
            ranges,
            log: Arc::new(|line| output::remark(&output::printable(line))),
        }
    }

    /// Prints the addresses; on stdout only where that is not for the client.
    fn announce(
        &self,
        open: &Exports,
        servers: &Servers,
        (control, metrics): &(Option<Control>, Option<Metrics>),
        silent: bool,
    ) -> Result<()> {
        let served = Served {
            uris: servers.uris().to_vec(),
            directory: servers.directory(),
            control: control
                .as_ref()
                .map(|control| control.path().display().to_string()),
            metrics: metrics.as_ref().map(|it| it.url().to_owned()),
            writable: self.rw,
            exports: open.list(self.rw),
        };
        if self.json {
            return output::print_json(&served);
        }
        output::remark(&format!("serving {}", exports::in_words(&served.exports)));
        if silent {
            return Ok(());
        }
        let directory = served.directory.map(|it| output::printable(&it));
        let lines = served.uris.into_iter().chain(directory);
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        output::print(&lines)
    }
}

/// The servers that run.
struct Servers {
    nbd: Option<Server>,
    files: Option<ugeom_serve::fuse::Server>,
}

impl Servers {
    fn uris(&self) -> &[String] {
        self.nbd.as_ref().map_or(&[], Server::uris)
    }

    /// The directory that is mounted on.
    fn directory(&self) -> Option<String> {
        let files = self.files.as_ref()?;
        Some(files.directory().display().to_string())
    }

    fn stop(self) {
        if let Some(files) = self.files {
            files.stop();
        }
        if let Some(nbd) = self.nbd {
            nbd.stop();
        }
    }
}

/// The cores that this process may use.
pub(super) fn cores() -> usize {
    cpu::Affinity::current().map_or(1, |cores| cores.cores().len().max(1))
}
