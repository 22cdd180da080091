//! Copies with holes, and disks with faults: GNU ddrescue's own programs read the map and continue
//! it.

use crate::run::{Ended, UGEOM, command, has, other, run, words_of};
use crate::serve::noise;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Stdio;
use ugeom_testkit::program;

/// Runs ugeom with a file as stdout, and perhaps one as stdin.
fn with_files(arguments: &[&str], stdin: Option<&Path>, stdout: Option<File>) -> Ended {
    let mut command = command(UGEOM, arguments);
    if let Some(path) = stdin {
        command.stdin(File::open(path).expect("the input"));
    }
    if let Some(file) = stdout {
        command.stdout(Stdio::from(file));
    }
    run(command, b"")
}

#[test]
fn holes_stay_holes_in_both_directions() {
    const SIZE: u64 = 256 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sparse.img");
    let file = File::create(&path).expect("an image");
    file.set_len(SIZE).expect("its size");
    for (seed, at, length) in [
        (1, 0, 70_000),
        (2, 100 << 20, 3 << 20),
        (3, SIZE - 9000, 5000),
    ] {
        file.write_all_at(&noise(seed, length), at).expect("data");
    }
    // Zeroes that are data in the image become a hole in a copy.
    file.write_all_at(&vec![0; 8 << 20], 50 << 20)
        .expect("zeroes");
    let target = path.display().to_string();
    let copy = folder.path().join("copy.img");
    let read = with_files(
        &["read", &target],
        None,
        Some(File::create(&copy).expect("a copy")),
    );
    assert_eq!((read.code, read.stderr.as_str()), (0, ""));
    let same = || assert!(std::fs::read(&path).expect("one") == std::fs::read(&copy).expect("two"));
    same();
    let blocks = || copy.metadata().expect("the copy").blocks() * 512;
    assert!(blocks() < 4 << 20, "{}", blocks());
    // A part of it, behind what is there already.
    let mut behind = OpenOptions::new()
        .write(true)
        .open(&copy)
        .expect("the copy");
    std::io::Seek::seek(&mut behind, std::io::SeekFrom::End(0)).expect("its end");
    let part = format!("read {target} --offset 104850001 --length 9000000");
    let part = words_of(&part);
    assert_eq!(with_files(&part, None, Some(behind)).code, 0);
    let (all, both) = (
        std::fs::read(&path).expect("one"),
        std::fs::read(&copy).expect("two"),
    );
    assert!(both[SIZE as usize..] == all[104_850_001..][..9_000_000]);
    // Over other data: what is a hole in the input is none yet in the target.
    std::fs::write(&copy, noise(4, SIZE as usize)).expect("other data");
    let target = copy.display().to_string();
    let written = with_files(&["write", "--destroy", &target], Some(&path), None);
    assert_eq!((written.code, written.stderr.as_str()), (0, ""));
    same();
    assert!(blocks() < 16 << 20, "{}", blocks());
}

/// A disk of which some sectors cannot be read, as a target.
fn faulty(path: &str) -> String {
    format!(
        "{path} | crash:eio=100%,from=1000960,to=1003008 | crash:eio=100%,from=3145728,to=3146240"
    )
}

#[test]
fn what_can_be_read_of_a_faulty_disk_is_read_and_ddrescue_continues() {
    let (Some(ddrescue), Some(log)) = (program("ddrescue"), program("ddrescuelog")) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let data = noise(7, 5 << 20);
    std::fs::write(path("disk.img"), &data).expect("a disk");
    let (disk, map, out) = (faulty(&path("disk.img")), path("map"), path("out.img"));
    let rescue = format!("read --skip-errors --map {map} --retries 2");
    let rescue = [words_of(&rescue), vec![&*disk]].concat();
    let open = || {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&out)
            .expect("the output")
    };
    let ended = with_files(&rescue, None, Some(open()));
    assert_eq!(ended.code, 1);
    has(&ended.stderr, "2,560 bytes in 2 places could not be read");
    let mut expected = data.clone();
    for range in [1_000_960..1_003_008, 3_145_728..3_146_240] {
        expected[range].fill(0);
    }
    assert!(std::fs::read(&out).expect("the output") == expected);
    let bad = String::from_utf8(other(&log, &["-b512", "-l-", &map])).expect("numbers");
    let bad: Vec<u64> = bad
        .split_whitespace()
        .map(|it| it.parse().expect("a number"))
        .collect();
    assert_eq!(bad, [1955, 1956, 1957, 1958, 6144]);
    ddrescue_and_ugeom_continue(&path, &disk, (&ddrescue, &log), &data);
}

/// ddrescue reads the map and the rest of a disk that has recovered; so does ugeom, with its own
/// map and with one that ddrescue has written.
fn ddrescue_and_ugeom_continue(
    path: &dyn Fn(&str) -> String,
    disk: &str,
    (ddrescue, log): (&Path, &Path),
    data: &[u8],
) {
    let (map, out) = (path("map"), path("out.img"));
    let open = || File::options().write(true).open(&out).expect("the output");
    let copy = path("copy.map");
    std::fs::copy(&map, &copy).expect("a copy");
    let done = path("done.img");
    std::fs::copy(&out, &done).expect("a copy");
    other(ddrescue, &["-q", "-r1", &path("disk.img"), &done, &copy]);
    assert!(std::fs::read(&done).expect("the output") == data);
    let healthy = path("disk.img");
    let go_on = format!("read --skip-errors --map {map} --retries 1 {healthy}");
    let go_on = words_of(&go_on);
    let ended = with_files(&go_on, None, Some(open()));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(std::fs::read(&out).expect("the output") == data);
    other(log, &["-D", &map]);
    let done = ["read", "--skip-errors", "--map", &copy, disk];
    assert_eq!(
        with_files(&done, None, Some(open())).code,
        0,
        "nothing is left to read"
    );
}

#[test]
fn a_map_without_an_end_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    for map in ["/dev/zero", "/dev/full", "/"] {
        let arguments = ["read", "md:1m", "--skip-errors", "--map", map];
        let out = File::create(&out).expect("a file");
        let read = with_files(&arguments, None, Some(out));
        assert_eq!(read.code, 1);
        has(&read.stderr, "not a regular file");
    }
}

#[test]
fn a_rescue_needs_a_file_and_does_not_forget_what_was_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("disk.img"), noise(8, 1 << 20)).expect("a disk");
    let (disk, map) = (path("disk.img"), path("map"));
    let rescue = ["read", "--skip-errors", "--map", &map, &disk];
    let piped = with_files(&rescue, None, None).failed(1);
    has(&piped, "needs a file as stdout");
    let file = || File::create(path("out.img")).expect("the output");
    assert_eq!(with_files(&rescue, None, Some(file())).code, 0);
    let truncated = with_files(&rescue, None, Some(file()));
    assert_eq!(truncated.code, 1);
    has(&truncated.stderr, "but the output is empty");
    std::fs::write(&map, "0 ? 1\n0 512 !\n").expect("a map");
    let wrong = with_files(&rescue, None, Some(file()));
    has(&wrong.stderr, "line 2: no status");
}

/// The map holds offsets of the provider, so the output has them, too.
#[test]
fn a_rescue_of_another_range_leaves_what_was_read_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let data = noise(9, 2 << 20);
    std::fs::write(path("disk.img"), &data).expect("a disk");
    // Other files of the user beside the map, and a map elsewhere.
    std::fs::write(path("map.new"), "precious").expect("a file");
    std::fs::create_dir(path("maps")).expect("a folder");
    std::os::unix::fs::symlink("maps/real", path("map")).expect("a link");
    std::fs::write(path("maps/real"), "0 ? 1\n0 2097152 ?\n").expect("a map");
    let (disk, map, out) = (path("disk.img"), path("map"), path("out.img"));
    for (offset, length) in [("1m", "1m"), ("0", "1000000"), ("1000000", "1m")] {
        let range = ["--offset", offset, "--length", length];
        let rescue = ["read", "--skip-errors", "--map", &map, &disk];
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).open(&out);
        let arguments = [&rescue[..], &range].concat();
        let ended = with_files(&arguments, None, Some(file.expect("the output")));
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{offset}");
    }
    assert!(std::fs::read(&out).expect("the output") == data);
    assert_eq!(std::fs::read(path("map.new")).expect("it"), b"precious");
    assert!(Path::new(&map).is_symlink());
    has(
        &std::fs::read_to_string(path("maps/real")).expect("the map"),
        "0x00200000  +",
    );
}

/// A map that cannot be written is told beside the reason, and does not hide it.
#[test]
fn a_map_that_cannot_be_written_does_not_hide_why_the_rescue_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("out.img"), noise(8, 1 << 20)).expect("the output");
    let map = path("missing/map");
    let rescue = ["read", "--skip-errors", "--map", &map, "md:1m"];
    // Not open for writing, which fails at the first sector.
    let out = File::open(path("out.img")).expect("the output");
    let ended = with_files(&rescue, None, Some(out));
    assert_eq!(ended.code, 1);
    has(&ended.stderr, "writing to stdout");
    has(&ended.stderr, "writing the map");
}

/// A disk with a FAT and an ext4 file system, each with one file, made without root.
fn old_disk(folder: &Path, mkfs: (&Path, &Path), mcopy: &Path, data: &[u8]) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let disk = path("old.img");
    let image = File::create(&disk).expect("a disk");
    image.set_len(32 << 20).expect("its size");
    std::fs::create_dir(path("tree")).expect("a folder");
    std::fs::write(path("tree/letter"), data).expect("a file");
    let (fat, ext) = (path("fat"), path("ext"));
    for part in [&fat, &ext] {
        File::create(part)
            .and_then(|it| it.set_len(12 << 20))
            .expect("a partition");
    }
    other(mkfs.0, &["-n", "OLD", &fat]);
    other(mcopy, &["-i", &fat, &path("tree/letter"), "::/letter"]);
    other(mkfs.1, &["-q", "-F", "-d", &path("tree"), &ext]);
    let script = b"label: dos\n2048,24576,c\n28672,24576,83\n";
    assert_eq!(run(command("sfdisk", &["-q", &disk]), script).code, 0);
    for (part, at) in [(&fat, 2048 * 512), (&ext, 28672 * 512)] {
        let bytes = std::fs::read(part).expect("a file system");
        image.write_all_at(&bytes, at).expect("the partition");
    }
    disk
}

/// The steps of docs/rescue.md, from the disk and from an image of a virtual machine.
#[test]
fn files_come_out_of_an_old_disk() {
    let programs = [
        "mkfs.vfat",
        "mkfs.ext4",
        "mcopy",
        "debugfs",
        "qemu-img",
        "sfdisk",
    ];
    let programs: Vec<_> = programs.iter().map_while(|name| program(name)).collect();
    let [fat, ext, mcopy, debugfs, qemu_img, _] = programs.as_slice() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let data = noise(9, 300_000);
    let disk = old_disk(folder.path(), (fat, ext), mcopy, &data);
    let machine = path("vm.qcow2");
    other(
        qemu_img,
        &["convert", "-f", "raw", "-O", "qcow2", &disk, &machine],
    );
    for disk in [disk, machine] {
        let shown = with_files(&["show", &disk], None, None).quiet();
        assert!(shown.contains("FAT16") && shown.contains("ext4"), "{shown}");
        for (partition, name) in [("s1", "part.fat"), ("s2", "part.ext")] {
            let target = format!("{disk}@{partition}");
            let file = File::create(path(name)).expect("a file");
            assert_eq!(with_files(&["read", &target], None, Some(file)).code, 0);
        }
        let out = path("letter.fat");
        other(
            mcopy,
            &["-n", "-o", "-i", &path("part.fat"), "::/letter", &out],
        );
        assert!(std::fs::read(&out).expect("the file") == data, "{disk}");
        let out = path("letter.ext");
        let dump = format!("dump /letter {out}");
        other(debugfs, &["-R", &dump, &path("part.ext")]);
        assert!(std::fs::read(&out).expect("the file") == data, "{disk}");
    }
}
