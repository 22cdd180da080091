//! Lost partitions: file systems of real programs in a disk whose table was zeroed; testdisk is
//! asked, too.

use crate::disks;
use crate::run::{has, json_of, other, ugeom};
use serde_json::Value;
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use ugeom_testkit::{begins, program};

pub const MIB: u64 = 1 << 20;

/// Programs that make a file system, with their size in MiB and what `part search` calls it.
const MADE: [Maker; 10] = [
    ("mkfs.ext4", &["-q", "-F"], 24, "ext"),
    ("mkfs.vfat", &["-F", "32"], 40, "FAT"),
    ("mkfs.vfat", &["-F", "16"], 20, "FAT"),
    ("mkntfs", &["-F", "-Q", "-q"], 12, "NTFS"),
    ("mkfs.exfat", &[], 12, "exFAT"),
    ("mkfs.xfs", &["-q"], 304, "XFS"),
    ("mkfs.btrfs", &["-q"], 128, "btrfs"),
    ("mkfs.f2fs", &["-q"], 64, "F2FS"),
    ("mkfs.hfsplus", &[], 16, "HFS+"),
    ("mkswap", &[], 8, "Linux swap"),
];

/// The same of other systems, and of other options.
const OTHERS: [Maker; 14] = [
    ("mkfs.jfs", &["-q"], 24, "JFS"),
    ("mkfs.nilfs2", &["-q"], 130, "NILFS2"),
    ("mkfs.reiserfs", &["-q", "-f"], 40, "ReiserFS"),
    ("hformat", &[], 8, "HFS"),
    ("make-bcache", &["-B"], 8, "bcache"),
    ("mkfs.gfs2", &["-q", "-O", "-p", "lock_nolock"], 40, "GFS2"),
    ("make-bcache", &["-C"], 80, "bcache"),
    ("mkudffs", &["-b", "2048", "--media-type=hd"], 16, "UDF"),
    ("mkfs.minix", &["-1"], 8, "Minix"),
    ("mkfs.minix", &["-3"], 16, "Minix"),
    ("mkfs.bfs", &[], 4, "BFS"),
    (
        "mkfs.ext4",
        &["-q", "-F", "-b", "1024", "-O", "^has_journal,bigalloc"],
        24,
        "ext",
    ),
    ("mkswap", &["-q", "-p", "65536"], 8, "Linux swap"),
    (
        "mkfs.ocfs2",
        &["-q", "-x", "-M", "local", "-F"],
        256,
        "OCFS2",
    ),
];

/// A program with its arguments, the size in MiB of what it makes, the name of that.
type Maker = (&'static str, &'static [&'static str], u64, &'static str);

/// Where these programs are; `None` without one of them.
fn programs<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    let found: Option<Vec<_>> = names.iter().map(|name| program(name)).collect();
    found?.try_into().ok()
}

/// A new file of that size, all zeroes.
pub fn file_of(path: impl AsRef<Path>, mib: u64) -> File {
    let file = File::create(path).expect("a file");
    file.set_len(mib * MIB).expect("its size");
    file
}

/// A disk with one file system of each program, and where they are, in MiB.
fn disk(path: &Path, folder: &Path, makers: &[Maker]) -> Vec<(u64, u64, &'static str)> {
    let mut made = Vec::new();
    let mut at = 1;
    let disk = File::create(path).expect("a disk");
    for &(name, arguments, size, holds) in makers {
        let Some(mkfs) = program(name) else { continue };
        let part = folder.join("part.img");
        file_of(&part, size);
        let made_it = Command::new(mkfs)
            .args(arguments)
            .arg(&part)
            .output()
            .expect("mkfs");
        if !made_it.status.success() {
            let said = String::from_utf8_lossy(&made_it.stderr);
            ugeom_testkit::skip(&format!("{name} failed: {said}"));
            continue;
        }
        let bytes = std::fs::read(&part).expect("the partition");
        for (number, piece) in bytes.chunks(65_536).enumerate() {
            if piece.iter().any(|&byte| byte != 0) {
                let offset = at * MIB + number as u64 * 65_536;
                disk.write_all_at(piece, offset).expect("a piece");
            }
        }
        made.push((at, size, holds));
        at += size + 1;
    }
    disk.set_len((at + 1) * MIB).expect("its size");
    made
}

pub fn searched(disk: &str, more: &[&str]) -> Value {
    let arguments = [&["part", "search", "--json"], more, &[disk]].concat();
    json_of(ugeom(&arguments).quiet())
}

/// Start, length in sectors and kind of what is offered.
fn offered(found: &Value) -> Vec<(u64, u64, String)> {
    let all = found["partitions"].as_array().expect("partitions").iter();
    let offered = all.filter(|one| one["over"].is_null());
    let number = |one: &Value, name: &str| one[name].as_u64().expect("a number");
    offered
        .map(|one| {
            let holds = one["holds"].as_str().expect("a kind").to_owned();
            (number(one, "start_sector"), number(one, "sectors"), holds)
        })
        .collect()
}

/// The offered table: all partitions that were made, in their place, with as many sectors as
/// `sizes` allows for the sectors of its partition.
fn all_offered(
    disk: &str,
    made: &[(u64, u64, &str)],
    sizes: impl Fn(u64) -> RangeInclusive<u64>,
) -> Vec<(u64, u64, String)> {
    let complete = searched(disk, &[]);
    let found = offered(&complete);
    assert_eq!(found.len(), made.len(), "{complete:#}");
    for ((at, size, holds), (first, sectors, found)) in made.iter().zip(&found) {
        assert_eq!((*first, found.as_str()), (at * 2048, *holds));
        assert!(
            sizes(size * 2048).contains(sectors),
            "{holds}: {sectors} sectors of {size} MiB"
        );
    }
    found
}

/// The command that the search names copies the first partition.
fn first_is_copied(disk: &str, (first, sectors, _): &(u64, u64, String)) {
    let shown = ugeom(&["part", "search", "--quick", disk]);
    let command = shown.stderr.split_once("ugeom read '");
    let target = command.and_then(|(_, rest)| rest.split_once('\''));
    let copied = ugeom(&["read", target.expect("a command").0]).stdout;
    let whole = std::fs::read(disk).expect("the disk");
    let at = (first * 512) as usize..((first + sectors) * 512) as usize;
    assert!(copied == whole[at], "{}", shown.stderr);
}

#[test]
fn file_systems_are_found_where_they_are_and_by_their_copies() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let made = disk(&path, folder.path(), &MADE);
    let disk = disks::text(&path);
    // Some leave a remainder of the partition unused.
    let found = all_offered(&disk, &made, |whole| whole - 64..=whole);
    assert_eq!(
        offered(&searched(&disk, &["--quick"])),
        found,
        "by samples alone"
    );
    first_is_copied(&disk, &found[0]);
    table_is_taken(&disk, folder.path(), found.len());
    table_is_restored(&disk, folder.path(), &found);
    ask_testdisk(&disk, folder.path(), &found);
    // Without their first sectors, those with copies further on are found all the same.
    let file = File::options().write(true).open(&path).expect("the disk");
    for (at, _, holds) in &made {
        let first = match *holds {
            "FAT" | "NTFS" | "exFAT" | "XFS" => 512,
            "F2FS" => 4096,
            "btrfs" => 65_536 + 4096,
            _ => continue,
        };
        file.write_all_at(&vec![0; first], at * MIB)
            .expect("zeroes");
    }
    let by_copies = offered(&searched(&disk, &[]));
    for one in found
        .iter()
        .filter(|one| one.2 != "FAT" || one.1 > 30 * 2048)
    {
        assert!(by_copies.contains(one), "{one:?} is not in {by_copies:#?}");
    }
}

/// The identities that systems use at boot: numbers, GUIDs, names and attributes.
#[test]
fn the_entries_of_a_lost_gpt_keep_names_guids_and_attributes() {
    let Some([sgdisk, sfdisk]) = programs(["sgdisk", "sfdisk"]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| disks::at(&folder, name);
    let disk = file("disk.img");
    file_of(&disk, 64);
    let arguments = [
        "-a1",
        "-n1:34:2047",
        "-c1:boot code",
        "-t1:ef02",
        "-n4:4096:+8M",
        "-c4:data \"é\\",
        "-A4:set:2",
        "-A4:set:60",
        "-n7:0:0",
    ];
    other(&sgdisk, &[&arguments[..], &[&disk]].concat());
    let dump = |path: &str| {
        let text = String::from_utf8(other(&sfdisk, &["-d", path])).expect("text");
        let text = text.replace(path, "disk");
        let lines = text
            .lines()
            .filter(|line| line.starts_with("disk") || line.contains("-id:"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = dump(&disk);
    assert_eq!(expected.len(), 4, "{expected:?}");
    let saved = ugeom(&["part", "backup", &disk]).quiet();
    // Only the second copy is left.
    let damaged = File::options().write(true).open(&disk).expect("the disk");
    damaged.write_all_at(&[0; 34 * 512], 0).expect("zeroes");
    let restore = ["part", "restore", "-l", "--uuids"];
    for format in ["sfdisk", "gpart", "backup"] {
        let copy = file(format);
        file_of(&copy, 64);
        let search = ["part", "search", "--format", format, &disk];
        if format == "sfdisk" {
            let command = crate::run::command(&sfdisk, &["-q", &copy]);
            let script = ugeom(&search).quiet();
            assert_eq!(
                crate::run::run(command, script.as_bytes()).code,
                0,
                "{script}"
            );
        } else {
            let text = match format {
                "gpart" => ugeom(&search).quiet(),
                _ => saved.clone(),
            };
            let arguments = [&restore[..], &[&copy]].concat();
            crate::run::ugeom_with(&arguments, text.as_bytes()).quiet();
        }
        assert_eq!(dump(&copy), expected, "{format}");
    }
    // Clones differ, unless it is wanted otherwise.
    let copy = file("clone");
    file_of(&copy, 64);
    let cloned = crate::run::ugeom_with(&["part", "restore", &copy], saved.as_bytes());
    assert_eq!(cloned.code, 0, "{}", cloned.stderr);
    has(&cloned.stderr, "have new GUIDs; --uuids restores");
    assert_ne!(dump(&copy), expected);
}

#[test]
fn file_systems_of_other_systems_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let made = disk(&path, folder.path(), &OTHERS);
    let disk = disks::text(&path);
    // A structure without an end extends to the next one, which is 1 MiB further on.
    let found = all_offered(&disk, &made, |whole| whole - 64..=whole + 2 * 2048);
    ask_testdisk(&disk, folder.path(), &found);
}

/// A physical volume of LVM2, made by its own programs on a loop device.
struct Physical {
    _device: ugeom_testkit::LoopDevice,
    folder: tempfile::TempDir,
}

impl Physical {
    const MIB: u64 = 20;
    const UUID: &str = "UZPGme-mjct-txAn-FWig-Embq-gyb9-X2UaU5";

    /// A volume in a group; `None`, after saying so, where these programs cannot make it.
    fn new() -> Option<Self> {
        let [pvcreate, vgcreate] = programs(["pvcreate", "vgcreate"])?;
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("pv.img");
        file_of(&image, Self::MIB);
        let device = ugeom_testkit::LoopDevice::over(&image, &[])?;
        // Only this device is looked at, and nothing of the system's is changed.
        let text = device.text();
        let config = format!(
            "devices {{ use_devicesfile=0 filter=[\"a|^{text}$|\", \"r|.*|\"] }}\n\
             activation {{ udev_sync=0 udev_rules=0 }}\nbackup {{ backup=0 archive=0 }}\n"
        );
        std::fs::write(folder.path().join("lvm.conf"), config).expect("a configuration");
        let made = Self {
            _device: device,
            folder,
        };
        let create = ["-y", "-q", "-u", Self::UUID, "--norestorefile", &text];
        let made_it = made.runs(&pvcreate, &create) && made.runs(&vgcreate, &["lost_group", &text]);
        made_it.then_some(made)
    }

    /// False, after saying so, when a program of LVM2 fails.
    fn runs(&self, program: &Path, arguments: &[&str]) -> bool {
        let mut command = crate::run::command(program, arguments);
        command.env("LVM_SYSTEM_DIR", self.folder.path());
        command.env("LVM_SUPPRESS_FD_WARNINGS", "1");
        let ended = crate::run::run(command, b"");
        if ended.code != 0 {
            ugeom_testkit::skip(&format!("LVM2: {}", ended.stderr.trim()));
        }
        ended.code == 0
    }

    fn path(&self, name: &str) -> String {
        disks::at(&self.folder, name)
    }

    /// The result of a search of a disk with the volume at 3 MiB.
    fn searched(&self) -> Value {
        let bytes = std::fs::read(self.path("pv.img")).expect("the volume");
        let disk = File::create(self.path("disk.img")).expect("a disk");
        disk.write_all_at(&bytes, 3 * MIB).expect("the volume");
        disk.set_len(25 * MIB).expect("its size");
        let found = searched(&self.path("disk.img"), &[]);
        let volume = (3 * 2048, Self::MIB * 2048, "LVM2".to_owned());
        assert_eq!(offered(&found), [volume], "{found:#}");
        found
    }
}

#[test]
fn a_physical_volume_is_found_with_its_group_and_uuid() {
    let Some(physical) = Physical::new() else { return };
    let found = physical.searched();
    assert_eq!(found["partitions"][0]["uuid"], Physical::UUID);
    assert_eq!(found["partitions"][0]["content"], "LVM2 PV of lost_group");
    let table = ugeom(&["-q", "part", "search", &physical.path("disk.img")]).quiet();
    has(&table, "LVM2 PV of lost_group");
    has(&table, "it has no logical volumes");
}

#[test]
fn logical_volumes_are_listed_and_are_no_partitions() {
    let names = ["vgcfgbackup", "vgcfgrestore", "mkfs.ext4"];
    let Some([vgcfgbackup, vgcfgrestore, mkfs]) = programs(names) else { return };
    let Some(physical) = Physical::new() else { return };
    // Without the kernel's device mapper lvcreate refuses; a text with volumes can be restored, one
    // with a thin pool by force.
    let text = physical.path("group.txt");
    if !physical.runs(&vgcfgbackup, &["-f", &text, "lost_group"]) {
        return;
    }
    let group = std::fs::read_to_string(&text).expect("the text");
    let end = group.rfind('}').expect("the end of the group");
    let with = [&group[..end], &logical_volumes(), &group[end..]].concat();
    std::fs::write(&text, with).expect("a text");
    let restore = ["--force", "-y", "-f", &text, "lost_group"];
    if !physical.runs(&vgcfgrestore, &restore) {
        return;
    }
    let (home, image) = (format!("offset={}", 9 * MIB), physical.path("pv.img"));
    let arguments = ["-q", "-F", "-L", "home", "-E", &home, &image, "8M"];
    other(&mkfs, &arguments);
    // The file system has more structures, and is no partition all the same.
    let found = physical.searched();
    let group = &found["partitions"][0]["group"];
    let home = serde_json::json!({
        "name": "home",
        "length_bytes": 8 * MIB,
        "pieces": [{ "offset_bytes": 12 * MIB, "length_bytes": 8 * MIB }],
        "content": "ext4 \"home\"",
        "not_listed": null,
    });
    assert_eq!(group["volumes"][0], home, "{group:#}");
    assert_eq!(group["volumes"][1]["not_listed"], "of type thin-pool");
    let table = ugeom(&["-q", "part", "search", &physical.path("disk.img")]).quiet();
    let mut lines = table.lines();
    let line = lines
        .find(|line| line.starts_with("home "))
        .unwrap_or_default();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[1..3], ["12582912", "8388608"], "{table}");
}

/// A linear volume, a thin pool, and the two volumes that the pool keeps its data in.
fn logical_volumes() -> String {
    let volume = |number: u32, name: &str, segment: &str| {
        format!(
            "{name} {{\n id = \"aaaaaa-fJdn-NevM-21Tm-GGMx-48GK-CMvGw{number}\"\n \
             status = [\"READ\", \"WRITE\", \"VISIBLE\"]\n segment_count = 1\n \
             segment1 {{\n start_extent = 0\n {segment}\n }}\n}}\n"
        )
    };
    let linear = |number, name, extents: u32, first: u32| {
        let segment = format!(
            "extent_count = {extents}\n type = \"striped\"\n stripe_count = 1\n \
             stripes = [\"pv0\", {first}]"
        );
        volume(number, name, &segment)
    };
    let pool = "extent_count = 1\n type = \"thin-pool\"\n metadata = \"pool_tmeta\"\n \
                pool = \"pool_tdata\"\n transaction_id = 0\n chunk_size = 128\n \
                discards = \"passdown\"\n zero_new_blocks = 1";
    let volumes = [
        linear(0, "home", 2, 2),
        volume(1, "pool", pool),
        linear(2, "pool_tmeta", 1, 0),
        linear(3, "pool_tdata", 1, 1),
    ];
    format!("\nlogical_volumes {{\n{}}}\n", volumes.concat())
}

#[test]
fn a_search_of_a_faulty_disk_prints_what_it_found_and_fails() {
    let Some(mkswap) = program("mkswap") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| disks::at(&folder, name);
    let swap = File::create(path("swap")).and_then(|file| file.set_len(4 * MIB));
    swap.expect("an image");
    other(mkswap, &[&path("swap")]);
    let swap = std::fs::read(path("swap")).expect("the swap space");
    let disk = File::create(path("disk.img")).expect("a disk");
    disk.write_all_at(&swap, MIB).expect("the swap space");
    // The first sectors are among the samples, too, and count once.
    disk.write_all_at(&[5; 4 << 20], 8 * MIB).expect("data");
    let first = 8 * MIB;
    let faulty = format!(
        "{} | crash:eio=100%,from={first},to={}",
        path("disk.img"),
        first + 1024
    );
    let offered_by = |more: &[&str]| {
        let arguments = [&["part", "search", "--json"], more, &[&faulty]].concat();
        let ended = ugeom(&arguments);
        let words = "1024 bytes of disk.img.crash could not be read, so the list may be incomplete";
        has(&ended.stderr, words);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        json_of(ended.stdout)
    };
    for more in [&[][..], &["--quick"]] {
        let found = offered_by(more);
        let swap = [(2048, 8192, "Linux swap".to_owned())];
        assert_eq!(offered(&found), swap, "{found:#}");
        assert_eq!(found["unread_bytes"], 1024);
    }
}

/// The sectors beside the samples of a quick search may hold structures, too.
#[test]
fn a_quick_search_fails_where_it_cannot_read_what_it_found() {
    let Some(mkfs) = program("mkfs.ext4") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = disks::at(&folder, "disk.img");
    file_of(&path, 64);
    let offset = format!("offset={MIB}");
    other(
        mkfs,
        &["-q", "-F", "-b", "1024", "-E", &offset, &path, "40960"],
    );
    // Where the end of the partition is searched for other structures, and no sample is.
    let bad = 41_410_560;
    let faulty = format!("{path} | crash:eio=100%,from={bad},to={}", bad + 512);
    for more in [&["--quick"][..], &[]] {
        let search = |disk: &str| ugeom(&[&["part", "search", "--json", disk], more].concat());
        assert_eq!(search(&path).code, 0);
        let ended = search(&faulty);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        has(
            &ended.stderr,
            "512 bytes of disk.img.crash could not be read",
        );
        let found = json_of(ended.stdout);
        assert_eq!(offered(&found), [(2048, 81_920, "ext".to_owned())]);
        assert_eq!(found["unread_bytes"], 512);
    }
}

/// The text for sfdisk makes a table of all of them.
fn table_is_taken(disk: &str, folder: &Path, count: usize) {
    let Some(sfdisk) = program("sfdisk") else { return };
    let script = ugeom(&["part", "search", "--format", "sfdisk", disk]).quiet();
    let empty = folder.join("empty.img");
    let size = std::fs::metadata(disk).expect("the disk").len();
    File::create(&empty)
        .and_then(|file| file.set_len(size))
        .expect("an image");
    let copy = disks::text(&empty);
    let mut command = crate::run::command(&sfdisk, &["-q", &copy]);
    command.env("LC_ALL", "C");
    crate::run::run(command, script.as_bytes());
    let shown = json_of(ugeom(&["show", "--json", &copy]).quiet());
    let parts = shown["providers"][0]["geoms"][0]["providers"].as_array();
    assert_eq!(parts.map(Vec::len), Some(count), "{script}");
    // More than four in an MBR are logical ones.
    let script = ugeom(&["part", "search", "--format", "sfdisk", "-s", "mbr", disk]).quiet();
    let mut command = crate::run::command(&sfdisk, &["-q", "--wipe=always", &copy]);
    command.env("LC_ALL", "C");
    crate::run::run(command, script.as_bytes());
    let printed = other(&sfdisk, &["--dump", &copy]);
    let printed = String::from_utf8_lossy(&printed);
    let parts = printed
        .lines()
        .filter(|line| line.contains("start=") && !line.ends_with("type=f"));
    assert_eq!(parts.count(), count, "{script}{printed}");
    let gpart = ugeom(&["part", "search", "--format", "gpart", "-s", "mbr", disk]);
    let left_out = format!("has no place for {} of the found", count - 4);
    assert!(
        count <= 4 || gpart.stderr.contains(&left_out),
        "{}",
        gpart.stderr
    );
}

/// The text for gpart makes the same partitions with `ugeom part restore`.
fn table_is_restored(disk: &str, folder: &Path, found: &[(u64, u64, String)]) {
    let script = ugeom(&["part", "search", "--format", "gpart", disk]).quiet();
    let copy = folder.join("restored.img");
    let size = std::fs::metadata(disk).expect("the disk").len();
    let made = File::create(&copy).and_then(|file| file.set_len(size));
    made.expect("an image");
    let copy = disks::text(&copy);
    let restored =
        crate::run::ugeom_with(&["part", "restore", "--uuids", &copy], script.as_bytes());
    assert_eq!(restored.code, 0, "{script}{}", restored.stderr);
    let backup = ugeom(&["part", "backup", &copy]).quiet();
    let lines = backup.lines().skip(1).filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.split_whitespace());
    let places: Vec<_> = lines
        .map(|words| {
            words
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<u64>>()
        })
        .collect();
    let expected: Vec<_> = (1..)
        .zip(found)
        .map(|(n, one)| vec![n, one.0, one.1])
        .collect();
    assert_eq!(places, expected, "{script}");
}

/// All that testdisk finds of them without a table is found here, at the same place.
fn ask_testdisk(disk: &str, folder: &Path, found: &[(u64, u64, String)]) {
    let Some(testdisk) = program("testdisk") else { return };
    let run = Command::new(testdisk)
        .args(["/log", "/cmd", disk, "partition_i386,analyze"])
        .current_dir(folder)
        .output();
    run.expect("testdisk");
    let log = std::fs::read(folder.join("testdisk.log")).expect("its log");
    let log = String::from_utf8_lossy(&log);
    let starts: std::collections::BTreeSet<u64> = log.lines().filter_map(start_of).collect();
    // It also lists copies of superblocks as partitions of their own.
    let real = starts.iter().filter(|start| **start % 2048 == 0);
    for start in real.clone() {
        let known = found.iter().any(|one| one.0 == *start);
        assert!(known, "testdisk finds something at {start}: {log}");
    }
    assert!(real.count() * 3 > found.len(), "{starts:?}: {log}");
}

/// The first sector of a line of testdisk's log: a name, cylinder, head and sector of both ends of
/// disks with 255 heads of 63 sectors, and the length in sectors.
fn start_of(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.strip_prefix("     ")?.split_whitespace().collect();
    let first = words.iter().position(|word| word.parse::<u64>().is_ok())?;
    let numbers = words[first..].iter().map_while(|word| word.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    let [cylinder, head, sector, _, _, _, _] = numbers[..] else { return None };
    Some((cylinder * 255 + head) * 63 + sector.checked_sub(1)?)
}

/// LUKS2, swap right behind it, and LUKS1 up to the end, on disks with sectors of 512 and 4096
/// bytes: the containers do not state their ends.
#[test]
fn encrypted_containers_end_at_the_next_partition_or_before_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some([cryptsetup, mkswap]) = programs(["cryptsetup", "mkswap"]) else { return };
    let place = |name: &str| disks::at(&folder, name);
    std::fs::write(place("key"), b"secret").expect("a key");
    let disk = file_of(place("disk.img"), 36);
    for (kind, at, size) in [("luks2", 1, 20), ("swap", 21, 8), ("luks1", 30, 6)] {
        let part = place(kind);
        file_of(&part, size);
        let format = "luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --type";
        let format: Vec<&str> = format.split(' ').collect();
        match kind {
            "swap" => other(&mkswap, &[&part]),
            _ => other(
                &cryptsetup,
                &[&format[..], &[kind, &part, &place("key")]].concat(),
            ),
        };
        let bytes = std::fs::read(&part).expect("the partition");
        disk.write_all_at(&bytes, at * MIB).expect("its bytes");
    }
    for sector in [512, 4096] {
        let target = format!("{}?sectorsize={sector}", place("disk.img"));
        let found = searched(&target, &[]);
        let bytes: Vec<_> = offered(&found)
            .into_iter()
            .map(|(first, sectors, holds)| (first * sector, sectors * sector, holds))
            .collect();
        // A GPT's second copy: a header and 16 KiB of entries.
        let end = 36 * MIB - sector - (16 << 10);
        let expected = [
            (MIB, 20 * MIB, "LUKS".to_owned()),
            (21 * MIB, 8 * MIB, "Linux swap".to_owned()),
            (30 * MIB, end - 30 * MIB, "LUKS".to_owned()),
        ];
        assert_eq!(bytes, expected, "{found:#}");
        let guessed: Vec<_> = (0..3)
            .map(|number| found["partitions"][number]["guessed_end"] == true)
            .collect();
        assert_eq!(guessed, [true, false, true], "{found:#}");
    }
}

#[test]
fn ufs_is_found_by_the_copies_of_its_superblock() {
    let Some(makefs) = program("makefs") else { return };
    for version in ["1", "2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (tree, part) = (folder.path().join("tree"), folder.path().join("part.img"));
        std::fs::create_dir(&tree).expect("a tree");
        std::fs::write(tree.join("file"), b"content").expect("a file");
        let options = format!("version={version},density=4096");
        let (part, tree) = (disks::text(&part), disks::text(&tree));
        other(
            &makefs,
            &["-t", "ffs", "-s", "48m", "-o", &options, &part, &tree],
        );
        let mut bytes = vec![0; 3 << 20];
        bytes.extend(std::fs::read(&part).expect("the partition"));
        let disk = disks::file(&folder, "disk.img", &bytes);
        let whole = offered(&searched(&disk, &[]));
        assert_eq!(whole, [(6144, 48 * 2048, "UFS".to_owned())], "UFS{version}");
        bytes[3 << 20..][..80 << 10].fill(0);
        std::fs::write(&disk, &bytes).expect("the disk");
        assert_eq!(
            offered(&searched(&disk, &[])),
            whole,
            "UFS{version} by its copies"
        );
    }
}

#[test]
fn a_backup_gpt_is_the_table_and_a_disk_of_nothing_has_none() {
    let (_folder, path) = disks::empty_image(16 << 20);
    let disk = disks::text(&path);
    assert_eq!(
        ugeom(&["part", "search", &disk]).quiet(),
        "nothing was found\n"
    );
    ugeom(&["part", "create", "-s", "gpt", &disk]).quiet();
    let add = [
        "part", "add", "-t", "efi", "-b", "2048", "-s", "4096", "-l", "boot", &disk,
    ];
    ugeom(&add).quiet();
    let mut bytes = std::fs::read(&path).expect("the image");
    bytes[..1 << 20].fill(0);
    // A structure in the partition is not offered beside it: the head of a FAT.
    let fat = &mut bytes[1 << 20..][..512];
    fat[..3].copy_from_slice(b"\xeb\x3c\x90");
    fat[11..36]
        .copy_from_slice(b"\0\x02\x04\x01\0\x02\0\x02\0\x10\xf8\x04\0\x20\0\x02\0\0\0\0\0\0\0\0\0");
    fat[38] = 0x29;
    fat[54..62].copy_from_slice(b"FAT12   ");
    fat[510..].copy_from_slice(b"\x55\xaa");
    std::fs::write(&path, &bytes).expect("the image");
    let table = ugeom(&["part", "search", "--format", "gpart", &disk]).quiet();
    begins(&table, "GPT 128\n1   efi 2048 4096 boot \n# disk uuid=");
    let listed = ugeom(&["-q", "part", "search", &disk]).quiet();
    has(&listed, "entry of a GPT's backup");
    assert!(!listed.contains("omitted"), "{listed}");
}
