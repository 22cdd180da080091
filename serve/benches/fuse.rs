//! `cargo bench -p ugeom-serve --bench fuse [-- WORD...]`: reading files of a mount over both
//! transports, beside a null file system on libfuse (`null.c`, where its headers and a C compiler
//! are installed) and a bare one if `UGEOM_BARE_FUSE` names a program that serves one (called as
//! `PROGRAM DIR uring|classic N`, with N places a queue, or N threads; the file is DIR/null). With
//! words, only comparisons whose name holds one of them.
//!
//! A null file copies nothing, and we copy from 1 GiB of memory. So "uring, less the copy" is the
//! same time without that of copying as much from as large a memory, measured in the same round.
//!
//! The cases of a comparison run in turn, in another order each round, and are compared within
//! rounds. `fio` is the client where it is installed: 32 reads at a time by io_uring, and 4 jobs
//! that wait for each.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ugeom_classes::{TargetOptions, open_target};
use ugeom_format::Media;
use ugeom_format::plan::{Create, NewPart, Scheme, Table};
use ugeom_measure::ratio::log_ratio_paired;
use ugeom_serve::fuse::{Server, Settings, Transport};
use ugeom_serve::ranges::Ranges;
use ugeom_serve::shown::Shown;

/// How often the cases of a comparison run in turn. Many short runs, close to each other: what
/// else the machine does hits all of them alike.
const ROUNDS: usize = 40;
/// The same for the loop of 2002, whose cases differ by next to nothing.
const ROUNDS_OF_2002: usize = 500;
/// The same for fio, which is started anew each time.
const ROUNDS_OF_FIO: usize = 8;
/// How long a case runs in a round.
const RUN: Duration = Duration::from_millis(15);
/// The same for the loop of 2002.
const RUN_OF_2002: Duration = Duration::from_millis(5);
const SIZE: u64 = 1 << 30;

/// A mounted file, and what has to live for it.
struct Mounted {
    name: &'static str,
    file: PathBuf,
    _alive: Box<dyn std::any::Any>,
}

/// A null file system; ends with its mount. The folder stays until then.
struct Bare {
    child: Child,
    place: PathBuf,
    _folder: tempfile::TempDir,
}

impl Drop for Bare {
    fn drop(&mut self) {
        // A bench that is over cannot report what could not be unmounted.
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ours(name: &'static str, transport: Transport) -> Result<Mounted, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let options = TargetOptions::default().for_writing();
    let target = open_target("md:1g", &options).map_err(|error| error.to_string())?;
    let settings = Settings {
        allow_other: false,
        directory: folder.path().to_owned(),
        writable: true,
        transport,
        threads: 2,
        ranges: Ranges::default(),
        log: Arc::new(|line| eprintln!("{line}")),
        ended: Arc::new(|| {}),
    };
    let server = Server::start(&target.stack, &Shown::all(&*target.name), &settings);
    let server = server.map_err(|error| error.to_string())?;
    let file = folder.path().join("md0");
    fill(&file).map_err(|error| error.to_string())?;
    Ok(Mounted {
        name,
        file,
        _alive: Box::new((server, target, folder)),
    })
}

/// Data that is no hole, a slice that begins at sector 64, and in it a label.
fn fill(file: &Path) -> std::io::Result<()> {
    let file = File::options().write(true).open(file)?;
    let mut bytes = vec![0; 1 << 20];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    for at in 0..SIZE >> 20 {
        file.write_all_at(&bytes, at << 20)?;
    }
    let (sectors, first) = (SIZE / 512, 64);
    let mut slices = table(Scheme::Mbr, sectors).map_err(std::io::Error::other)?;
    let slice = NewPart {
        start: Some(first),
        sectors: Some(sectors - first),
        kind: "freebsd".to_owned(),
        ..NewPart::default()
    };
    slices.add(&slice).map_err(std::io::Error::other)?;
    let label = table(Scheme::Bsd, sectors - first).map_err(std::io::Error::other)?;
    for (first, table) in [(0, slices), (first, label)] {
        for write in table.encode() {
            file.write_all_at(&write.data, (first + write.lba) * 512)?;
        }
    }
    Ok(())
}

fn table(scheme: Scheme, sectors: u64) -> Result<Table, ugeom_format::plan::Error> {
    let media = Media::of_512(sectors);
    Table::create(scheme, media, &Create::default())
}

fn bare(name: &'static str, how: &str, count: &str) -> Result<Mounted, String> {
    let program = std::env::var("UGEOM_BARE_FUSE").map_err(|_| "not given".to_owned())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = folder.path().to_owned();
    let mut command = Command::new(program);
    command.arg(&place).args([how, count]);
    wait_for_null(name, command, folder, place)
}

/// The null file system on libfuse, built from the C beside this file.
fn on_libfuse() -> Result<Mounted, String> {
    let text = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(text)?;
    let (program, place) = (folder.path().join("program"), folder.path().join("mnt"));
    std::fs::create_dir(&place).map_err(text)?;
    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "fuse3"]);
    let flags = flags.output().map_err(text)?;
    if !flags.status.success() {
        return Err("libfuse: its headers are not installed (libfuse3-dev)".to_owned());
    }
    let built = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/null.c"))
        .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
        .status();
    if !built.map_err(text)?.success() {
        return Err("libfuse: the null file system cannot be built".to_owned());
    }
    let mut command = Command::new(&program);
    command.args(["-f", "-o", "clone_fd"]).arg(&place);
    wait_for_null("libfuse", command, folder, place)
}

/// Starts a null file system, and waits until its file is there.
fn wait_for_null(
    name: &'static str,
    mut command: Command,
    folder: tempfile::TempDir,
    place: PathBuf,
) -> Result<Mounted, String> {
    let child = command.stderr(Stdio::null()).spawn();
    let file = place.join("null");
    let bare = Bare {
        child: child.map_err(|error| error.to_string())?,
        place,
        _folder: folder,
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !file.exists() {
        if Instant::now() > deadline {
            return Err(format!("{name}: it does not mount"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Mounted {
        name,
        file,
        _alive: Box::new(bare),
    })
}

/// ns a copy of `size` bytes from random places of a memory of `span` bytes, or one after another.
fn copies(memory: &[u8], size: usize, span: u64, sequential: bool) -> f64 {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut bytes, mut count) = (vec![0; size], 0_u64);
    let places = span / size as u64;
    let begin = Instant::now();
    while begin.elapsed() < RUN / 4 {
        let place = if sequential {
            count % places
        } else {
            random.u64(..places)
        };
        let start = place as usize * size;
        bytes.copy_from_slice(&memory[start..start + size]);
        std::hint::black_box(&bytes);
        count += 1;
    }
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// ns a read: `threads` of them read `size` bytes in random places of the first `span` bytes, or
/// one after another.
fn preads(file: &Path, size: usize, threads: u64, span: u64, sequential: bool) -> f64 {
    let files = (0..threads).map(|_| File::open(file).expect("the file"));
    let files: Vec<File> = files.collect();
    let begin = Instant::now();
    let count: u64 = std::thread::scope(|scope| {
        let readers = files.iter().zip(0..).map(|(file, seed)| {
            scope.spawn(move || {
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
        counts.sum()
    });
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// ns a round of the loop of 2002: seek to the start, read a sector.
fn seek_and_read(file: &Path) -> f64 {
    let mut file = File::open(file).expect("the file");
    let (mut bytes, mut count) = ([0; 512], 0_u64);
    let begin = Instant::now();
    while begin.elapsed() < RUN_OF_2002 {
        file.seek(SeekFrom::Start(0)).expect("the start");
        file.read_exact(&mut bytes).expect("data");
        count += 1;
    }
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// Names of two ways to read with fio, and their arguments.
const BY_FIO: [(&str, &[&str]); 2] = [
    (
        "io_uring, depth 32",
        &["--ioengine=io_uring", "--iodepth=32"],
    ),
    (
        "psync, 4 jobs",
        &["--ioengine=psync", "--numjobs=4", "--group_reporting"],
    ),
];

/// ns a read of fio's; `None` when it prints no such figure.
fn by_fio(file: &Path, how: &[&str]) -> Option<f64> {
    let output = Command::new("fio")
        .args(["--name=x", "--direct=1", "--rw=randread", "--bs=4k"])
        .args(["--size=1g", "--time_based", "--runtime=1"])
        .args(["--minimal", "--thread"])
        .args(how)
        .arg(format!("--filename={}", file.display()))
        .output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let per_second: f64 = text.split(';').nth(7)?.parse().ok()?;
    Some(1e9 / per_second)
}

/// False for a comparison whose name holds none of the words of the command line, if it has any.
fn is_wanted(what: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|it| !it.starts_with('-'));
    let first = words.next();
    first.is_none_or(|first| what.contains(&first) || words.any(|it| what.contains(&it)))
}

/// A file, and the cases that it is compared with.
type Case<'a> = (&'a str, PathBuf, &'a [&'a str]);

/// Runs all cases in turn, and prints each, and its ratio to the bases that were chosen for it; the
/// same less the time of `copy`, which is run in the same rounds.
fn compare(
    what: &str,
    cases: &[Case<'_>],
    rounds: usize,
    copy: Option<&dyn Fn() -> f64>,
    run: impl Fn(&Path) -> f64,
) {
    if !is_wanted(what) {
        return;
    }
    println!("\n== {what}");
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let mut ns = vec![Vec::new(); cases.len()];
    let mut copied = Vec::new();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..=rounds {
        random.shuffle(&mut order);
        for &case in &order {
            let took = run(&cases[case].1);
            if round > 0 {
                ns[case].push(took);
            }
        }
        if round > 0 {
            copied.extend(copy.map(|copy| copy()));
        }
    }
    if !copied.is_empty() {
        println!("{:<20} {:>10.0} ns", "the copy alone", median(&copied));
    }
    for ((name, _, bases), took) in cases.iter().zip(&ns) {
        println!("{name:<20} {:>10.0} ns", median(took));
        for base in *bases {
            let Some(at) = cases.iter().position(|case| case.0 == *base) else { continue };
            println!("  {} {base}", ratio_of(took, &ns[at]));
            if !copied.is_empty() {
                let less = took.iter().zip(&copied).map(|(took, copy)| took - copy);
                let less: Vec<f64> = less.collect();
                println!("  {} {base}, less the copy", ratio_of(&less, &ns[at]));
            }
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn ratio_of(took: &[f64], base: &[f64]) -> String {
    match log_ratio_paired(took, base, 0.95) {
        Ok(ratio) => {
            let it = ratio.interval;
            format!("{:.3} ({:.3} to {:.3}) times", it.estimate, it.low, it.high)
        }
        Err(_) => String::new(),
    }
}

fn main() {
    if !ugeom_testkit::is_bench() {
        return;
    }
    let mut mounted = Vec::new();
    for made in [
        ours("uring", Transport::Ring),
        ours("classic", Transport::Classic),
        bare("bare uring", "uring", "32"),
        bare("bare classic", "classic", "2"),
        on_libfuse(),
    ] {
        match made {
            Ok(it) => mounted.push(it),
            Err(error) => println!("left out: {error}"),
        }
    }
    let all: Vec<_> = mounted.iter().map(case).collect();
    let mut memory = vec![0; SIZE as usize];
    fastrand::Rng::with_seed(5).fill(&mut memory);
    for size in [512, 4096] {
        // Within 1 MiB the data is in the processor's caches, as is that of a null file.
        for (span, what) in [(1 << 20, "1 MiB"), (SIZE, "1 GiB")] {
            let what = format!("pread, {size} bytes, 1 thread, within {what}");
            let copy = || copies(&memory, size, span, false);
            compare(&what, &all, ROUNDS, Some(&copy), |file| {
                preads(file, size, 1, span, false)
            });
        }
    }
    compare(
        "pread, 4 KiB, 4 threads, within 1 GiB",
        &all,
        ROUNDS,
        None,
        |file| preads(file, 4096, 4, SIZE, false),
    );
    let copy = || copies(&memory, 1 << 20, SIZE, true);
    compare(
        "pread, 1 MiB, one after another",
        &all,
        ROUNDS,
        Some(&copy),
        |file| preads(file, 1 << 20, 1, SIZE, true),
    );
    drop(memory);
    of_2002(&mounted);
    all_by_fio(&all);
}

fn case(it: &Mounted) -> Case<'_> {
    let bases: &[&str] = match it.name {
        "uring" => &["bare uring", "libfuse"],
        "classic" => &["bare classic", "libfuse"],
        _ => &[],
    };
    (it.name, it.file.clone(), bases)
}

/// The loop of 2002 on a disk, a slice of it and the label in that.
fn of_2002(mounted: &[Mounted]) {
    for it in mounted.iter().filter(|it| it.file.ends_with("md0")) {
        let inner = |name| -> Case<'_> { (name, it.file.with_file_name(name), &["md0"]) };
        let all = [
            ("md0", it.file.clone(), &[][..]),
            inner("md0s1"),
            inner("md0s1c"),
        ];
        compare(
            &format!("lseek and read, {}", it.name),
            &all,
            ROUNDS_OF_2002,
            None,
            seek_and_read,
        );
    }
}

fn all_by_fio(all: &[Case<'_>]) {
    let is_there = Command::new("fio").arg("--version").output().is_ok();
    if !is_there {
        return println!("left out: fio is not installed");
    }
    for (words, how) in BY_FIO {
        compare(
            &format!("fio, 4 KiB, {words}"),
            all,
            ROUNDS_OF_FIO,
            None,
            |file| by_fio(file, how).expect("what fio prints"),
        );
    }
}
