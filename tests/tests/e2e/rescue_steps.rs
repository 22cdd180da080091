//! The steps of docs/rescue.md for each file system: a disk that other programs made, its partition
//! by `ugeom read` and as a file of a mount, and the file that comes out of both.

use crate::crash::has_files;
use crate::run::{UGEOM, command, has, other, run, ugeom};
use crate::serve::noise;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use ugeom_testkit::program;

const DATA_BYTES: usize = 300_000;
const PART_MIB: u64 = 24;

/// How a file system is made with the folder `tree` in it, and how `letter` is taken out of
/// `part.img` again: commands for a shell.
struct Steps {
    holds: &'static str,
    programs: &'static [&'static str],
    make: &'static str,
    take: &'static str,
}

const STEPS: [Steps; 5] = [
    Steps {
        holds: "FAT16",
        programs: &["mkfs.vfat", "mcopy"],
        make: "mkfs.vfat -n OLD made && mcopy -i made tree/letter ::/",
        take: "mcopy -n -i $part ::/letter out/",
    },
    Steps {
        holds: "ext4",
        programs: &["mkfs.ext4", "debugfs"],
        make: "mkfs.ext4 -q -F -d tree made",
        take: "debugfs -R 'rdump /letter out' $part",
    },
    Steps {
        holds: "NTFS",
        programs: &["mkntfs", "ntfscp", "7z"],
        make: "mkntfs -F -Q -q made && ntfscp -q made tree/letter letter",
        take: "7z x -y -oout $part letter",
    },
    Steps {
        holds: "UFS1",
        programs: &["makefs", "grub-fstest"],
        make: "makefs -t ffs -s 24m -o version=1 made tree",
        take: "grub-fstest $part cp /letter out/letter",
    },
    Steps {
        holds: "UFS2",
        programs: &["makefs", "grub-fstest"],
        make: "makefs -t ffs -s 24m -o version=2 made tree",
        take: "grub-fstest $part cp /letter out/letter",
    },
];

fn shell(folder: &Path, script: &str, part: &str) {
    let mut shell = command("sh", &["-ec", script]);
    let path = "/usr/sbin:/sbin:/usr/bin:/bin";
    shell
        .current_dir(folder)
        .env("part", part)
        .env("PATH", path);
    let ended = run(shell, b"");
    assert_eq!(ended.code, 0, "{script}: {}{}", ended.text(), ended.stderr);
}

/// A folder with `tree/letter` in it.
fn tree(data: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("tree")).expect("a tree");
    std::fs::write(folder.path().join("tree/letter"), data).expect("a file");
    folder
}

/// Copies a partition out, and takes the file out of that, and out of a file of a mount.
fn comes_out(folder: &Path, disk: &Path, partition: &str, take: &str, data: &[u8]) {
    let read = ugeom(&["read", &format!("{}@{partition}", disk.display())]);
    assert_eq!(read.code, 0, "{}", read.stderr);
    std::fs::write(folder.join("part.img"), &read.stdout).expect("the partition");
    let out = folder.join("out");
    let fresh = || {
        let _ = std::fs::remove_dir_all(&out);
        std::fs::create_dir(&out).expect("a folder");
    };
    let same = |way: &str| {
        let found = std::fs::read(out.join("letter")).unwrap_or_default();
        assert!(found == data, "{take}, {way}");
    };
    fresh();
    shell(folder, take, "part.img");
    same("a copy of the partition");
    if !has_files() {
        return;
    }
    fresh();
    let mounted = folder.join("mnt");
    let _ = std::fs::create_dir(&mounted);
    let name = disk.file_name().expect("a name").to_string_lossy();
    let serve = format!(
        "{UGEOM} serve {name} --fuse mnt --run '{}'",
        take.replace('\'', "'\\''")
    );
    shell(folder, &serve, &format!("mnt/{name}{partition}"));
    same("a file of a mount");
}

fn with_table(folder: &Path, sfdisk: &Path) -> PathBuf {
    let disk = folder.join("old.img");
    let image = File::create(&disk).expect("a disk");
    image.set_len((PART_MIB + 2) << 20).expect("its size");
    let name = disk.display().to_string();
    let script = format!("label: dos\n2048,{},83\n", PART_MIB << 11);
    let made = run(command(sfdisk, &["-q", &name]), script.as_bytes());
    assert_eq!(made.code, 0, "{}", made.stderr);
    let bytes = std::fs::read(folder.join("made")).expect("a file system");
    image.write_all_at(&bytes, 1 << 20).expect("the partition");
    disk
}

#[test]
fn files_come_out_of_each_file_system() {
    let Some(sfdisk) = program("sfdisk") else { return };
    let data = noise(11, DATA_BYTES);
    for steps in &STEPS {
        if !steps.programs.iter().all(|name| program(name).is_some()) {
            continue;
        }
        let folder = tree(&data);
        let made = File::create(folder.path().join("made"));
        made.and_then(|file| file.set_len(PART_MIB << 20))
            .expect("a partition");
        shell(folder.path(), steps.make, "");
        let disk = with_table(folder.path(), &sfdisk);
        let shown = ugeom(&["show", &disk.display().to_string()]).quiet();
        assert!(shown.contains(steps.holds), "{}: {shown}", steps.holds);
        comes_out(folder.path(), &disk, "s1", steps.take, &data);
    }
}

/// An Apple partition map with an HFS+ of xorriso.
#[test]
fn files_come_out_of_an_apple_disk() {
    let (Some(_), Some(xorriso)) = (program("7z"), program("xorriso")) else { return };
    let data = noise(12, DATA_BYTES);
    let folder = tree(&data);
    let path = |name: &str| folder.path().join(name);
    let (disk, from) = (path("apple.img"), path("tree").display().to_string());
    let name = disk.display().to_string();
    let make = [
        "-as", "mkisofs", "-quiet", "-hfsplus", "-V", "OLD", "-o", &name, &from,
    ];
    other(&xorriso, &make);
    let shown = ugeom(&["show", &name]).quiet();
    has(&shown, "HFS+ \"OLD\"");
    comes_out(
        folder.path(),
        &disk,
        "s3",
        "7z e -y -tHFS -oout $part",
        &data,
    );
}
