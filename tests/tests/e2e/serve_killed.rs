//! Servers that are killed again and again: data that a FLUSH, or a write with FUA, has
//! acknowledged is there afterwards, and clients of the class `nbd` go on with the next server.

use crate::disks;
use crate::run::{UGEOM, command as process, has, run, ugeom, wait_for, words_of};
use crate::serve::Served;
use crate::upstream::{Upstream, ask, connect};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use ugeom_format::wire::nbd::{command, command_flag};

/// Rounds if `UGEOM_SOAK_SECONDS` does not say for how long.
const ROUNDS: usize = 12;

pub const BLOCKS: u64 = 1024;
pub const BLOCK_BYTES: usize = 4096;

/// Writes between two FLUSHes.
const BATCH: usize = 16;

/// The number of the last write to each block that is durable for certain.
pub type Durable = BTreeMap<u64, u64>;

/// Writes over two connections until the server has disconnected; what is written over both, a
/// FLUSH over one covers. A FLUSH that fails covers nothing: what was written before it may be
/// lost.
pub fn write_on(
    socket: &Path,
    number: &mut u64,
    durable: &mut Durable,
    may_lose: bool,
) -> std::io::Result<()> {
    let mut random = fastrand::Rng::with_seed(*number);
    let mut both = [connect(socket)?, connect(socket)?];
    loop {
        let mut pending = Vec::new();
        for at in 0..BATCH {
            *number += 1;
            let (block, data) = (random.u64(0..BLOCKS), number.to_be_bytes().repeat(512));
            let flags = if random.u8(0..8) == 0 {
                command_flag::FUA
            } else {
                0
            };
            let stream = &mut both[at % 2];
            let offset = block * BLOCK_BYTES as u64;
            let error = ask(stream, command::WRITE, flags, offset, &data)?;
            assert_eq!(error, 0, "the request failed");
            if flags == 0 {
                pending.push((block, *number));
            } else {
                durable.insert(block, *number);
            }
        }
        let error = ask(&mut both[0], command::FLUSH, 0, 0, &[])?;
        assert!(error == 0 || may_lose, "the FLUSH failed");
        if error == 0 {
            durable.extend(pending);
        }
    }
}

/// The media hold what was durable, or something newer, in whole blocks.
pub fn check(bytes: &[u8], durable: &Durable) {
    for (block, number) in durable {
        let at = *block as usize * BLOCK_BYTES;
        let words = bytes[at..at + BLOCK_BYTES].as_chunks::<8>().0;
        for word in words {
            let found = u64::from_be_bytes(*word);
            assert!(
                found >= *number,
                "block {block}: {found} instead of {number}"
            );
        }
    }
}

/// Waits until the image is not held. The kernel lets go of a killed process's files a little
/// after its parent has heard of its end when a ring of io_uring still has them.
pub fn wait_for_the_lock(image: &Path) {
    let serve = ["serve", &disks::text(image), "--rw", "--run", "true"];
    wait_for("the end of the lock", || ugeom(&serve).code == 0);
}

/// Calls it so often, or for as long, as the tests that kill servers are to go on.
pub fn rounds(mut round: impl FnMut()) {
    let seconds = std::env::var("UGEOM_SOAK_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("UGEOM_SOAK_SECONDS is a number"));
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds) / 2);
    let mut number = 0;
    while until.map_or(number < ROUNDS, |until| Instant::now() < until) {
        number += 1;
        round();
    }
}

fn kill_again_and_again(layers: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    std::fs::write(&image, vec![0; BLOCKS as usize * BLOCK_BYTES]).expect("an image");
    let target = format!("{}{layers}", image.display());
    let (mut number, mut durable) = (0, Durable::new());
    rounds(|| {
        wait_for_the_lock(&image);
        let own = tempfile::tempdir().expect("a folder");
        let socket = own.path().join("nbd");
        let mut served = Served::start(own, &target, &["--rw"]);
        let after = Duration::from_millis(fastrand::u64(10..120));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The end of it is the server's.
                let _ = write_on(&socket, &mut number, &mut durable, false);
            });
            std::thread::sleep(after);
            served.signal("-KILL");
        });
        check(&std::fs::read(&image).expect("the image"), &durable);
    });
    assert!(
        durable.len() > 100,
        "hardly anything became durable: {durable:?}"
    );
}

#[test]
fn an_image_keeps_what_was_acknowledged_however_often_its_server_is_killed() {
    kill_again_and_again("");
}

#[test]
fn a_cache_keeps_what_was_acknowledged_however_often_its_server_is_killed() {
    kill_again_and_again(" | cache:size=1m");
}

/// Kills the server of a server, too, which forgets what was not flushed: now the one, now the
/// other, and in the end both. `UGEOM_KILLS` says how often.
fn kill_both_again_and_again(layers: &str) {
    let Some(mut upstream) = Upstream::start(BLOCKS * BLOCK_BYTES as u64) else { return };
    let wanted = std::env::var("UGEOM_KILLS").ok();
    let wanted = wanted.map(|text| text.parse().expect("UGEOM_KILLS is a number"));
    let (mut number, mut durable, mut kills) = (0, Durable::new(), 0);
    while kills < wanted.unwrap_or(2 * ROUNDS) {
        let own = tempfile::tempdir().expect("a folder");
        let socket = own.path().join("nbd");
        let target = format!("{}{layers}", upstream.target());
        let mut served = Served::start(own, &target, &["--rw", "--threads", "2"]);
        let pause = || std::thread::sleep(Duration::from_millis(fastrand::u64(10..150)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The end of it is the server's.
                let _ = write_on(&socket, &mut number, &mut durable, true);
            });
            for _ in 0..fastrand::usize(0..3) {
                pause();
                upstream.kill();
                upstream.start_again();
                kills += 1;
            }
            pause();
            if fastrand::bool() {
                upstream.kill();
                served.signal("-KILL");
            } else {
                served.signal("-KILL");
                upstream.kill();
            }
            kills += 2;
        });
        check(
            &std::fs::read(upstream.image()).expect("the image"),
            &durable,
        );
        upstream.start_again();
    }
    println!(
        "{kills} kills, {number} writes, {} blocks durable",
        durable.len()
    );
    assert!(!durable.is_empty(), "nothing became durable");
}

#[test]
fn what_was_flushed_is_there_however_often_the_upstream_is_killed() {
    kill_both_again_and_again("");
}

#[test]
fn what_was_flushed_through_a_cache_is_there_however_often_the_upstream_is_killed() {
    let layers = " | cache:size=1m,write=back";
    kill_both_again_and_again(layers);
}

#[test]
fn a_job_goes_on_with_the_next_server_and_reads_what_it_has_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let (image, socket) = (folder.path().join("disk.img"), folder.path().join("nbd"));
    std::fs::write(&image, vec![0; 8 << 20]).expect("an image");
    let (image, listen) = (disks::text(&image), format!("unix:{}", socket.display()));
    let serve = || {
        let mut serve = process(UGEOM, &["serve", &image, "--nbd", &listen, "--rw"]);
        serve.stdout(std::process::Stdio::null());
        serve
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("TMPDIR", folder.path());
        serve.spawn().expect("a server")
    };
    let mut server = serve();
    while UnixStream::connect(&socket).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let filename = format!("--filename=nbd+unix:///?socket={}", socket.display());
    let job = std::thread::spawn(move || {
        let job = format!(
            "run --name=v {filename} --rw=randwrite --bs=4k --size=8m --ioengine=io_uring \
             --iodepth=16 --rate_iops=2000 --verify=crc32c --verify_state_save=0"
        );
        let job = words_of(&job);
        run(process(UGEOM, &job), b"")
    });
    let mut kills = 0;
    while !job.is_finished() && kills < 4 {
        std::thread::sleep(Duration::from_millis(200));
        server.kill().expect("killed");
        server.wait().expect("it has ended");
        kills += 1;
        wait_for_the_lock(Path::new(&image));
        server = serve();
    }
    let ended = job.join().expect("a job");
    server.kill().expect("killed");
    server.wait().expect("it has ended");
    has(&ended.text(), "err= 0");
    assert_eq!(kills, 4, "it was done too soon: {}", ended.text());
    // Each byte was read back as it was written, but no FLUSH had covered what a killed server had
    // acknowledged: whether it is durable is unknown, and the exit code tells so.
    let unknown = "data is lost: the connection broke before, and writes that no FLUSH had covered";
    has(&ended.stderr, unknown);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
}
