//! States are derived from a long log in constant memory: 128 MiB, with barriers and without one.
//! `UGEOM_CRASH_WRITES=1000000` is the long mode.

use ugeom_crash::{CampaignSettings, Disk, Points, Recording, answer, campaign};

const SECTOR: usize = 512;
const SECTORS: u64 = 16384;
const MEMORY_MAX_KIB: u64 = 128 << 10;

/// The most memory that this process ever had (`VmHWM`, proc(5)), KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let digits = peak.expect("a peak").trim().trim_end_matches(" kB");
    digits.parse().expect("a number")
}

/// Writes of a log: more than a cache holds, so that its bound is seen.
fn writes() -> u64 {
    let asked = std::env::var("UGEOM_CRASH_WRITES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(40_000)
}

/// A log with a barrier after so many writes each.
fn survives_in_constant_memory(barrier_every: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let size_bytes = SECTORS * SECTOR as u64;
    let recording = Recording::start(&log, size_bytes).expect("a recording");
    let disk = recording.disk();
    recording.begin();
    let mut random = fastrand::Rng::with_seed(barrier_every);
    let mut sector = [0; SECTOR];
    for number in 1..=writes() {
        sector[..8].copy_from_slice(&number.to_le_bytes());
        let at = random.u64(..SECTORS) * SECTOR as u64;
        disk.write(at, &sector).expect("writes");
        if number.is_multiple_of(barrier_every) {
            disk.flush().expect("flushes");
        }
    }
    recording.finish().expect("a log");
    let settings = CampaignSettings {
        points: Points::Count(200),
        tear_bytes: SECTOR as u64,
        lanes: 4,
        ..CampaignSettings::default()
    };
    let look = |disk: &Disk| {
        let mut sector = [0; SECTOR];
        let read = disk.read(0, &mut sector);
        read.map_err(|error| error.to_string())?;
        Ok(Vec::new())
    };
    let outcome = campaign(&log, &settings, &answer(look)).expect("a campaign");
    assert_eq!((outcome.writes, outcome.failed), (writes(), 0));
    assert!(outcome.states > 100, "{} states", outcome.states);
    let peak = peak_kib();
    println!("{} states, at most {peak} KiB", outcome.states);
    assert!(peak < MEMORY_MAX_KIB, "{peak} KiB");
}

#[test]
fn many_writes_with_barriers() {
    survives_in_constant_memory(100);
}

#[test]
fn many_writes_without_a_barrier() {
    survives_in_constant_memory(u64::MAX);
}
