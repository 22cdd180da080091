//! `cargo bench -p ugeom-classes --bench eli`: the cost of encryption, beside `openssl speed` in
//! the same rounds.
//!
//! An argument names the sections to run: `xts`, `cores`, `latency`, `tags`, `large`.

use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use ugeom_classes::eli::crypt::{Backend, ByteOrder, Crypt};
use ugeom_classes::eli::keys::MasterKey;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_format::eli::{Cipher, Metadata};
use ugeom_stack::{Channel, Delta, Opened};

/// Rounds of each section; all figures are medians, with the lowest and the highest.
const ROUNDS: usize = 9;
/// Length of one measurement.
const RUN: Duration = Duration::from_millis(300);
/// Size of the memory disk, which the processor's caches hold in part.
const MEDIA_BYTES: u64 = 16 << 20;
const LATENCY_BYTES: u64 = 1 << 20;

/// A layer that is open.
struct Disk {
    _target: Target,
    opened: Opened,
    channel: Channel,
    media_bytes: u64,
}

impl Disk {
    /// `eli` with these options over memory, every sector of it written.
    fn new(options: &str, bytes: u64) -> Self {
        Self::of_cipher("ealgo=aes-xts,keylen=256", options, bytes)
    }

    /// The same with another cipher.
    fn of_cipher(cipher: &str, options: &str, bytes: u64) -> Self {
        let text = format!("md:{bytes} | eli:onetime=1,{cipher},{options}");
        let settings = TargetOptions::default().for_writing();
        let target = open_target(&text, &settings).expect("a target");
        let opened = target.open(Delta::READ_WRITE).expect("opens");
        let mut channel = target.stack.channel(1).expect("a channel");
        let media_bytes = opened.view().expect("it is there").mediasize_bytes;
        let chunk = vec![7; 64 << 10];
        for offset in (0..media_bytes).step_by(chunk.len()) {
            let length = chunk.len().min((media_bytes - offset) as usize);
            channel
                .write(&opened, offset, &chunk[..length])
                .expect("writes");
        }
        Self {
            _target: target,
            opened,
            channel,
            media_bytes,
        }
    }

    /// Reads of that length one after the other, GB in a second of CPU time.
    fn read(&mut self, length: usize) -> f64 {
        self.read_by(cpu_time, length)
    }

    /// The same by another clock.
    fn read_by(&mut self, clock: fn() -> Duration, length: usize) -> f64 {
        let mut data = vec![0; length];
        let places = self.media_bytes / length as u64;
        timed(clock, length, |number| {
            let offset = number % places * length as u64;
            self.channel
                .read(&self.opened, offset, &mut data)
                .expect("reads");
        })
    }
}

/// Time that passes, for what several threads do.
fn wall_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// CPU time of this thread, as `openssl speed` counts: other programs that run do not count.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// GB in a second of CPU time, of calls that do `length` bytes each.
fn throughput(length: usize, call: impl FnMut(u64)) -> f64 {
    timed(cpu_time, length, call)
}

/// The same in a second of any clock.
fn timed(clock: fn() -> Duration, length: usize, mut call: impl FnMut(u64)) -> f64 {
    let (begin, mut calls) = (clock(), 0);
    while clock() - begin < RUN {
        for _ in 0..16 {
            call(calls);
            calls += 1;
        }
    }
    (calls * length as u64) as f64 / (clock() - begin).as_secs_f64() / 1e9
}

/// GB/s of `openssl speed` on blocks of 4096 bytes; `None` where there is none.
fn openssl(algorithm: &str) -> Option<f64> {
    let arguments = [
        "speed", "-mr", "-seconds", "1", "-bytes", "4096", "-evp", algorithm,
    ];
    let output = Command::new("openssl").args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `+F:22:AES-256-XTS:7612345678.90`, bytes a second.
    let line = text.lines().find(|line| line.starts_with("+F:"))?;
    let figure: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    Some(figure / 1e9)
}

/// Figures of the same rounds.
struct Figures {
    unit: &'static str,
    rows: Vec<(String, Vec<f64>)>,
}

impl Figures {
    fn new(unit: &'static str) -> Self {
        Self {
            unit,
            rows: Vec::new(),
        }
    }

    fn add(&mut self, name: &str, figure: f64) {
        match self.rows.iter_mut().find(|(known, _)| known == name) {
            Some((_, all)) => all.push(figure),
            None => self.rows.push((name.to_owned(), vec![figure])),
        }
    }

    fn print(&self) {
        for (name, figures) in &self.rows {
            println!("  {name:44} {} {}", spread(figures), self.unit);
        }
    }

    /// The ratio of two rows, round by round.
    fn ratio(&self, above: &str, below: &str, goal: &str) {
        let of = |wanted: &str| self.rows.iter().find(|(name, _)| name == wanted);
        let (Some((_, above_all)), Some((_, below_all))) = (of(above), of(below)) else { return };
        let ratios: Vec<f64> = above_all
            .iter()
            .zip(below_all)
            .map(|(a, b)| a / b)
            .collect();
        println!("  {above} / {below}: {} (goal: {goal})", spread(&ratios));
    }
}

fn spread(figures: &[f64]) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    format!("{:.2} ({low:.2} to {high:.2})", sorted[sorted.len() / 2])
}

fn xts() {
    println!("AES-256-XTS through md | eli, reads of 128 KiB, one core");
    let mut figures = Figures::new("GB/s");
    let mut disks = [4096, 512].map(|sector| {
        let disk = Disk::new(&format!("sectorsize={sector}"), MEDIA_BYTES);
        (format!("sectors of {sector}"), disk)
    });
    for _ in 0..ROUNDS {
        for (name, disk) in &mut disks {
            figures.add(name, disk.read(128 << 10));
        }
        if let Some(figure) = openssl("aes-256-xts") {
            figures.add("openssl", figure);
        }
    }
    figures.print();
    figures.ratio("sectors of 4096", "openssl", "at least 1.0");
    figures.ratio("sectors of 512", "openssl", "at least 0.9");
}

type Clock = fn() -> Duration;

fn cores() {
    println!("The same, two threads with a channel each; CPU time leaves other programs out");
    let mut figures = Figures::new("GB/s");
    let mut both = [0, 1].map(|_| Disk::new("sectorsize=4096", MEDIA_BYTES));
    let clocks: [(&str, Clock); 2] = [("elapsed", wall_time), ("CPU time", cpu_time)];
    for _ in 0..ROUNDS {
        for (name, clock) in clocks {
            let one = both[0].read_by(clock, 128 << 10);
            figures.add(&format!("one thread, {name}"), one);
            let sum: f64 = std::thread::scope(|scope| {
                let threads = both
                    .each_mut()
                    .map(|disk| scope.spawn(move || disk.read_by(clock, 128 << 10)));
                threads
                    .map(|thread| thread.join().expect("reads"))
                    .iter()
                    .sum()
            });
            figures.add(&format!("two threads, {name}"), sum);
        }
    }
    figures.print();
    for (name, _) in clocks {
        let (two, one) = (
            format!("two threads, {name}"),
            format!("one thread, {name}"),
        );
        figures.ratio(&two, &one, "at least 1.8");
    }
}

/// A provider's keys without a stack.
fn crypt(media_bytes: u64) -> Crypt {
    let metadata = Metadata::one_time(Cipher::AesXts.number(), 256, media_bytes, 4096);
    let master = MasterKey::random().expect("keys");
    let sizes = (media_bytes, 512);
    Crypt::new(
        &metadata,
        sizes,
        &master,
        ByteOrder::Little,
        Backend::Fastest,
    )
    .expect("keys")
}

fn latency() {
    println!("Reads of 4 KiB at random, queue depth 1, beside decryption of the same places alone");
    let mut figures = Figures::new("ns");
    let mut disk = Disk::new("sectorsize=4096", LATENCY_BYTES);
    let crypt = crypt(LATENCY_BYTES);
    let mut memory = vec![0; LATENCY_BYTES as usize];
    let mut data = vec![0; 4096];
    let places = LATENCY_BYTES / 4096;
    let mut random = fastrand::Rng::with_seed(1);
    let mut order: Vec<u64> = (0..places).map(|place| place * 4096).collect();
    random.shuffle(&mut order);
    let at = |number: u64| order[(number % places) as usize];
    for _ in 0..ROUNDS {
        let reads = throughput(4096, |number| {
            disk.channel
                .read(&disk.opened, at(number), &mut data)
                .expect("reads");
        });
        let alone = throughput(4096, |number| {
            let offset = at(number);
            let place = &mut memory[offset as usize..][..4096];
            crypt.decrypt(offset, place).expect("keys");
        });
        let copied = throughput(4096, |number| {
            let offset = at(number);
            data.copy_from_slice(&memory[offset as usize..][..4096]);
            crypt.decrypt(offset, &mut data).expect("keys");
        });
        figures.add("md | eli", 4096.0 / reads);
        figures.add("decryption", 4096.0 / alone);
        figures.add("copy and decryption", 4096.0 / copied);
    }
    figures.print();
    figures.ratio("md | eli", "decryption", "at most 1.15");
    figures.ratio(
        "md | eli",
        "copy and decryption",
        "a read copies, without layers",
    );
}

fn tags() {
    // GELI hashes 1.64 bytes for each byte of data: 9 keys, 9 inner and 9 outer hashes a sector.
    println!("HMAC-SHA256, sectors of 4096, one core; all figures count bytes of data");
    let mut figures = Figures::new("GB/s");
    let options = "sectorsize=4096,aalgo=hmac/sha256";
    let mut alone = Disk::of_cipher("ealgo=null", options, MEDIA_BYTES);
    let mut disk = Disk::new(options, MEDIA_BYTES);
    let mut portable = Disk::new(&format!("{options},crypto=portable"), MEDIA_BYTES);
    for _ in 0..ROUNDS {
        figures.add("HMAC alone (ealgo=null)", alone.read(128 << 10));
        figures.add("HMAC and AES-256-XTS", disk.read(128 << 10));
        figures.add("the same, reads of 4 KiB", disk.read(4 << 10));
        figures.add(
            "the same, reads of 128 KiB, crypto=portable",
            portable.read(128 << 10),
        );
        if let Some(figure) = openssl("sha256") {
            figures.add("openssl sha256", figure);
        }
    }
    figures.print();
    figures.ratio("HMAC alone (ealgo=null)", "openssl sha256", "at least 0.9");
    figures.ratio("HMAC and AES-256-XTS", "openssl sha256", "at least 0.9");
}

fn large() {
    println!("One client, reads of 1 MiB (divided among cores) beside 192 KiB (not divided)");
    for (name, options) in [
        ("AES-256-XTS", "sectorsize=4096"),
        ("and HMAC-SHA256", "sectorsize=4096,aalgo=hmac/sha256"),
    ] {
        let mut figures = Figures::new("GB/s");
        let mut disk = Disk::new(options, MEDIA_BYTES);
        for _ in 0..ROUNDS {
            figures.add("192 KiB", disk.read_by(wall_time, 192 << 10));
            figures.add("1 MiB", disk.read_by(wall_time, 1 << 20));
        }
        println!("  {name}");
        figures.print();
        figures.ratio("1 MiB", "192 KiB", "at least 1.8");
    }
}

fn main() {
    let sections: [(&str, fn()); 5] = [
        ("xts", xts),
        ("cores", cores),
        ("latency", latency),
        ("tags", tags),
        ("large", large),
    ];
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    for (name, run) in sections {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            run();
        }
    }
}
