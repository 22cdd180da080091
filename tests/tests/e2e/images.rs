//! Images of virtual machines as targets, beside qemu's own programs: reads are equal to qemu's,
//! written images pass `qemu-img check`, names in an image reach no other files.

use crate::run::{
    Ended, UGEOM, command, has, other, run, run_in, ugeom, ugeom_with, wait_for, wait_for_lock,
    words_of,
};
use crate::serve::{Served, noise};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tempfile::TempDir;
use ugeom_testkit::program;

const SIZE: usize = 24 << 20;

/// A disk with data, zeroes and holes.
fn disk() -> Vec<u8> {
    let mut data = vec![0; SIZE];
    data[..3 << 20].copy_from_slice(&noise(1, 3 << 20));
    data[10_000_000..11_000_000].copy_from_slice(&noise(2, 1_000_000));
    data[SIZE - 70_000..].copy_from_slice(&noise(3, 70_000));
    data
}

struct Bench {
    folder: TempDir,
    qemu_img: PathBuf,
}

impl Bench {
    /// A folder with the disk as `raw.img`; without qemu's programs nothing.
    fn new() -> Option<Self> {
        let qemu_img = program("qemu-img")?;
        program("qemu-nbd")?;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("raw.img"), disk()).expect("a disk");
        Some(Self { folder, qemu_img })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn img(&self, arguments: &[&str]) -> Ended {
        run_in(self.folder.path(), &self.qemu_img, arguments)
    }

    /// Converts the disk; false where this qemu cannot.
    fn convert(&self, format: &str, options: &[&str], name: &str) -> bool {
        let all = [
            &["convert", "-f", "raw", "-O", format],
            options,
            &["raw.img", name],
        ];
        self.img(&all.concat()).code == 0
    }

    /// The bytes that qemu reads from an image.
    fn as_qemu_reads(&self, name: &str, format: &str) -> Vec<u8> {
        let ended = self.img(&["convert", "-f", format, "-O", "raw", name, "again.img"]);
        assert_eq!(ended.code, 0, "{name}: {}", ended.stderr);
        std::fs::read(self.path("again.img")).expect("the copy")
    }

    /// `qemu-img check` finds nothing wrong; leaked clusters pass if `leaks`.
    fn check(&self, name: &str, format: &str, leaks: bool) {
        let ended = self.img(&["check", "-f", format, name]);
        let fine = ended.code == 0 || (leaks && ended.code == 3);
        let text = ended.text();
        assert!(fine, "{name}: {} {text} {}", ended.code, ended.stderr);
    }
}

const KINDS: [(&str, &str, &[&str]); 12] = [
    ("qcow2", "v3.qcow2", &[]),
    ("qcow2", "v2.qcow2", &["-o", "compat=0.10"]),
    (
        "qcow2",
        "small.qcow2",
        &["-o", "cluster_size=4k,refcount_bits=1"],
    ),
    ("qcow2", "deflate.qcow2", &["-c"]),
    (
        "qcow2",
        "zstd.qcow2",
        &["-c", "-o", "compression_type=zstd"],
    ),
    (
        "qcow2",
        "subclusters.qcow2",
        &["-o", "extended_l2=on,cluster_size=128k"],
    ),
    ("vmdk", "sparse.vmdk", &[]),
    (
        "vmdk",
        "split.vmdk",
        &["-o", "subformat=twoGbMaxExtentSparse"],
    ),
    ("vmdk", "stream.vmdk", &["-o", "subformat=streamOptimized"]),
    ("vdi", "disk.vdi", &[]),
    ("vpc", "disk.vhd", &["-o", "force_size=on"]),
    ("vhdx", "disk.vhdx", &[]),
];

#[test]
fn every_kind_of_image_is_read_as_qemu_reads_it() {
    let Some(bench) = Bench::new() else { return };
    let older = [
        ("parallels", "disk.hdd", &[][..]),
        ("qed", "disk.qed", &[]),
        ("qcow", "disk.qcow", &[]),
    ];
    for (format, name, options) in KINDS.into_iter().chain(older) {
        if !bench.convert(format, options, name) {
            assert!(format == "qed", "{name} cannot be made");
            continue;
        }
        let read = ugeom(&["read", &bench.path(name)]);
        assert_eq!(read.code, 0, "{name}: {}", read.stderr);
        assert!(read.stdout == bench.as_qemu_reads(name, format), "{name}");
        let part = ugeom(&words_of(&format!(
            "read {} --offset 9999999 --length 70001",
            bench.path(name)
        )));
        assert!(part.stdout == disk()[9_999_999..][..70_001], "{name}");
        let raw = ugeom(&["read", &format!("{}?format=raw", bench.path(name))]);
        assert!(
            raw.stdout == std::fs::read(bench.path(name)).expect("bytes"),
            "{name}"
        );
    }
    let shown = ugeom(&["show", &bench.path("v3.qcow2")]).quiet();
    has(&shown, "a qcow2 image, opened as such");
}

#[test]
fn what_is_written_to_an_image_is_what_qemu_reads() {
    let Some(bench) = Bench::new() else { return };
    for (format, name, options) in KINDS {
        if name == "stream.vmdk" {
            continue;
        }
        assert!(bench.convert(format, options, name), "{name}");
        let mut expected = disk();
        for (seed, at, length) in [
            (4, 100, 5000),
            (5, 6 << 20, 300_000),
            (6, 9_990_000, 40_000),
        ] {
            let data = noise(seed, length);
            let written = ugeom_with(
                &words_of(&format!(
                    "write --destroy {} --offset {at}",
                    bench.path(name)
                )),
                &data,
            );
            assert_eq!(written.code, 0, "{name}: {}", written.stderr);
            expected[at..at + length].copy_from_slice(&data);
        }
        if format != "vpc" {
            bench.check(name, format, false);
        }
        assert!(bench.as_qemu_reads(name, format) == expected, "{name}");
    }
    assert!(bench.convert("qed", &[], "disk.qed"));
    let refused = ugeom_with(&["write", &bench.path("disk.qed")], b"x").failed(1);
    has(&refused, "a qed image can only be read");
}

#[test]
fn the_footer_of_a_fixed_vhd_is_no_part_of_its_disk() {
    let Some(bench) = Bench::new() else { return };
    let options = ["-o", "subformat=fixed,force_size=on"];
    assert!(bench.convert("vpc", &options, "fixed.vhd"));
    let image = bench.path("fixed.vhd");
    let read = ugeom(&["read", &image]);
    assert!(read.stdout == disk(), "{}", read.stderr);
    let footer = std::fs::read(&image).expect("the image").split_off(SIZE);
    assert_eq!(footer.len(), 512);
    // All of the disk, and not a byte more.
    let data = noise(8, SIZE);
    let written = ugeom_with(&["write", "--destroy", &image], &data);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert!(bench.as_qemu_reads("fixed.vhd", "vpc") == data);
    assert!(std::fs::read(&image).expect("the image")[SIZE..] == footer);
    let end = SIZE.to_string();
    ugeom_with(&["write", "--destroy", &image, "--offset", &end], b"x").failed(1);
    // The bytes of the file are those of an image.
    let bytes = format!("{image}?format=raw");
    let refused = ugeom_with(&["write", &bytes], b"x").failed(1);
    has(&refused, "carries a VHD image");
}

#[test]
fn an_overlay_is_written_and_its_base_stays() {
    let Some(bench) = Bench::new() else { return };
    assert!(bench.convert("qcow2", &["-c"], "base.qcow2"));
    let made = bench.img(&words_of(
        "create -q -f qcow2 -b base.qcow2 -F qcow2 top.qcow2",
    ));
    assert_eq!(made.code, 0, "{}", made.stderr);
    let base = std::fs::read(bench.path("base.qcow2")).expect("the base");
    let served = Served::start(
        tempfile::tempdir().expect("a folder"),
        &bench.path("top.qcow2"),
        &["--rw"],
    );
    let script = "write -P 7 100 3000\nwrite -P 8 5M 2M\nwrite -z 10M 512k\ndiscard 0 64k\nflush\n";
    let mut io = command("qemu-io", &["-f", "raw", &served.uri]);
    io.stdin(std::process::Stdio::piped());
    assert_eq!(run(io, script.as_bytes()).code, 0);
    drop(served);
    let mut expected = disk();
    expected[..64 << 10].fill(0);
    expected[5 << 20..7 << 20].fill(8);
    expected[10 << 20..(10 << 20) + (512 << 10)].fill(0);
    bench.check("top.qcow2", "qcow2", false);
    assert!(bench.as_qemu_reads("top.qcow2", "qcow2") == expected);
    assert!(std::fs::read(bench.path("base.qcow2")).expect("the base") == base);
}

/// Waits until no process holds a lock of an image: a child of a killed server ends a moment later.
fn wait_for_free(path: &str) {
    let probe = ["write", path, "--destroy", "--length", "0"];
    wait_for("the end of the lock", || ugeom(&probe).code == 0);
}

/// A file of 1 MiB outside of the bench, to which `link.img` in there leads.
fn secret_elsewhere(bench: &Bench) -> (TempDir, String) {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let secret = elsewhere.path().join("secret");
    std::fs::write(&secret, noise(9, 1 << 20)).expect("a secret");
    let secret = secret.display().to_string();
    std::os::unix::fs::symlink(&secret, bench.path("link.img")).expect("a link");
    (elsewhere, secret)
}

#[test]
fn a_name_in_an_image_reaches_no_file_elsewhere() {
    let Some(bench) = Bench::new() else { return };
    let (_elsewhere, secret) = secret_elsewhere(&bench);
    other("mkfifo", &[&bench.path("fifo")]);
    let overlay = |backing: &str, name: &str| {
        let arguments = [
            "create", "-q", "-u", "-f", "qcow2", "-b", backing, "-F", "raw", name, "1M",
        ];
        assert_eq!(bench.img(&arguments).code, 0, "{backing}");
        ugeom(&["read", &bench.path(name)])
    };
    for backing in [
        secret.as_str(),
        "../secret",
        "link.img",
        "fifo",
        "nbd://localhost/",
        "json:{}",
    ] {
        let error = overlay(backing, "hostile.qcow2").failed(1);
        let why = [
            "not in its directory",
            "no regular file",
            "no name of a file",
            "No such file",
        ];
        assert!(
            why.iter().any(|why| error.contains(why)),
            "{backing}: {error}"
        );
    }
    assert_eq!(overlay(&secret, "hostile.qcow2").code, 1);
    let told = ugeom(&[
        "read",
        &format!("{}?backing=any", bench.path("hostile.qcow2")),
    ]);
    assert_eq!(
        (told.code, told.stdout.len()),
        (0, 1 << 20),
        "{}",
        told.stderr
    );
    has(&told.stderr, &format!("based on {secret}"));
}

/// qemu-nbd itself opens the files that a descriptor names.
#[test]
fn a_descriptor_reaches_no_file_elsewhere() {
    let Some(bench) = Bench::new() else { return };
    let (_elsewhere, secret) = secret_elsewhere(&bench);
    let text = "# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\n\
                createType=\"monolithicFlat\"\nRW 2048 FLAT \"../secret\" 0\n";
    let refused = |text: &str, options: &str, reason: &str| {
        std::fs::write(bench.path("hostile.vmdk"), text).expect("a descriptor");
        let image = format!("{}{options}", bench.path("hostile.vmdk"));
        has(&ugeom(&["read", &image]).failed(1), reason);
    };
    let escapes = text.replace("../secret", &secret);
    for text in [text, &escapes, &text.replace("../secret", "link.img")] {
        refused(text, "", "its extent");
    }
    // qemu takes these for the same extent.
    refused(&text.replace("RW ", "RW\t"), "", "its extent");
    refused(&text.replace("RW ", " RW\x0b"), "", "its extent");
    refused(&text.replace(' ', "\n"), "?format=vmdk", "line 8");
    refused(&format!("\n{text}"), "?format=vmdk", "its extent");
    let behind = format!("version=1\n# {}\nCID", "x".repeat(100_000));
    let behind = text.replace("version=1\nCID", &behind);
    refused(&behind, "", "its extent");
    // A sparse extent without sectors holds another descriptor.
    let mut extent = vec![0; 4096];
    extent[..4].copy_from_slice(b"KDMV");
    (extent[4], extent[28]) = (1, 1);
    extent[512..512 + text.len()].copy_from_slice(text.as_bytes());
    std::fs::write(bench.path("extent.vmdk"), extent).expect("an extent");
    let nested = text.replace("FLAT \"../secret\" 0", "SPARSE \"extent.vmdk\"");
    refused(&nested, "", "of 0 sectors");
}

/// qemu reads the whole table of such an image into memory: 1 GiB for one of 256 TiB.
#[test]
fn an_old_image_whose_table_is_not_in_the_file_is_refused() {
    let Some(bench) = Bench::new() else { return };
    assert!(bench.convert("qcow", &[], "disk.qcow"));
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(bench.path("disk.qcow"));
    let file = file.expect("the image");
    for (at, value) in [(24, 1_u64 << 48), (40, 1 << 40)] {
        let mut before = [0; 8];
        let image = std::fs::read(bench.path("disk.qcow")).expect("the image");
        before.copy_from_slice(&image[at..at + 8]);
        file.write_all_at(&value.to_be_bytes(), at as u64)
            .expect("damaged");
        let shown = ugeom(&["show", &bench.path("disk.qcow")]).failed(1);
        has(&shown, "ends behind the end of the file");
        file.write_all_at(&before, at as u64).expect("as before");
        ugeom(&["show", &bench.path("disk.qcow")]).quiet();
    }
}

#[test]
fn a_child_ends_with_ugeom_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    assert!(bench.convert("vmdk", &[], "disk.vmdk"));
    let folder = tempfile::tempdir().expect("a folder");
    let temporary = folder.path().to_owned();
    let mut served = Served::start(folder, &bench.path("disk.vmdk"), &["--rw"]);
    let left = || {
        let names = std::fs::read_dir(&temporary).expect("the folder");
        let names = names.map(|entry| entry.expect("an entry").file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with("ugeom-"))
            .count()
    };
    assert_eq!(left(), 0, "the socket has no name");
    served.signal("-KILL");
    wait_for_free(&bench.path("disk.vmdk"));
    let mut without = command(UGEOM, &["show", &bench.path("disk.vmdk")]);
    without.env("PATH", "/nowhere");
    let error = run(without, b"").failed(1);
    has(
        &error,
        "qemu-nbd, which is not installed (Debian: qemu-utils)",
    );
    std::fs::write(bench.path("broken.vhdx"), b"vhdxfile and no more").expect("an image");
    let error = ugeom(&["show", &bench.path("broken.vhdx")]).failed(1);
    has(&error, "qemu-nbd refuses it: ");
    assert!(!error.contains("json:"), "{error}");
}

fn is_refused(ended: &Ended) -> bool {
    ended.code != 0 && ended.stderr.contains("lock")
}

#[test]
fn locks_go_together_with_qemus() {
    let Some(bench) = Bench::new() else { return };
    let image = bench.path("raw.img");
    let info = |more: &[&str]| bench.img(&[&["info", "-f", "raw"], more, &["raw.img"]].concat());
    // A server that writes: other readers only with -U, no other writer.
    let served = Served::start(tempfile::tempdir().expect("a folder"), &image, &["--rw"]);
    assert_eq!(info(&["-U"]).code, 0);
    assert!(is_refused(
        &bench.img(&["resize", "-q", "-f", "raw", "raw.img", "25M"])
    ));
    let io = |command: &str| bench_io(&bench, command);
    assert!(is_refused(&io("write 0 512")));
    has(
        &ugeom_with(&["write", &image], b"x").failed(1),
        "for writing",
    );
    assert_eq!(ugeom(&["read", &image, "--length", "512"]).code, 0);
    drop(served);
    // A server that reads: qemu may write, but not change what is where.
    let served = Served::start(tempfile::tempdir().expect("a folder"), &image, &[]);
    assert_eq!(info(&[]).code, 0);
    assert_eq!(io("write 1M 512").code, 0);
    assert!(is_refused(
        &bench.img(&["resize", "-q", "-f", "raw", "raw.img", "25M"])
    ));
    let error = ugeom(&["part", "create", "-s", "mbr", "--destroy", &image]).failed(1);
    has(&error, "relies on it");
    drop(served);
    // qemu writes: ugeom reads and does not write.
    let mut qemu = command("qemu-io", &["-f", "raw", &image]);
    let mut qemu = qemu.spawn().expect("qemu-io");
    wait_for_lock(&image);
    assert_eq!(ugeom(&["read", &image, "--length", "512"]).code, 0);
    has(
        &ugeom_with(&["write", &image], b"x").failed(1),
        "for writing",
    );
    drop(qemu.stdin.take());
    qemu.wait().expect("qemu-io ends");
    // The map of a qcow2 image is for one writer, or for readers.
    assert!(bench.convert("qcow2", &[], "disk.qcow2"));
    let served = Served::start(
        tempfile::tempdir().expect("a folder"),
        &bench.path("disk.qcow2"),
        &["--rw"],
    );
    assert!(is_refused(&bench.img(&["info", "disk.qcow2"])));
    assert_eq!(bench.img(&["info", "-U", "disk.qcow2"]).code, 0);
    has(
        &ugeom(&["read", &bench.path("disk.qcow2")]).failed(1),
        "for writing",
    );
    drop(served);
}

fn bench_io(bench: &Bench, text: &str) -> Ended {
    let mut io = command("qemu-io", &["-f", "raw", "-c", text, "raw.img"]);
    io.current_dir(bench.folder.path());
    run(io, b"")
}
