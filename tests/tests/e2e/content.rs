//! The content of a disk is listed, and not overwritten by mistake.

use crate::disks;
use crate::run::{UGEOM, command, has, json_of, run, ugeom, ugeom_with, words_of};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use ugeom_testkit::program;

/// An image of zeroes with some bytes at some places.
fn image(folder: &Path, places: &[(u64, &[u8])]) -> PathBuf {
    let path = folder.join("disk.img");
    let file = File::create(&path).expect("an image");
    file.set_len(4 << 20).expect("its size");
    for (offset, bytes) in places {
        file.write_all_at(bytes, *offset).expect("a signature");
    }
    path
}

/// Bytes of a structure, with their offsets on the disk.
type Places = &'static [(u64, &'static [u8])];

/// The kinds that were overwritten without a question once, and a few more.
#[rustfmt::skip]
const KINDS: &[(&str, Places)] = &[
    ("a Sun disk label", &[(508, b"\xda\xbe\xda\xbe")]),
    ("an SGI volume header", &[(0, b"\x0b\xe5\xa9\x41")]),
    ("a PC-98 partition table", &[(4, b"IPL1"), (510, b"\x55\xaa")]),
    ("an Amiga rigid disk block", &[(0, b"RDSK\0\0\0\x40")]),
    ("an Atari partition table", &[(0x1c6, b"\x01GEM\0\0\0\x02\0\0\x01\0")]),
    ("a big-endian BSD disklabel", &[(64, b"\x82\x56\x45\x57"), (196, b"\x82\x56\x45\x57")]),
    ("an MBR with unusual flags",
        &[(446, b"\x42\0\0\0\x83\0\0\0\x01\0\0\0\x09\0\0\0"), (510, b"\x55\xaa")]),
    ("a damaged GPT", &[(4096, b"EFI PART\0\0\x01\0"), (4096 + 24, b"\x01")]),
    ("a JFS file system", &[(32768, b"JFS1")]),
    ("a ReiserFS file system", &[(65536 + 52, b"ReIsEr2Fs")]),
    ("an HFS file system", &[(1024, b"BD")]),
    ("a BFS file system", &[(0, b"\xce\xfa\xad\x1b")]),
    ("a cramfs file system", &[(0, b"\x45\x3d\xcd\x28")]),
    ("an EROFS file system", &[(1024, b"\xe2\xe1\xf5\xe0")]),
    ("a bcache device",
        &[(4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81")]),
    ("a UFS2 (big-endian) file system", &[(65536 + 1372, b"\x19\x54\x01\x19")]),
    ("a VMFS file system", &[(2 << 20, b"\x5e\xf1\xab\x2f")]),
    ("a member of a DDF RAID", &[((4 << 20) - 512, b"\xde\x11\xde\x11")]),
    ("a member of an Intel RAID", &[((4 << 20) - 1024, b"Intel Raid ISM Cfg Sig. 1.0.00")]),
    ("a BitLocker volume", &[(0, b"\xeb\x52\x90-FVE-FS-")]),
    ("a BitLocker volume", &[(0, b"\xeb\x58\x90-FVE-FS-"), (510, b"\x55\xaa")]),
    ("an Android super partition", &[(4096, b"gDla\x34\0\0\0")]),
    ("a ChromeOS kernel", &[(0, b"CHROMEOS")]),
    ("a Core Storage volume", &[(8, b"\x01\0\x10\0"), (88, b"CS\x01\0")]),
    ("a member of a Windows storage pool", &[(0, b"SPACEDB ")]),
    ("a qcow2 image", &[(0, b"QFI\xfb\0\0\0\x03")]),
    ("a VMDK image", &[(0, b"KDMV")]),
    ("an SQLite database", &[(0, b"SQLite format 3\0")]),
    ("a VDI image", &[(64, b"\x7f\x10\xda\xbe")]),
    ("a VHDX image", &[(0, b"vhdxfile")]),
    ("metadata of GEOM::MIRROR", &[((4 << 20) - 512, b"GEOM::MIRROR")]),
];

#[test]
fn no_kind_of_content_is_overwritten_unasked() {
    for (title, places) in KINDS {
        let folder = tempfile::tempdir().expect("a folder");
        let path = image(folder.path(), places);
        let (mut target, before) = (disks::text(&path), std::fs::read(&path).expect("the image"));
        if title.ends_with("image") {
            // Opened as such, this one is too damaged; its bytes are reached in another way.
            let opened = ugeom_with(&["write", "--destroy", &target], b"hello").failed(1);
            assert!(opened.contains("?format=raw opens"), "{title}: {opened}");
            target += "?format=raw";
        }
        let writing = ugeom_with(&["write", &target], b"hello").failed(1);
        let making = ugeom(&["part", "create", "-s", "gpt", &target]).failed(1);
        for refused in [writing, making] {
            let said = format!("disk.img carries {title}");
            assert!(refused.contains(&said), "{title}: {refused}");
            has(&refused, "nothing was written, --destroy");
        }
        assert!(
            std::fs::read(&path).expect("the image") == before,
            "{title}"
        );
        let forced = ["part", "create", "-s", "gpt", "--destroy", &target];
        assert_eq!(ugeom(&forced).code, 0, "{title}");
        let left = ugeom(&["part", "create", "-s", "gpt", &target]).failed(1);
        assert!(left.contains("a GPT") && !left.contains(title), "{left}");
        let forced = ugeom_with(&["write", "--destroy", &target], b"hello");
        assert_eq!(forced.code, 0, "{}", forced.stderr);
        assert!(
            std::fs::read(&path)
                .expect("the image")
                .starts_with(b"hello")
        );
    }
}

#[test]
fn a_window_does_not_hide_the_file_system_that_it_cuts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = image(folder.path(), &[(32768, b"JFS1")]);
    let before = std::fs::read(&path).expect("the image");
    for window in [
        "nop:offset=512",
        "nop:offset=2m",
        "nop:offset=512,delay=1us",
    ] {
        let target = format!("{} | {window}", disks::text(&path));
        let refused = ugeom_with(&["write", &target], b"hello").failed(1);
        has(&refused, "disk.img carries a JFS file system");
    }
    assert!(std::fs::read(&path).expect("the image") == before);
}

#[test]
fn a_window_beside_the_table_may_be_written() {
    let (_folder, path) = disks::partitioned_image(8192, 63, 100);
    let target = format!("{} | nop:offset=1m,size=1m", disks::text(&path));
    ugeom_with(&["write", &target], b"hello").quiet();
    let read = std::fs::read(&path).expect("the image");
    assert_eq!(&read[1 << 20..][..5], b"hello");
}

#[test]
fn show_lists_what_each_provider_carries() {
    let Some(mkfs) = program("mkfs.ext4") else { return };
    let (_folder, path) = disks::partitioned_image(40_960, 2048, 32_768);
    let offset = format!("offset={}", 2048 * 512);
    let mut command = Command::new(mkfs);
    command.args(["-q", "-F", "-L", "root", "-b", "1024", "-E", &offset]);
    let made = command.arg(&path).arg("16384").output().expect("mkfs.ext4");
    assert!(made.status.success(), "{made:?}");
    let target = disks::text(&path);
    let shown = ugeom(&["show", &target]).quiet();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].ends_with("CONTENT"), "{shown}");
    assert!(lines[1].ends_with("  MBR"), "{shown}");
    assert!(lines[2].ends_with("  ext4 \"root\""), "{shown}");
    let json = json_of(ugeom(&["show", "--json", &target]).quiet());
    let inside = &json["providers"][0]["geoms"][0]["providers"][0]["contents"][0];
    assert_eq!(inside["name"], "ext4");
    assert_eq!(inside["label"], "root");
    let xml = ugeom(&["show", "--xml", &target]).quiet();
    assert!(
        xml.contains("<content>ext4 &quot;root&quot;</content>") || xml.contains("ext4"),
        "{xml}"
    );
    let verbose = ugeom(&["diskinfo", "-v", &format!("{target}@s1")]).quiet();
    has(&verbose, "ext4 \"root\"");
}

#[test]
fn a_table_that_is_not_listed_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = image(folder.path(), &[(508, b"\xda\xbe\xda\xbe")]);
    let ended = ugeom(&["show", &disks::text(&path)]);
    let (shown, warned) = (ended.text(), &ended.stderr);
    has(&shown, "VTOC8");
    let reason = "the Sun label has 0 heads at byte 436 and 0 sectors a track at byte 438";
    has(&warned, reason);
}

#[test]
fn a_file_that_does_not_fit_is_refused_before_the_first_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = image(folder.path(), &[]);
    let input = folder.path().join("input");
    std::fs::write(&input, vec![1; (4 << 20) + 1]).expect("an input");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ugeom-under-test"));
        command.arg("write").arg(&path).args(arguments);
        let output = command
            .stdin(File::open(&input).expect("the input"))
            .output();
        output.expect("ugeom")
    };
    for (arguments, why) in [
        (
            &[][..],
            "the input has 4,194,305 bytes, but only 4,194,304 are left",
        ),
        (&["--length", "5m"][..], "lies past the end"),
    ] {
        let output = run(arguments);
        assert!(!output.status.success());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        has(&stderr, why);
    }
    assert!(std::fs::read(&path).expect("the image") == vec![0; 4 << 20]);
    let short = run(&["--offset", "0", "--length", "4m"]);
    assert!(short.status.success(), "{short:?}");
}

#[test]
fn ctrl_c_reports_how_much_was_written() {
    use std::io::Write;
    use std::process::Stdio;
    let folder = tempfile::tempdir().expect("a folder");
    let path = image(folder.path(), &[]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ugeom-under-test"))
        .arg("write")
        .arg(&path)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ugeom");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&vec![5; 1 << 20]).expect("a first MiB");
    // All of it has been read, and so written, when the pipe is empty.
    while rustix::io::ioctl_fionread(&stdin).expect("the pipe") > 0 {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("its end");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    has(
        &stderr,
        "interrupted: 1,048,576 bytes from offset 0 were written",
    );
    drop(stdin);
    assert!(std::fs::read(&path).expect("the image")[..1 << 20] == vec![5; 1 << 20]);
}

/// What the shell does not truncate, and files that a job would remove.
#[test]
fn neither_stdout_nor_unlink_destroys_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = image(folder.path(), &[(32768, b"JFS1")]);
    let target = disks::text(&path);
    let before = std::fs::read(&path).expect("the image");
    let read = |more: &str, redirection: &str| {
        let line = format!("'{UGEOM}' read md:64k {more} {redirection}'{target}'");
        run(command("sh", &["-c", &line]), b"")
    };
    let map = disks::at(&folder, "disk.map");
    let rescue = format!("--skip-errors --map '{map}'");
    for more in ["", "--skip-errors", &*rescue] {
        has(&read(more, "1<>").failed(1), "carries a JFS file system");
        assert!(std::fs::read(&path).expect("the image") == before, "{more}");
    }
    for option in ["--unlink=1", "--loops=2 --unlink_each_loop=1"] {
        let line = format!("run --name=x --rw=read --size=4k {option} --filename={target}");
        let refused = ugeom(&words_of(&line));
        assert_eq!(refused.code, 1, "{option}");
        has(&refused.stderr, "carries a JFS file system");
        assert!(
            std::fs::read(&path).expect("the image") == before,
            "{option}"
        );
    }
    // What is appended overwrites nothing; a map of an earlier run, and --destroy, allow it.
    assert_eq!(read("", ">>").code, 0);
    let longer = std::fs::read(&path).expect("the image");
    assert_eq!(
        (longer.len(), &longer[..before.len()]),
        (before.len() + (64 << 10), &before[..])
    );
    assert_eq!(read("--destroy", "1<>").code, 0);
    std::fs::write(&path, &before).expect("the image");
    let other = format!("'{UGEOM}' read md:64k {rescue} > '{target}.copy'");
    assert_eq!(run(command("sh", &["-c", &other]), b"").code, 0);
    assert_eq!(read(&rescue, "1<>").code, 0);
    let removed =
        format!("run --destroy --name=x --rw=read --size=4k --unlink=1 --filename={target}");
    assert_eq!(ugeom(&words_of(&removed)).code, 0);
    assert!(!path.exists());
}

/// A CD's map in blocks of 2048 bytes, and a disk with sectors of 4096 copied by an adapter.
#[test]
fn a_table_for_sectors_of_another_size_is_named_and_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = image(
        folder.path(),
        &[(0, b"ER\x08\x00"), (2048, b"PM\0\0\0\0\0\x01")],
    );
    let target = disks::text(&path);
    has(
        &ugeom(&["show", &target]).stderr,
        "?sectorsize=2048 opens it",
    );
    let with_mbr = [
        (446, &b"\0\0\0\0\x83\0\0\0\x01\0\0\0\x09\0\0\0"[..]),
        (510, b"\x55\xaa"),
    ];
    let cd = [
        (0, &b"ER\x08\x00"[..]),
        (2048, b"PM\0\0\0\0\0\x01"),
        with_mbr[0],
        with_mbr[1],
    ];
    let path = image(folder.path(), &cd);
    ugeom(&["show", &disks::text(&path)]).quiet();

    let path = image(folder.path(), &[]);
    let target = disks::text(&path);
    let native = format!("{target}?sectorsize=4096");
    ugeom(&["part", "create", "-s", "gpt", &native]).text();
    ugeom(&[
        "part",
        "add",
        "-t",
        "linux-data",
        "-b",
        "256",
        "-s",
        "256",
        &native,
    ])
    .text();
    // Only the second copy is left.
    let file = File::options().write(true).open(&path).expect("the image");
    file.write_all_at(&vec![0; 1 << 20], 0).expect("no table");
    let found = json_of(ugeom(&["part", "search", "--json", &target]).quiet());
    let one = &found["partitions"][0];
    assert_eq!(
        (one["start_sector"].as_u64(), one["sectors"].as_u64()),
        (Some(2048), Some(2048)),
        "{found:#}"
    );
}
