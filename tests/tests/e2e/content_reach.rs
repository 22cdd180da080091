//! Nothing that is recognised is overwritten on a way round: through windows, overlapping
//! partitions, repairs of tables, boot code, metadata in the last sector, and files of results.

use crate::disks;
use crate::run::{Ended, has, ugeom, ugeom_with, words_of};
use crate::serve::serve_nbd;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
/// The magic number of ext2 in its superblock.
const EXT: (u64, &[u8]) = (1080, b"\x53\xef");
/// Magic, version 4 and name.
const MIRROR: &[u8] = b"GEOM::MIRROR\0\0\0\0\x04\0\0\0gm0";

/// An MBR with these partitions: type, first sector, sectors.
fn mbr(path: &Path, size_bytes: u64, partitions: &[(u8, u32, u32)]) {
    let file = File::create(path).expect("a disk");
    file.set_len(size_bytes).expect("its size");
    put_mbr(&file, 0, partitions);
}

fn put_mbr(file: &File, at: u64, partitions: &[(u8, u32, u32)]) {
    for (number, (kind, first, sectors)) in (0..).zip(partitions) {
        let mut entry = vec![0, 0xfe, 0xff, 0xff, *kind, 0xfe, 0xff, 0xff];
        entry.extend(first.to_le_bytes());
        entry.extend(sectors.to_le_bytes());
        let place = at + 446 + 16 * number;
        file.write_all_at(&entry, place).expect("an entry");
    }
    file.write_all_at(b"\x55\xaa", at + 510).expect("the end");
}

fn put(path: &Path, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).expect("the disk");
    file.write_all_at(bytes, at).expect("some bytes");
}

/// Runs a command that must be refused with that text and leave the file alone.
fn refused(path: &Path, run: impl FnOnce(&str) -> Ended, text: &str) {
    let before = std::fs::read(path).expect("the file");
    let error = run(&disks::text(path)).failed(1);
    has(&error, text);
    has(&error, "nothing was written");
    assert!(
        std::fs::read(path).expect("the file") == before,
        "something was written: {error}"
    );
}

fn write_to(target: &str) -> Ended {
    ugeom_with(&["write", target], b"hello")
}

fn disk(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("disk.img")
}

#[test]
fn a_window_into_a_partition_or_a_partition_over_another_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    mbr(&path, 8 * MIB, &[(0x83, 2048, 6144), (0x83, 4096, 2048)]);
    put(&path, MIB + EXT.0, EXT.1);
    let carries = "disk.imgs1 carries an ext2 file system";
    for window in [
        "nop:offset=1049088",
        "nop:offset=2m,size=1m",
        "nop:offset=512,size=4m",
    ] {
        let run = |disk: &str| write_to(&format!("{disk} | {window}"));
        refused(&path, run, carries);
    }
    refused(&path, |disk| write_to(&format!("{disk}@s2")), carries);
    let table = |disk: &str| ugeom(&["part", "create", "-s", "gpt", &format!("{disk}@s2")]);
    refused(&path, table, carries);
    let behind = format!("{} | nop:offset=4m,size=1m", disks::text(&path));
    write_to(&behind).quiet();
    let forced = format!("{}@s2", disks::text(&path));
    ugeom_with(&["write", "--destroy", &forced], b"hello").quiet();
}

#[test]
fn entries_of_a_table_belong_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    disks_of_zeroes(&path, 8 * MIB);
    let target = disks::text(&path);
    ugeom(&["part", "create", "-s", "gpt", &target]).quiet();
    let add = format!("part add -t linux-data -b 2048 -s 2048 {target}");
    let add = words_of(&add);
    ugeom(&add).quiet();
    let backup = 8 * MIB - 33 * 512;
    for window in ["offset=1k,size=16k", &format!("offset={backup},size=1k")] {
        let run = |disk: &str| write_to(&format!("{disk} | nop:{window}"));
        refused(&path, run, "disk.img carries a GPT (at byte 512)");
    }
    write_to(&format!("{target} | nop:offset=4m,size=1m")).quiet();
    let extended = folder.path().join("extended.img");
    mbr(&extended, 8 * MIB, &[(0x0f, 2048, 8192)]);
    let file = File::options()
        .write(true)
        .open(&extended)
        .expect("the disk");
    put_mbr(&file, MIB, &[(0x83, 2048, 2048), (0x05, 4096, 4096)]);
    put_mbr(&file, 3 * MIB, &[(0x83, 2048, 2048)]);
    let run = |disk: &str| write_to(&format!("{disk} | nop:offset=3145216,size=64k"));
    refused(
        &extended,
        run,
        "extended.imgs1 carries extended boot records",
    );
    write_to(&format!(
        "{} | nop:offset=4m,size=64k",
        disks::text(&extended)
    ))
    .quiet();
    write_to(&format!("{}@s5", disks::text(&extended))).quiet();
}

#[test]
fn a_partition_beside_a_file_system_may_be_written_below_one_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    disks_of_zeroes(&path, 8 * MIB);
    let target = disks::text(&path);
    ugeom(&["part", "create", "-s", "bsd", &target]).quiet();
    for start in ["0", "8192"] {
        let add = format!("part add -t freebsd-ufs -b {start} -s 4096 {target}");
        let add = words_of(&add);
        ugeom(&add).quiet();
    }
    // UFS1 in the first partition, which the raw partition shows, too.
    put(&path, 8192 + 1372, b"\x19\x01\x54\x19");
    put(&path, 65536 + 1372, b"\x19\x01\x54\x19");
    write_to(&format!("{target}@b")).quiet();
    let run = |disk: &str| write_to(&format!("{disk} | nop:offset=1m,size=64k"));
    refused(&path, run, "disk.imga carries a UFS");
}

#[test]
fn a_table_is_not_written_over_metadata_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    disks_of_zeroes(&path, 8 * MIB);
    let target = disks::text(&path);
    ugeom(&["part", "create", "-s", "gpt", &target]).quiet();
    File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(9 * MIB))
        .expect("a longer disk");
    put(&path, 9 * MIB - 512, MIRROR);
    let mirror = "disk.img carries metadata of GEOM::MIRROR \"gm0\"";
    let keep = disks::at(&folder, "kept");
    let recover = |disk: &str| ugeom(&["part", "recover", "--keep", &keep, disk]);
    refused(&path, recover, mirror);
    assert!(!Path::new(&keep).exists(), "nothing is kept of no change");
    ugeom(&["part", "recover", "--destroy", "--keep", &keep, &target]).quiet();
}

#[test]
fn boot_code_is_not_written_over_a_file_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    mbr(&path, 8 * MIB, &[(0xa5, 2048, 6144)]);
    put(&path, MIB + EXT.0, EXT.1);
    let code = disks::file(&folder, "code", vec![0x90; 16_384]);
    let arguments = ["part", "bootcode", "-p", &code, "-i", "1"];
    let run = |disk: &str| ugeom(&[&arguments[..], &[disk]].concat());
    refused(
        &path,
        run,
        "disk.imgs1 carries an ext2 file system (at byte 1080) where the code",
    );
    let disk = disks::text(&path);
    let forced = [&arguments[..], &["--destroy", &disk]].concat();
    ugeom(&forced).quiet();
}

#[test]
fn metadata_of_geli_is_not_written_over_the_copy_of_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| disks::at(&folder, name);
    let (key, backup) = (place("key"), place("backup"));
    std::fs::write(&key, b"secret").expect("a key");
    let encrypted = folder.path().join("encrypted.img");
    disks_of_zeroes(&encrypted, 8 * MIB);
    let init = ["geli", "init", "-P", "-K", &key, "-B", &backup];
    ugeom(&[&init[..], &[&disks::text(&encrypted)]].concat());
    let path = disk(&folder);
    disks_of_zeroes(&path, 8 * MIB);
    ugeom(&["part", "create", "-s", "gpt", &disks::text(&path)]).quiet();
    let restore = |disk: &str| ugeom(&["geli", "restore", &backup, disk]);
    refused(&path, restore, "disk.img carries a GPT");
    ugeom(&["geli", "restore", "--destroy", &backup, &disks::text(&path)]).quiet();
    // A backup is replaced by another one.
    ugeom(&["geli", "backup", &disks::text(&encrypted), &backup]).quiet();
}

#[test]
fn results_are_not_written_over_a_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| disks::at(&folder, name);
    let path = disk(&folder);
    mbr(&path, 8 * MIB, &[(0x83, 2048, 6144)]);
    let (key, encrypted, none) = (place("key"), place("encrypted.img"), place("none"));
    std::fs::write(&key, b"secret").expect("a key");
    disks_of_zeroes(Path::new(&encrypted), MIB);
    let init = ["geli", "init", "-P", "-K", &key, "-B", "none", &encrypted];
    ugeom(&init).quiet();
    let mbr = "it carries an MBR (at byte 446)";
    let backup = |disk: &str| ugeom(&["geli", "backup", &encrypted, disk]);
    refused(&path, backup, mbr);
    let luks = folder.path().join("luks.img");
    disks_of_zeroes(&luks, MIB);
    put(&luks, 0, b"LUKS\xba\xbe\0\x01");
    refused(&luks, backup, "it carries a LUKS1 container (at byte 0)");
    // One backup over another.
    let kept = place("kept.eli");
    backup(&kept).quiet();
    backup(&kept).quiet();
    let job = words_of("run --name=a --filename=md:1m --rw=read --size=64k");
    let run = |disk: &str| ugeom(&[&job[..], &[&format!("--output={disk}")]].concat());
    refused(&path, run, mbr);
    let before = std::fs::read(&path).expect("the disk");
    let log = format!("md:1m | crash:log={}", disks::text(&path));
    let error = write_to(&log).failed(1);
    has(&error, "it is not a crash log and is not overwritten");
    assert!(std::fs::read(&path).expect("the disk") == before);
    for _ in 0..2 {
        write_to(&format!("md:1m | crash:log={none}")).quiet();
    }
}

/// fio's engines and a sweep write to the bytes of a file, whatever the stack language makes of it.
#[test]
fn jobs_and_sweeps_do_not_write_over_an_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    for magic in [&b"QFI\xfb\0\0\0\x03"[..], b"\x1f\x8b\x08\0"] {
        disks_of_zeroes(&path, MIB);
        put(&path, 0, magic);
        let before = std::fs::read(&path).expect("the image");
        let file = format!("--filename={}", disks::text(&path));
        let job = ["run", "--name=a", &file, "--rw=write", "--size=64k"];
        let image = disks::text(&path);
        let sweep = ["lab", "sweep", "--write", "--budget", "1s", &image];
        for command in [&job[..], &sweep] {
            let ended = ugeom(command);
            assert_eq!(ended.code, 1, "{}", ended.stderr);
            has(&ended.stderr, "carries a");
            assert!(std::fs::read(&path).expect("the image") == before);
        }
    }
}

fn disks_of_zeroes(path: &Path, size_bytes: u64) {
    let file = File::create(path).expect("a disk");
    file.set_len(size_bytes).expect("its size");
}

/// Boot sectors end as an MBR does. A change of a table that is none, and destroying the one beside
/// which a FAT begins, would cost the file system.
#[test]
fn boot_sectors_are_no_tables_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let add = |target: &str| ugeom(&["part", "add", "-t", "freebsd", target]);
    let destroy = |target: &str| ugeom(&["part", "destroy", "-F", target]);
    let within = |target: &str| format!("{target}|nop:offset=512");
    let made = |name: &str, arguments: &[&str]| {
        let Some(mkfs) = ugeom_testkit::program(name) else { return false };
        let file = File::create(&path).expect("a disk");
        file.set_len(64 * MIB).expect("its size");
        crate::run::other(mkfs, &[arguments, &[&disks::text(&path)]].concat());
        true
    };
    let none = "no partition table";
    if made("mkfs.exfat", &[]) {
        for change in [&add as &dyn Fn(&str) -> Ended, &destroy] {
            let before = std::fs::read(&path).expect("the file");
            let error = change(&disks::text(&path)).failed(1);
            has(&error, none);
            assert!(std::fs::read(&path).expect("the file") == before, "{error}");
            refused(
                &path,
                |target| change(&within(target)),
                "an exFAT file system",
            );
        }
    }
    // Its second sector ends like an MBR, too.
    if made("mkfs.vfat", &["-F", "32", "--mbr=no"]) {
        refused(&path, |target| add(&within(target)), "a FAT32 file system");
        refused(
            &path,
            |target| destroy(&within(target)),
            "a FAT32 file system",
        );
        let recover = |target: &str| ugeom(&["part", "recover", &within(target)]);
        refused(&path, recover, "a FAT32 file system");
    }
    // A FAT with a table that lists it.
    if made("mkfs.vfat", &["-F", "32", "--mbr=yes"]) {
        refused(&path, destroy, "a FAT32 file system");
        refused(
            &path,
            |target| destroy(&within(target)),
            "a FAT32 file system",
        );
    }
}

/// An ISO image may begin with an MBR that has no partitions.
#[test]
fn an_empty_table_on_a_file_system_is_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    mbr(&path, 8 * MIB, &[]);
    put(&path, 32_768, b"\x01CD001\x01");
    let said = "an ISO 9660 file system (at byte 32769) beside a MBR without partitions";
    let verbs: [&[&str]; 2] = [&["add", "-t", "freebsd"], &["destroy"]];
    for verb in verbs {
        let run = |target: &str| ugeom(&[&["part"], verb, &[target]].concat());
        refused(&path, run, said);
    }
    let create = ["part", "create", "--destroy", "-s", "mbr"];
    let target = disks::text(&path);
    ugeom(&[&create[..], &[target.as_str()]].concat()).quiet();
    ugeom(&["part", "add", "-t", "freebsd", &target]).quiet();
}

#[test]
fn an_lzma_file_and_a_loop_label_are_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    let lzma = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x01\x02";
    let label = b"GNU Parted Loopback 0";
    for (magic, said) in [
        (&lzma[..], "carries an lzma file (at byte 0)"),
        (label, "a loop label of parted (at byte 0)"),
    ] {
        disks_of_zeroes(&path, MIB);
        put(&path, 0, magic);
        refused(&path, write_to, said);
        let create = |target: &str| ugeom(&["part", "create", "-s", "gpt", target]);
        refused(&path, create, said);
    }
}

/// qemu-nbd would open it for writing, and change it.
#[test]
fn a_compressed_vmdk_is_not_opened_for_writing() {
    let Some(qemu_img) = ugeom_testkit::program("qemu-img") else { return };
    if ugeom_testkit::program("qemu-nbd").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.vmdk");
    let format = "subformat=streamOptimized";
    let text = disks::text(&path);
    let create = ["create", "-q", "-f", "vmdk", "-o", format, &text, "8M"];
    crate::run::other(qemu_img, &create);
    let before = std::fs::read(&path).expect("the image");
    let error = write_to(&text).failed(1);
    has(&error, "a compressed vmdk image (streamOptimized)");
    assert!(std::fs::read(&path).expect("the image") == before);
    ugeom(&["show", &text]).quiet();
}

/// The metadata of a mirror is in its last sector, and a longer image would have none.
#[test]
fn jobs_that_read_do_not_make_an_image_longer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    disks_of_zeroes(&path, MIB);
    put(&path, MIB - 512, b"GEOM::MIRROR");
    let before = std::fs::read(&path).expect("the image");
    let file = format!("--filename={}", disks::text(&path));
    for more in ["--size=2m", "--size=1028k", "--create_only=1 --size=2m"] {
        let mut job = vec!["run", "--name=a", &file, "--rw=read"];
        job.extend(more.split(' '));
        let ended = ugeom(&job);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        has(&ended.stderr, "carries metadata of GEOM::MIRROR");
        assert!(std::fs::read(&path).expect("the image") == before);
    }
    let within = ["run", "--name=a", &file, "--rw=read", "--size=1m"];
    assert_eq!(ugeom(&within).code, 0);
    let meant = format!("run --destroy --name=a {file} --rw=read --size=2m");
    let meant = words_of(&meant);
    assert_eq!(ugeom(&meant).code, 0);
    assert!(std::fs::read(&path).expect("the image").len() == 2 << 20);
}

/// `--destroy` is for what an image carries, not for the program that works on it.
#[test]
fn jobs_and_sweeps_do_not_write_to_an_image_that_is_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    disks_of_zeroes(&path, MIB);
    let image = disks::text(&path);
    let file = format!("--filename={image}");
    let job = ["run", "--destroy", "--name=a", &file, "--size=64k"];
    let jobs = ["--rw=write", "--rw=trim", "--ioengine=ftruncate"].map(|more| {
        let write = ["--rw=write", more];
        [&job[..], &write].concat()
    });
    let sweep = format!("lab sweep --write --destroy --budget 1s {image}");
    let sweep = words_of(&sweep);
    let engines = ["lab", "engines", "--destroy", "--budget", "1s", &image];
    let served = serve_nbd(folder.path(), "s", &image, &["--rw"]);
    let others = [&sweep[..], &engines];
    for command in jobs.iter().map(Vec::as_slice).chain(others) {
        let before = std::fs::read(&path).expect("the image");
        let ended = ugeom(command);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        has(&ended.stderr, "another program has it open");
        assert!(std::fs::read(&path).expect("the image") == before);
    }
    drop(served);
    assert_eq!(ugeom(&jobs[0]).code, 0);
}

/// A file that is shorter than a sector may be an image, too.
#[test]
fn jobs_do_not_write_over_a_short_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.vmdk");
    std::fs::write(&path, "# Disk DescriptorFile\nversion=1\n").expect("a descriptor");
    let job = |file: &str| {
        let file = format!("--filename={file}");
        ugeom(&["run", "--name=a", &file, "--rw=write", "--size=64k"])
    };
    let before = std::fs::read(&path).expect("the descriptor");
    let ended = job(&disks::text(&path));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let said = "it carries a VMDK descriptor (at byte 0)";
    has(&ended.stderr, said);
    assert!(std::fs::read(&path).expect("the descriptor") == before);
    std::fs::write(&path, "no image").expect("a file");
    assert_eq!(job(&disks::text(&path)).code, 0);
}

/// Nothing is recognised on the device, and yet it is not the file that was meant.
#[test]
fn results_are_not_written_onto_a_block_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disk(&folder);
    disks_of_zeroes(&path, MIB);
    let Some(device) = ugeom_testkit::LoopDevice::over(&path, &[]) else { return };
    let device: &str = &device.text();
    let iolog = format!("--write_iolog={device}");
    let output = format!("--output={device}");
    let crash = format!("md:1m | crash:log={device}");
    let job = ["run", "--name=a", "--filename=md:1m", "--rw=read"];
    let commands: [&[&str]; 6] = [
        &[job[0], job[1], job[2], job[3], &output],
        &[job[0], job[1], job[2], job[3], &iolog],
        &[
            "lab", "layers", "--force", "--json", device, "--budget", "1s",
        ],
        &[
            "lab", "layers", "--force", "--report", device, "--budget", "1s",
        ],
        &[
            "raidtest", "genfile", "-f", "-s", "1048576", "-S", "512", "-n", "4", device,
        ],
        &["show", &crash],
    ];
    for command in commands {
        let ended = ugeom(command);
        assert_ne!(ended.code, 0, "{command:?}");
        let said = "a block device; name a file for the result";
        assert!(ended.stderr.contains(said), "{command:?}: {}", ended.stderr);
        let zeroes = std::fs::read(&path).expect("the disk");
        assert!(zeroes.iter().all(|byte| *byte == 0), "{command:?}");
    }
}
