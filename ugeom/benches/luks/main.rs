//! `cargo bench -p ugeom --bench luks`: servers of encrypted memory beside each other, all with
//! AES-256-XTS: this one with `eli`, qemu-nbd with a LUKS image, nbdkit with its filter `luks`.
//!
//! One client, the class `nbd`, reads from each in the same rounds. Programs that are not installed
//! are named and left out. Images lie in /dev/shm where there is one. Started as a test it reads
//! from this server only, for as short as it can.

#[path = "../shared/reads.rs"]
mod reads;
#[path = "../shared/mod.rs"]
mod shared;

use reads::iops;
use shared::{Failure, Process, program, ugeom, words};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use ugeom_classes::Target;
use ugeom_stack::{Channel, Delta, Opened};

/// Bytes of each export that are filled and read.
const BYTES: u64 = 48 << 20;
const ROUNDS: usize = 5;
const RUN: Duration = Duration::from_millis(500);
const PASSPHRASE: &str = "bench";

/// Request length, queue depth, whether places are random, and what it is called.
type Work = (usize, usize, bool, &'static str);

const WORKS: [Work; 2] = [
    (4 << 10, 32, true, "4 KiB random, queue depth 32"),
    (1 << 20, 4, false, "1 MiB sequential, queue depth 4"),
];

/// A server that runs, with a client; both end with this value, the client first.
struct Server {
    name: &'static str,
    channel: Channel,
    opened: Opened,
    /// Keeps what the client has opened.
    _target: Target,
    /// The server, which ends when this is dropped.
    _process: Process,
}

/// A LUKS image that both peers can open.
fn luks_image(path: &Path) -> Result<(), Failure> {
    let secret = format!("secret,id=s,data={PASSPHRASE}");
    let options = "key-secret=s,cipher-alg=aes-256,cipher-mode=xts,ivgen-alg=plain64,iter-time=10";
    let mut command = Command::new("qemu-img");
    command.args([
        "create", "-q", "-f", "luks", "--object", &secret, "-o", options,
    ]);
    let status = command.arg(path).arg("64M").status()?;
    status
        .success()
        .then_some(())
        .ok_or("qemu-img failed".into())
}

impl Server {
    /// Starts a command that listens to `socket`, and fills its export.
    fn start(name: &'static str, line: &[String], socket: &Path) -> Result<Self, Failure> {
        let process = Process::start(line, socket)?;
        process.fill(BYTES)?;
        let target = process.target()?;
        let opened = target.open(Delta::READ_WRITE)?;
        let channel = target.stack.channel(32)?;
        Ok(Self {
            name,
            channel,
            opened,
            _target: target,
            _process: process,
        })
    }

    /// Requests in a second.
    fn measure(&mut self, work: Work, run: Duration) -> Result<f64, Failure> {
        let (length, depth, random, _) = work;
        let places = BYTES / length as u64;
        let mut generator = fastrand::Rng::with_seed(2);
        let mut next = 0..;
        let place = || {
            let number = match random {
                true => generator.u64(..places),
                false => next.next().unwrap_or(0) % places,
            };
            number * length as u64
        };
        iops(&mut self.channel, &self.opened, (length, depth), run, place)
    }
}

/// All servers that can be had; the others are named.
fn servers(folder: &Path, as_bench: bool) -> Result<Vec<Server>, Failure> {
    let place = |name: &str| -> PathBuf { folder.join(name) };
    let text = |path: &Path| path.display().to_string();
    let mut servers = Vec::new();
    for (name, sector) in [
        ("ugeom, sectors of 4096 bytes", 4096),
        ("ugeom, sectors of 512 bytes", 512),
    ] {
        let socket = place(&format!("ours{sector}"));
        let target = format!("md:64m | eli:onetime=1,ealgo=aes-xts,keylen=256,sectorsize={sector}");
        let line = ugeom(&socket, &["--rw", &target]);
        servers.push(Server::start(name, &line, &socket)?);
    }
    if !as_bench {
        return Ok(servers);
    }
    if program("qemu-img").is_none() {
        println!("SKIP qemu-nbd, nbdkit: qemu-img, which makes their image, is not installed");
        return Ok(servers);
    }
    for name in ["qemu-nbd", "nbdkit"] {
        if program(name).is_none() {
            println!("SKIP {name}: it is not installed");
            continue;
        }
        let (image, socket) = (place(&format!("{name}.luks")), place(name));
        luks_image(&image)?;
        let (image, path) = (text(&image), text(&socket));
        let secret = format!("secret,id=s,data={PASSPHRASE}");
        let options = format!("driver=luks,key-secret=s,file.driver=file,file.filename={image}");
        let phrase = format!("passphrase={PASSPHRASE}");
        let line = match name {
            "qemu-nbd" => words(&[
                name,
                "-t",
                "-e",
                "4",
                "-k",
                &path,
                "--object",
                &secret,
                "--image-opts",
                &options,
            ]),
            _ => words(&[
                name,
                "-f",
                "-U",
                &path,
                "--filter=luks",
                "file",
                &image,
                &phrase,
            ]),
        };
        match Server::start(name, &line, &socket) {
            Ok(server) => servers.push(server),
            Err(error) => println!("SKIP {name}: {error}"),
        }
    }
    Ok(servers)
}

fn spread(figures: &[f64]) -> (f64, f64, f64) {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    (
        sorted[sorted.len() / 2],
        sorted[0],
        sorted[sorted.len() - 1],
    )
}

fn main() -> Result<(), Failure> {
    let as_bench = ugeom_testkit::is_bench();
    let (rounds, run) = match as_bench {
        true => (ROUNDS, RUN),
        false => (1, Duration::from_millis(1)),
    };
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory)?,
        false => tempfile::tempdir()?,
    };
    let mut servers = servers(folder.path(), as_bench)?;
    for work in WORKS {
        let mut rates = vec![Vec::new(); servers.len()];
        for _ in 0..rounds {
            for (server, rates) in servers.iter_mut().zip(&mut rates) {
                rates.push(server.measure(work, run)?);
            }
        }
        println!("{}, IOPS: median of {rounds} (lowest to highest)", work.3);
        for (server, rates) in servers.iter().zip(&rates) {
            let (median, low, high) = spread(rates);
            println!("  {:30} {median:.0} ({low:.0} to {high:.0})", server.name);
        }
        for (peer, theirs) in servers.iter().zip(&rates).skip(2) {
            for (ours, own) in servers.iter().zip(&rates).take(2) {
                let ratios: Vec<f64> = own.iter().zip(theirs).map(|(a, b)| a / b).collect();
                let (median, low, high) = spread(&ratios);
                let names = format!("{} / {}", ours.name, peer.name);
                println!("  {names}: {median:.2} ({low:.2} to {high:.2}) (goal: at least 2)");
            }
        }
    }
    Ok(())
}
