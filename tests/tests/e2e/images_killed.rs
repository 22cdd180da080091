//! qcow2 images whose server is killed in the middle of writes, or whose file cannot grow: durable
//! writes are there, and no structure is damaged.
//!
//! `UGEOM_IMAGE_KILLS=1000` sets the number of kills of one image; the default is some few.

use crate::run::{Ended, UGEOM, command, has, run, run_in, ugeom};
use crate::serve::{Served, noise};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use tempfile::TempDir;
use ugeom_testkit::program;

const SIZE: usize = 16 << 20;
/// Places that are written to, over and over: some within a cluster, some over two of them.
const SLOTS: usize = 64;
const SLOT_BYTES: usize = 9 << 10;
/// Behind the slots, writes without a waiter.
const NOISE_AT: usize = 8 << 20;

/// An image in a folder of its own, and the tool that looks at it.
pub struct Image {
    pub folder: TempDir,
    qemu_img: PathBuf,
}

impl Image {
    /// A new image `a.qcow2` of 16 MiB, if these programs are there.
    pub fn new(programs: &[&str], options: &str) -> Option<Self> {
        let qemu_img = program("qemu-img")?;
        for name in programs {
            program(name)?;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let image = Self { folder, qemu_img };
        image.done(&[
            "create", "-q", "-f", "qcow2", "-o", options, "a.qcow2", "16M",
        ]);
        Some(image)
    }

    fn img(&self, arguments: &[&str]) -> Ended {
        run_in(self.folder.path(), &self.qemu_img, arguments)
    }

    /// Runs qemu-img, which succeeds.
    pub fn done(&self, arguments: &[&str]) -> Ended {
        let ended = self.img(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
        ended
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// `qemu-img check` finds nothing but leaks, and ugeom reads what qemu reads.
    fn sound(&self, round: usize) -> Vec<u8> {
        let checked = self.img(&["check", "-f", "qcow2", "a.qcow2"]);
        let fine = [0, 3].contains(&checked.code);
        assert!(fine, "kill {round}: {}{}", checked.text(), checked.stderr);
        let ours = ugeom(&["read", &self.path("a.qcow2")]);
        assert_eq!(ours.code, 0, "kill {round}: {}", ours.stderr);
        std::fs::write(self.path("ours.img"), &ours.stdout).expect("the copy");
        let same = ["compare", "-f", "qcow2", "-F", "raw", "a.qcow2", "ours.img"];
        let compared = self.img(&same);
        assert_eq!(compared.code, 0, "kill {round}: {}", compared.text());
        ours.stdout
    }
}

fn at(slot: usize) -> usize {
    // 9 KiB in 100 KiB: a slot begins anywhere in a cluster of 64 KiB.
    slot * (100 << 10)
}

/// A write that was sent: its slot and pattern.
type Sent = (usize, u8);

/// Sends durable writes one after the other, beside a client that does not wait for its writes,
/// until `acknowledged` of them are, then kills the server. Answers with those that were
/// acknowledged, and the one that was not.
fn kill_after(image: &Image, acknowledged: usize, random: &mut fastrand::Rng) -> (Vec<Sent>, Sent) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut served = Served::start(folder, &image.path("a.qcow2"), &["--rw"]);
    // Its stdout is a pipe, and it would keep its lines.
    let mut io = command("stdbuf", &["-oL", "qemu-io", "-f", "raw", &served.uri]);
    io.stderr(Stdio::null());
    let mut client = io.spawn().expect("qemu-io");
    let mut stdin = client.stdin.take().expect("its stdin");
    let mut lines = BufReader::new(client.stdout.take().expect("its stdout")).lines();
    let mut other = noisy(&served.uri, random);
    let mut done = Vec::new();
    let last = loop {
        let (slot, pattern) = (random.usize(..SLOTS), random.u8(1..));
        // One line at a time: qemu-io forgets a second one that it has read along.
        writeln!(stdin, "write -f -P {pattern} {} 9k", at(slot)).expect("a command");
        stdin.flush().expect("a command");
        if done.len() == acknowledged {
            break (slot, pattern);
        }
        let wrote = |line: &String| line.contains("wrote ");
        let line = lines.by_ref().map(|line| line.expect("a line")).find(wrote);
        assert!(line.is_some(), "qemu-io ended");
        done.push((slot, pattern));
    };
    served.signal("-KILL");
    for client in [&mut client, &mut other] {
        let _ = client.kill();
        let _ = client.wait();
    }
    (done, last)
}

/// A client that writes as fast as it can, and waits for nothing.
fn noisy(uri: &str, random: &mut fastrand::Rng) -> Child {
    let mut script = String::new();
    for _ in 0..20_000 {
        let place = NOISE_AT + random.usize(..(SIZE - NOISE_AT - SLOT_BYTES) / 512) * 512;
        let kind = ["aio_write -q -P 9", "aio_write -q -z"][random.usize(..2)];
        script += &format!("{kind} {place} 9k\n");
    }
    let mut io = command("qemu-io", &["-f", "raw", uri]);
    io.stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = io.spawn().expect("qemu-io");
    let mut stdin = client.stdin.take().expect("its stdin");
    // It ends when the client does.
    std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    client
}

#[test]
fn what_was_acknowledged_as_durable_survives_kills() {
    let kills = std::env::var("UGEOM_IMAGE_KILLS").ok();
    let kills: usize = kills.map_or(3, |kills| kills.parse().expect("a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for options in ["compat=1.1", "cluster_size=4k", "lazy_refcounts=on"] {
        let Some(image) = Image::new(&["qemu-io", "stdbuf"], options) else { return };
        let mut state = [0; SLOTS];
        for round in 0..kills.div_ceil(3) {
            let (done, last) = kill_after(&image, random.usize(1..40), &mut random);
            for (slot, pattern) in done {
                state[slot] = pattern;
            }
            let disk = image.sound(round);
            for (slot, pattern) in state.iter_mut().enumerate() {
                let bytes = &disk[at(slot)..][..SLOT_BYTES];
                if slot == last.0 {
                    // The one in flight may be there in part.
                    let known = bytes.iter().all(|byte| [*pattern, last.1].contains(byte));
                    assert!(known, "{options}, kill {round}: slot {slot}");
                    // From now on either may be there: write it anew in a later round.
                    let is_new = bytes.iter().all(|byte| *byte == last.1);
                    let is_old = bytes.iter().all(|byte| *byte == *pattern);
                    match (is_new, is_old) {
                        (true, _) => *pattern = last.1,
                        (_, true) => {}
                        _ => restore(&image, slot, *pattern),
                    }
                    continue;
                }
                let whole = bytes.iter().all(|byte| byte == pattern);
                assert!(
                    whole,
                    "{options}, kill {round}: slot {slot} is not {pattern}"
                );
            }
        }
    }
}

/// Writes a slot again that a kill has left in two parts.
fn restore(image: &Image, slot: usize, pattern: u8) {
    let script = format!("write -P {pattern} {} 9k", at(slot));
    let mut io = command("qemu-io", &["-f", "qcow2", "-c", &script, "a.qcow2"]);
    io.current_dir(image.folder.path());
    assert_eq!(run(io, b"").code, 0);
}

#[test]
fn a_file_that_cannot_grow_leaves_a_sound_image() {
    for options in ["compat=1.1", "cluster_size=4k", "preallocation=metadata"] {
        let Some(image) = Image::new(&["qemu-io", "stdbuf"], options) else { return };
        let data = noise(5, 6 << 20);
        for blocks in [1000, 5001] {
            // The signal of a file that is too large is ignored: writes fail then (EFBIG).
            let script =
                format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" write --destroy \"$1\"");
            let shell = ["-c", &script, UGEOM, &image.path("a.qcow2")];
            let written = run(command("bash", &shell), &data);
            let error = written.failed(1);
            has(&error, "a.qcow2");
            let disk = image.sound(blocks);
            // Unwritten sectors keep their content: zeroes.
            for (old, new) in disk.chunks(512).zip(data.chunks(512)) {
                assert!(old == new || old.iter().all(|byte| *byte == 0), "{options}");
            }
        }
    }
}

/// Shell: makes the counts of clusters right after a crash, checks the image, and converts it to
/// the file raw.$$.
pub const QCOW2_MENDED: &str = "
    mended() { qemu-img check -q -f qcow2 -r all $dev >&2 || test $? = 3; }
    mended && qemu-img check -q -f qcow2 $dev || exit 1
    qemu-img convert -f qcow2 -O raw $dev $PWD/raw.$$ || exit 1
";

/// Every crash state of the medium below an image: `qemu-img check -r` makes the counts of clusters
/// right, nothing is corrupt then, and what `ugeom write` has flushed is there.
#[test]
fn every_crash_of_the_disk_below_an_image_leaves_one_that_qemu_mends() {
    if !crate::crash::has_files() || program("qemu-img").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run_it = format!(
        r#"for i in 1 2 3 4 5; do
             head -c 9216 /dev/zero | tr '\0' "\\00$i" |
                 {UGEOM} write --destroy "$dev?format=qcow2" --offset $((i * 200 * 1024)) || exit 1
             echo ack k$i >&3
         done"#
    );
    let check = r#"
        for i in 1 2 3 4 5; do
            left=$(tail -c +$((i * 200 * 1024 + 1)) raw.$$ | head -c 9216 | tr -d "\\00$i" | wc -c)
            test "$left" != 0 || echo found k$i >&3
        done
        rm raw.$$"#;
    let check = format!("{QCOW2_MENDED}{check}");
    let points = crate::crash::states(60);
    let arguments = [
        "--size",
        "4m",
        "--points",
        &points,
        "--setup",
        "qemu-img create -q -f qcow2 $dev 2m",
        "--run",
        &run_it,
        "--check",
        &check,
    ];
    let ended = crate::crash::crash(folder.path(), &arguments);
    assert_eq!(ended.code, 0, "{}{}", ended.text(), ended.stderr);
    let text = ended.quiet();
    assert!(text.starts_with("0 of "), "{text}");
}
