//! `cargo bench -p ugeom-serve --bench fuse`: reading files of a mount over both transports, beside
//! a bare null file system if `UGEOM_BARE_FUSE` names a program that serves one (called as
//! `PROGRAM DIR uring|classic N`, with N places a queue, or N threads; the file is DIR/null).
//!
//! The cells of a comparison run in turn, in another order each round, and are compared within
//! rounds. `fio` is the client at depth 32, where it is installed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ugeom_classes::{TargetOptions, open_target};
use ugeom_measure::ratio::log_ratio_paired;
use ugeom_serve::fuse::{Server, Settings, Transport};
use ugeom_serve::ranges::Ranges;

const ROUNDS: usize = 11;
/// How long a cell runs in a round.
const RUN: Duration = Duration::from_millis(60);
const SIZE: u64 = 1 << 30;

/// A mounted file, and what has to live for it.
struct Mounted {
    name: &'static str,
    file: PathBuf,
    _alive: Box<dyn std::any::Any>,
}

/// The bare server; ends with its mount.
struct Bare(Child, tempfile::TempDir);

impl Drop for Bare {
    fn drop(&mut self) {
        // A bench that is over has nobody to tell what could not be taken away.
        let _ = Command::new("umount").arg("-l").arg(self.1.path()).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ours(name: &'static str, transport: Transport) -> Result<Mounted, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let options = TargetOptions {
        writable: true,
        ..TargetOptions::default()
    };
    let target = open_target("md:1g", &options).map_err(|error| error.to_string())?;
    let settings = Settings {
        directory: folder.path().to_owned(),
        writable: true,
        only_top: false,
        transport,
        threads: 2,
        ranges: Ranges::default(),
        log: Arc::new(|line| eprintln!("{line}")),
        ended: Arc::new(|| {}),
    };
    let server = Server::start(&target.stack, &target.name, &settings);
    let server = server.map_err(|error| error.to_string())?;
    let file = folder.path().join("md0");
    fill(&file).map_err(|error| error.to_string())?;
    Ok(Mounted {
        name,
        file,
        _alive: Box::new((server, target, folder)),
    })
}

/// Data that is no hole, and a table with one partition that begins at sector 64.
fn fill(file: &Path) -> std::io::Result<()> {
    let file = File::options().write(true).open(file)?;
    let mut bytes = vec![0; 1 << 20];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    for at in 0..SIZE >> 20 {
        file.write_all_at(&bytes, at << 20)?;
    }
    let mut table = [0; 512];
    table[450] = 0x83;
    table[454..458].copy_from_slice(&64_u32.to_le_bytes());
    table[458..462].copy_from_slice(&1_000_000_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    file.write_all_at(&table, 0)
}

fn bare(name: &'static str, how: &str, count: &str) -> Result<Mounted, String> {
    let program = std::env::var("UGEOM_BARE_FUSE").map_err(|_| "not given".to_owned())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("null");
    let child = Command::new(program)
        .arg(folder.path())
        .args([how, count])
        .stderr(Stdio::null())
        .spawn();
    let bare = Bare(child.map_err(|error| error.to_string())?, folder);
    let patience = Instant::now() + Duration::from_secs(10);
    while !file.exists() {
        if Instant::now() > patience {
            return Err("it does not mount".to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Mounted {
        name,
        file,
        _alive: Box::new(bare),
    })
}

/// ns a read: `threads` of them read `size` bytes in random places of the first `span` bytes, or
/// one after another.
fn preads(file: &Path, size: usize, threads: u64, span: u64, sequential: bool) -> f64 {
    let begin = Instant::now();
    let readers = (0..threads).map(|seed| {
        let file = File::open(file).expect("the file");
        std::thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut bytes, mut count) = (vec![0; size], 0_u64);
            let places = span / size as u64;
            let begin = Instant::now();
            while begin.elapsed() < RUN {
                let place = if sequential {
                    count % places
                } else {
                    random.u64(..places)
                };
                file.read_exact_at(&mut bytes, place * size as u64)
                    .expect("data");
                count += 1;
            }
            count
        })
    });
    let readers: Vec<_> = readers.collect();
    let counts = readers.into_iter().map(|it| it.join().expect("a reader"));
    let count: u64 = counts.sum();
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// ns a round of the loop of 2002: seek to the start, read a sector.
fn seek_and_read(file: &Path) -> f64 {
    let mut file = File::open(file).expect("the file");
    let (mut bytes, mut count) = ([0; 512], 0_u64);
    let begin = Instant::now();
    while begin.elapsed() < RUN {
        file.seek(SeekFrom::Start(0)).expect("the start");
        file.read_exact(&mut bytes).expect("data");
        count += 1;
    }
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// ns a read of fio's, 32 at a time by io_uring; `None` where fio is not installed.
fn by_fio(file: &Path) -> Option<f64> {
    let output = Command::new("fio")
        .args([
            "--name=x",
            "--ioengine=io_uring",
            "--direct=1",
            "--iodepth=32",
        ])
        .args([
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--time_based",
            "--runtime=1",
        ])
        .args(["--minimal", "--thread"])
        .arg(format!("--filename={}", file.display()))
        .output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let per_second: f64 = text.split(';').nth(7)?.parse().ok()?;
    Some(1e9 / per_second)
}

/// Runs all cells in turn, and prints each, and its ratio to the base that was chosen for it.
fn compare(what: &str, cells: &[(&str, PathBuf, Option<&str>)], run: impl Fn(&Path) -> f64) {
    println!("\n== {what}");
    let mut order: Vec<usize> = (0..cells.len()).collect();
    let mut ns = vec![Vec::new(); cells.len()];
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..=ROUNDS {
        random.shuffle(&mut order);
        for &cell in &order {
            let took = run(&cells[cell].1);
            if round > 0 {
                ns[cell].push(took);
            }
        }
    }
    for ((name, _, base), took) in cells.iter().zip(&ns) {
        let mut sorted = took.clone();
        sorted.sort_by(f64::total_cmp);
        let base = base.and_then(|base| cells.iter().position(|cell| cell.0 == base));
        let ratio = base.map(|base| log_ratio_paired(took, &ns[base], 0.95));
        let ratio = match ratio {
            Some(Ok(it)) => {
                let it = it.interval;
                format!(
                    "  {:.3} ({:.3} to {:.3}) times its base",
                    it.estimate, it.low, it.high
                )
            }
            _ => String::new(),
        };
        println!("{name:<20} {:>10.0} ns{ratio}", sorted[sorted.len() / 2]);
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut mounted = Vec::new();
    for made in [
        ours("uring", Transport::Ring),
        ours("classic", Transport::Classic),
        bare("bare uring", "uring", "32"),
        bare("bare classic", "classic", "2"),
    ] {
        match made {
            Ok(it) => mounted.push(it),
            Err(error) => println!("left out: {error}"),
        }
    }
    let cell = |it: &Mounted| {
        let base = match it.name {
            "uring" => Some("bare uring"),
            "classic" => Some("bare classic"),
            _ => None,
        };
        (it.name, it.file.clone(), base)
    };
    let all: Vec<_> = mounted.iter().map(cell).collect();
    for size in [512, 4096] {
        // Within 1 MiB the data is in the processor's caches, as is that of a null file.
        for (span, what) in [(1 << 20, "1 MiB"), (SIZE, "1 GiB")] {
            let what = format!("pread, {size} bytes, 1 thread, within {what}");
            compare(&what, &all, |file| preads(file, size, 1, span, false));
        }
    }
    compare("pread, 4 KiB, 4 threads, within 1 GiB", &all, |file| {
        preads(file, 4096, 4, SIZE, false)
    });
    compare("pread, 1 MiB, one after another", &all, |file| {
        preads(file, 1 << 20, 1, SIZE, true)
    });
    for it in mounted.iter().filter(|it| it.file.ends_with("md0")) {
        let slice = it.file.with_file_name("md0s1");
        let pair = [
            ("md0", it.file.clone(), None),
            ("md0s1", slice, Some("md0")),
        ];
        compare(
            &format!("lseek and read, {}", it.name),
            &pair,
            seek_and_read,
        );
    }
    println!("\n== fio, io_uring, 4 KiB, depth 32");
    for round in 0..3 {
        for it in &mounted {
            match by_fio(&it.file) {
                Some(ns) => println!("{round} {:<20} {ns:>10.0} ns", it.name),
                None => println!("left out: fio is not installed"),
            }
        }
    }
}
