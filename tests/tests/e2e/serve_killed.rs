//! Servers that are killed again and again: what a FLUSH, or a write with FUA, has acknowledged is
//! there afterwards, and clients of the class `nbd` go on with the next server.

use crate::disks;
use crate::run::{UGEOM, command as process, run};
use crate::serve::Served;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use ugeom_format::wire::nbd::{OptionHeader, Request, command, command_flag, option};

/// Rounds if `UGEOM_SOAK_SECONDS` does not say for how long.
const ROUNDS: usize = 12;

const BLOCKS: u64 = 1024;
const BLOCK_BYTES: usize = 4096;

/// Writes between two FLUSHes.
const BATCH: usize = 16;

/// The number of the last write to each block that is durable for certain.
type Durable = BTreeMap<u64, u64>;

/// A connection to the default export.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.read_exact(&mut [0; 18])?;
    let (option, length) = (option::EXPORT_NAME, 0);
    let header = OptionHeader { option, length }.encode();
    stream.write_all(&[&3_u32.to_be_bytes()[..], &header].concat())?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}

fn send(
    stream: &mut UnixStream,
    kind: u16,
    flags: u16,
    at: u64,
    data: &[u8],
) -> std::io::Result<()> {
    let request = Request {
        flags,
        command: kind,
        cookie: 0,
        offset_bytes: at,
        length_bytes: data.len() as u32,
    };
    stream.write_all(&[&request.encode()[..], data].concat())
}

/// One simple reply, which has to be a good one.
fn receive(stream: &mut UnixStream) -> std::io::Result<()> {
    let mut reply = [0; 16];
    stream.read_exact(&mut reply)?;
    assert_eq!(reply[4..8], [0; 4], "the request failed");
    Ok(())
}

/// Writes over two connections until the server is gone; what is written over both, a FLUSH over
/// one covers.
fn write_on(socket: &Path, number: &mut u64, durable: &mut Durable) -> std::io::Result<()> {
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
            send(
                stream,
                command::WRITE,
                flags,
                block * BLOCK_BYTES as u64,
                &data,
            )?;
            receive(stream)?;
            if flags == 0 {
                pending.push((block, *number));
            } else {
                durable.insert(block, *number);
            }
        }
        send(&mut both[0], command::FLUSH, 0, 0, &[])?;
        receive(&mut both[0])?;
        durable.extend(pending);
    }
}

/// The image holds what was durable, or something newer, in whole blocks.
fn check(image: &Path, durable: &Durable) {
    let bytes = std::fs::read(image).expect("the image");
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

/// Waits until nobody holds the image. The kernel lets go of a killed process's files a little
/// after its parent has heard of its end when a ring of io_uring still has them.
fn wait_for_the_lock(image: &Path) {
    let image = disks::text(image);
    while run(
        process(UGEOM, &["serve", &image, "--rw", "--run", "true"]),
        b"",
    )
    .code
        != 0
    {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill_again_and_again(layers: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    std::fs::write(&image, vec![0; BLOCKS as usize * BLOCK_BYTES]).expect("an image");
    let target = format!("{}{layers}", image.display());
    let seconds = std::env::var("UGEOM_SOAK_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse().expect("UGEOM_SOAK_SECONDS is a number"));
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds) / 2);
    let (mut number, mut durable, mut round) = (0, Durable::new(), 0);
    while until.map_or(round < ROUNDS, |until| Instant::now() < until) {
        round += 1;
        wait_for_the_lock(&image);
        let own = tempfile::tempdir().expect("a folder");
        let socket = own.path().join("nbd");
        let mut served = Served::start(own, &target, &["--rw"]);
        let after = Duration::from_millis(fastrand::u64(10..120));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The end of it is the server's.
                let _ = write_on(&socket, &mut number, &mut durable);
            });
            std::thread::sleep(after);
            served.signal("-KILL");
        });
        check(&image, &durable);
    }
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
        let job = [
            "run",
            "--name=v",
            &filename,
            "--rw=randwrite",
            "--bs=4k",
            "--size=8m",
            "--ioengine=io_uring",
            "--iodepth=16",
            "--rate_iops=2000",
            "--verify=crc32c",
        ];
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
    assert_eq!(ended.code, 0, "{}{}", ended.text(), ended.stderr);
    assert_eq!(kills, 4, "it was done too soon: {}", ended.text());
}
