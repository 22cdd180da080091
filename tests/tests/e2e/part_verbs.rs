//! Every verb of gpart on every scheme, with sfdisk, sgdisk and parted as judges of those that they
//! know.

use crate::disks;
use crate::run::{has, json_of, other, part, part_refused as refused, ugeom, ugeom_with, words_of};
use std::io::{Seek, SeekFrom, Write};
use ugeom_testkit::begins;

#[path = "../../../format/tests/common/ldm.rs"]
mod ldm;

/// A scheme with a type, another one, the suffixes of its first two partitions, and their index.
struct Known {
    scheme: &'static str,
    kinds: [&'static str; 2],
    suffixes: [&'static str; 2],
}

const fn known(
    scheme: &'static str,
    kinds: [&'static str; 2],
    suffixes: [&'static str; 2],
) -> Known {
    Known {
        scheme,
        kinds,
        suffixes,
    }
}

const SCHEMES: [Known; 7] = [
    known("apm", ["freebsd-ufs", "apple-hfs"], ["s2", "s3"]),
    known("bsd", ["freebsd-ufs", "freebsd-swap"], ["a", "b"]),
    known("bsd64", ["freebsd-ufs", "dragonfly-hammer2"], ["a", "b"]),
    known("gpt", ["freebsd-ufs", "efi"], ["p1", "p2"]),
    known("mbr", ["linux-data", "freebsd"], ["s1", "s2"]),
    known("pc98", ["freebsd", "!8225"], ["s1", "s2"]),
    known("vtoc8", ["freebsd-ufs", "freebsd-swap"], ["a", "b"]),
];

/// 137,088 sectors: whole cylinders of 16 heads and 8, of 63 sectors and 17.
const BYTES: u64 = 137_088 * 512;

fn empty() -> (tempfile::TempDir, String) {
    let (folder, path) = disks::empty_image(BYTES);
    (folder, disks::text(&path))
}

#[test]
fn every_verb_works_on_every_scheme() {
    for Known {
        scheme,
        kinds,
        suffixes,
    } in SCHEMES
    {
        let (_folder, disk) = empty();
        assert_eq!(part(&["create", "-s", scheme, &disk]), "disk.img created\n");
        for (suffix, sectors) in suffixes.iter().zip(["17136", "34272"]) {
            let added = part(&["add", "-t", kinds[0], "-s", sectors, &disk]);
            assert_eq!(added, format!("disk.img{suffix} added\n"), "{scheme}");
        }
        let modified = part(&["modify", "-i", "2", "-t", kinds[1], &disk]);
        assert_eq!(modified, format!("disk.img{} modified\n", suffixes[1]));
        let resized = part(&["resize", "-i", "2", "-s", "51408", &disk]);
        assert_eq!(resized, format!("disk.img{} resized\n", suffixes[1]));
        let shown = part(&["show", "-p", &disk]);
        let heading = format!("  disk.img  {}  (67M)\n", scheme.to_uppercase());
        assert!(shown.contains(heading.trim_start()), "{scheme}: {shown}");
        let line = format!("disk.img{}  {}  (25M)\n", suffixes[1], kinds[1]);
        assert!(shown.contains(&line), "{scheme}: {shown}");
        // The classes list the same.
        let tree = ugeom(&["show", &disk]).quiet();
        for suffix in suffixes {
            assert!(
                tree.contains(&format!("disk.img{suffix}")),
                "{scheme}: {tree}"
            );
        }
        let saved = part(&["backup", &disk]);
        let count = saved.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(count, 3, "{scheme}: {saved}");
        let deleted = part(&["delete", "-i", "1", &disk]);
        assert_eq!(deleted, format!("disk.img{} deleted\n", suffixes[0]));
        let text = refused(&["destroy", &disk], 1);
        has(&text, "is not empty (partitions: 1)");
        // Back to both partitions, over what is left, and on another disk.
        let (_other, second) = empty();
        let refused = ugeom_with(&["part", "restore", &disk], saved.as_bytes()).failed(1);
        assert!(refused.contains("-F overwrites it"), "{scheme}: {refused}");
        let arguments = ["part", "restore", "-F", "--uuids", &disk, &second];
        assert_eq!(ugeom_with(&arguments, saved.as_bytes()).quiet(), "");
        for disk in [&disk, &second] {
            assert_eq!(part(&["backup", disk]), saved, "{scheme}");
        }
        assert_eq!(part(&["destroy", "-F", &disk]), "disk.img destroyed\n");
        assert!(ugeom(&["part", "show", &disk]).code != 0, "{scheme}");
    }
}

/// The partitions that parted lists: number, first and last sector.
pub fn parted(disk: &str, label: &str) -> Option<Vec<(u32, u64, u64)>> {
    let parted = ugeom_testkit::program("parted")?;
    let said = other(parted, &["-s", "-m", disk, "unit", "s", "print"]);
    let said = String::from_utf8_lossy(&said).into_owned();
    has(&said, &format!(":{label}:"));
    let listed = |line: &str| {
        let sector = |text: &str| text.strip_suffix('s')?.parse::<u64>().ok();
        let mut fields = line.split(':');
        let index = fields.next()?.parse::<u32>().ok()?;
        Some((index, sector(fields.next()?)?, sector(fields.next()?)?))
    };
    Some(said.lines().filter_map(listed).collect())
}

#[test]
fn parted_lists_what_is_made_on_apple_and_sun_disks() {
    for (scheme, label, kind, expected) in [
        (
            "apm",
            "mac",
            "apple-hfs",
            vec![(1, 1, 17), (2, 2048, 12_127), (3, 12_288, 22_367)],
        ),
        (
            "vtoc8",
            "sun",
            "freebsd-ufs",
            vec![(1, 0, 10_079), (2, 10_080, 20_159)],
        ),
    ] {
        let (_folder, disk) = empty();
        part(&["create", "-s", scheme, &disk]);
        part(&["add", "-t", kind, "-s", "10080", &disk]);
        part(&["add", "-t", kind, "-s", "10080", &disk]);
        let Some(listed) = parted(&disk, label) else { return };
        assert_eq!(listed, expected, "{scheme}");
    }
}

#[test]
fn parted_lists_what_is_made_on_a_pc98() {
    let (_folder, disk) = empty();
    part(&["create", "-s", "pc98", &disk]);
    for _ in 0..2 {
        part(&["add", "-t", "freebsd", "-s", "13600", &disk]);
    }
    // The table counts in cylinders; those of parted have 128 sectors, GEOM's 136.
    let Some(listed) = parted(&disk, "pc98") else { return };
    let starts: Vec<(u32, u64)> = listed.iter().map(|it| (it.0, it.1 / 128)).collect();
    assert_eq!(starts, [(1, 1), (2, 101)]);
}

#[test]
fn logical_partitions_are_made_in_an_extended_one() {
    let (_folder, disk) = empty();
    part(&["create", "-s", "mbr", &disk]);
    part(&["add", "-t", "linux-data", "-s", "8m", &disk]);
    part(&["add", "-t", "ebr", &disk]);
    let extended = format!("{disk}@s2");
    // A warning says that the extended partition has no record yet.
    let created = ugeom(&["part", "create", "-s", "ebr", &extended]);
    assert_eq!(
        (created.code, created.text().as_str()),
        (0, "disk.imgs2 created\n")
    );
    has(&created.stderr, "no extended boot record at sector 0");
    for expected in [
        "disk.imgs5 added\n",
        "disk.imgs6 added\n",
        "disk.imgs7 added\n",
    ] {
        let add = ["add", "-t", "linux-data", "-s", "10m", &extended];
        assert_eq!(part(&add), expected);
    }
    let judged = |expected: &[(u32, u64, u64)]| {
        if let Some(sfdisk) = ugeom_testkit::program("sfdisk") {
            let said = other(sfdisk, &["--verify", &disk]);
            let said = String::from_utf8_lossy(&said).into_owned();
            has(&said, "No errors detected.");
        }
        if let Some(listed) = parted(&disk, "msdos") {
            let all = [&[(1, 2048, 18_431), (2, 18_432, 137_087)], expected].concat();
            assert_eq!(listed, all);
        }
    };
    judged(&[
        (5, 20_480, 40_959),
        (6, 43_008, 63_487),
        (7, 65_536, 86_015),
    ]);
    let saved = part(&["backup", &extended]);
    assert_eq!(
        part(&["delete", "-i", "6", &extended]),
        "disk.imgs6 deleted\n"
    );
    judged(&[(5, 20_480, 40_959), (6, 65_536, 86_015)]);
    assert_eq!(
        part(&["delete", "-i", "5", &extended]),
        "disk.imgs5 deleted\n"
    );
    judged(&[(5, 65_536, 86_015)]);
    let arguments = ["part", "restore", "-F", &extended];
    ugeom_with(&arguments, saved.as_bytes()).quiet();
    judged(&[
        (5, 20_480, 40_959),
        (6, 43_008, 63_487),
        (7, 65_536, 86_015),
    ]);
    assert_eq!(part(&["backup", &extended]), saved);
    let index = refused(&["add", "-t", "linux-data", "-i", "9", &extended], 1);
    has(&index, "they are numbered in order");
    let outside = refused(&["create", "-s", "ebr", &format!("{disk}@s1")], 1);
    has(&outside, "logical partitions need an extended partition");
}

#[test]
fn a_table_goes_from_one_disk_to_several_with_its_labels() {
    let (_folder, disk) = empty();
    part(&["create", "-s", "gpt", &disk]);
    part(&[
        "add",
        "-t",
        "freebsd-boot",
        "-s",
        "512k",
        "-l",
        "my loader",
        &disk,
    ]);
    part(&["add", "-t", "freebsd-ufs", "-l", "root", &disk]);
    part(&["set", "-a", "bootme", "-i", "2", &disk]);
    let saved = part(&["backup", &disk]);
    let expected = "GPT 128\n\
                    1 freebsd-boot   2048   1024 my\\040loader \n";
    assert!(
        saved
            .replace("1   freebsd", "1 freebsd")
            .starts_with(expected),
        "{saved}"
    );
    has(&saved, " root  [bootme] \n# disk uuid=");
    let ((_a, one), (_b, two), (_c, small)) = (empty(), empty(), disks::empty_image(1 << 20));
    let small = disks::text(&small);
    let text = saved.as_bytes();
    let refused = ugeom_with(&["part", "restore", "-l", &one, &small], text).failed(1);
    has(&refused, "are outside the usable range");
    assert!(
        ugeom(&["part", "show", &one]).code == 1,
        "nothing was written to the first one"
    );
    ugeom_with(&["part", "restore", "-l", "--uuids", &one, &two], text).quiet();
    let shown = part(&["show", "-l", "-p", &one, &two]);
    assert_eq!(
        shown.matches("disk.imgp1  my loader  (512K)\n").count(),
        2,
        "{shown}"
    );
    assert_eq!(
        shown.matches("disk.imgp2  root  [bootme]  (").count(),
        2,
        "{shown}"
    );
    let json = ugeom_with(&["part", "restore", "-F", "--uuids", "--json", &two], text).quiet();
    has(&json, "\"partitions\": 2");
    assert!(part(&["show", "-l", &two]).contains("  1  (null)  (512K)\n"));
    let wrong = ugeom_with(&["part", "restore", "-F", &two], b"GPT 128\n1 efi\n").failed(1);
    has(&wrong, "line 2 of the backup: 2 words");
    if let Some(sgdisk) = ugeom_testkit::program("sgdisk") {
        let verdict = other(sgdisk, &["-v", &one]);
        assert!(String::from_utf8_lossy(&verdict).contains("No problems found"));
    }
}

#[test]
fn boot_code_is_written_around_tables_and_into_partitions() {
    let (folder, disk) = empty();
    let file = |name: &str, bytes: &[u8]| disks::file(&folder, name, bytes);
    let (pmbr, loader) = (file("pmbr", &[0x90; 512]), file("gptboot", &[0xab; 1300]));
    part(&["create", "-s", "gpt", &disk]);
    part(&["add", "-t", "freebsd-boot", "-s", "2", &disk]);
    part(&["add", "-t", "freebsd-boot", "-s", "512k", &disk]);
    let before = part(&["backup", &disk]);
    let said = part(&["bootcode", "-b", &pmbr, "-p", &loader, "-i", "2", &disk]);
    assert_eq!(
        said,
        "partcode written to disk.imgp2\nbootcode written to disk.img\n"
    );
    let image = std::fs::read(&disk).expect("the image");
    let start = 4096 * 512;
    assert_eq!(
        (&image[..446], &image[start..start + 1300]),
        (&[0x90; 446][..], &[0xab; 1300][..])
    );
    assert_eq!(
        image[start + 1300..start + 1536],
        [0; 236],
        "the rest of the sector"
    );
    assert_eq!(part(&["backup", &disk]), before);
    let text = refused(&["bootcode", "-p", &loader, "-i", "1", &disk], 1);
    has(&text, "it has 2 sectors, the code needs 3");
    let text = refused(&["bootcode", "-p", &loader, &disk], 1);
    has(&text, "it needs the index of a partition");
    let text = refused(&["bootcode", "-b", &loader, &disk], 1);
    has(&text, "boot code of 1300 bytes is too large");
    let text = refused(&["bootcode", "-b", &file("none", b""), &disk], 1);
    has(&text, "none: empty file");
    refused(&["bootcode", &disk], 2);
    refused(&["bootcode", "-b", &pmbr, "-i", "1", &disk], 2);

    // A Sun label stays: its partitions begin with it.
    let (_sun, disk) = empty();
    let code = file("boot1", &[0x77; 8192]);
    part(&["create", "-s", "vtoc8", &disk]);
    part(&["add", "-t", "freebsd-ufs", &disk]);
    let said = part(&["bootcode", "-p", &code, &disk]);
    assert_eq!(said, "partcode written to disk.imga\n");
    let image = std::fs::read(&disk).expect("the image");
    assert_eq!((image[508], &image[512..8192]), (0xda, &[0x77; 7680][..]));
    assert!(part(&["show", &disk]).contains("  1  freebsd-ufs"));
}

#[test]
fn boot_code_that_ends_in_a_sector_needs_all_of_it() {
    let (folder, disk) = empty();
    let code = disks::at(&folder, "code");
    std::fs::write(&code, [0xeb, 0xfe]).expect("boot code");
    part(&["create", "-s", "mbr", &disk]);
    part(&["add", "-t", "ntfs", "-b", "2048", "-s", "8m", &disk]);
    let mut image = std::fs::read(&disk).expect("the image");
    // The rest of the sector would become zeros, and with it the name of the file system.
    let start = 2048 * 512 + 3;
    image[start..start + 8].copy_from_slice(b"NTFS    ");
    std::fs::write(&disk, &image).expect("the image");
    let text = refused(&["bootcode", "-p", &code, "-i", "1", &disk], 1);
    has(&text, "carries an NTFS file system");
    assert!(std::fs::read(&disk).expect("the image") == image);
}

#[test]
fn boot_code_is_not_written_into_a_dynamic_disk_with_a_gpt() {
    let (folder, disk) = empty();
    let code = disks::at(&folder, "code");
    std::fs::write(&code, [0x90; 512]).expect("boot code");
    part(&["create", "-s", "gpt", &disk]);
    // A warning says that the partition has no database.
    for (kind, size) in [("ms-ldm-data", "8m"), ("ms-ldm-metadata", "1m")] {
        assert_eq!(
            ugeom(&["part", "add", "-t", kind, "-s", size, &disk]).code,
            0
        );
    }
    let image = std::fs::read(&disk).expect("the image");
    for index in ["1", "2"] {
        let text = refused(&["bootcode", "-p", &code, "-i", index, &disk], 1);
        has(&text, "a dynamic disk of Windows");
    }
    assert!(std::fs::read(&disk).expect("the image") == image);
    let forced = ugeom(&words_of(&format!(
        "part bootcode -p {code} -i 1 --destroy {disk}"
    )));
    assert_eq!(forced.text(), "partcode written to disk.imgp1\n");
}

#[test]
fn types_are_listed_and_the_nearest_is_named() {
    let gpt = part(&["types", "gpt"]);
    let efi = "efi                 !c12a7328-f81f-11d2-ba4b-00a0c93ec93b";
    assert!(
        gpt.split_whitespace().any(|word| word == "efi"),
        "{gpt}: {efi}"
    );
    has(&gpt, "!c12a7328-f81f-11d2-ba4b-00a0c93ec93b\n");
    let all = json_of(part(&["types", "--json"]));
    let all = all.as_array().expect("a list");
    for scheme in ["APM", "BSD", "BSD64", "EBR", "GPT", "MBR", "PC98", "VTOC8"] {
        assert!(all.iter().any(|one| one["scheme"] == scheme), "{scheme}");
    }
    let (_folder, disk) = empty();
    part(&["create", "-s", "gpt", "-f", "C", &disk]);
    let text = refused(&["add", "-t", "freebsd-usf", &disk], 2);
    has(&text, "did you mean freebsd-ufs?");
    let text = refused(&["create", "-s", "gpt", "-f", "x", &disk], 2);
    has(&text, "only the flag C");
    let text = refused(&["create", "-s", "sgi", &disk], 2);
    has(
        &text,
        "there are APM, BSD, BSD64, EBR, GPT, MBR, PC98, VTOC8",
    );
}

#[test]
fn a_torn_disklabel64_is_recovered() {
    let (_folder, disk) = empty();
    part(&["create", "-s", "bsd64", &disk]);
    part(&["add", "-t", "freebsd-ufs", &disk]);
    let mut image = std::fs::read(&disk).expect("the image");
    image[1024] ^= 1;
    std::fs::write(&disk, &image).expect("the image");
    let text = refused(&["delete", "-i", "1", &disk], 1);
    has(&text, "recover it first");
    let kept = format!("{disk}.kept");
    let recovered = ugeom(&["part", "recover", "--keep", &kept, &disk]);
    assert_eq!(recovered.code, 0);
    let text = recovered.text();
    begins(&text, "disk.img recovered\n");
    image[1024] ^= 1;
    assert!(std::fs::read(&disk).expect("the image") == image);
}

/// A dynamic disk of Windows is shown and saved; each verb that would change it says that it is
/// only read.
#[test]
fn a_dynamic_disk_is_only_read() {
    let (folder, path) = disks::empty_image(10 << 20);
    let mut file = std::fs::File::options().write(true).open(&path);
    let file = file.as_mut().expect("the image");
    let last = ("Last", 7, 200, vec![(2, vec![(1, 6000, 0, 200)])]);
    for (sector, bytes) in ldm::disk(20_480, &ldm::volumes(last)) {
        file.seek(SeekFrom::Start(sector * 512)).expect("its place");
        file.write_all(&bytes).expect("a sector");
    }
    let before = std::fs::read(&path).expect("the disk");
    let disk = disks::text(&path);
    let saved = part(&["backup", &disk]);
    begins(&saved, "LDM ");
    assert!(part(&["show", &disk]).contains("LDM"));
    let code = disks::at(&folder, "code");
    std::fs::write(&code, [1; 512]).expect("boot code");
    let verbs: [&[&str]; 16] = [
        &["add", "-t", "ntfs"],
        &["add", "-t", "ntfs", "-b", "18000", "-s", "8", "-i", "9"],
        &["bootcode", "-b", &code],
        &["bootcode", "-N", "-b", &code],
        &["bootcode", "-p", &code, "-i", "1"],
        &["bootcode", "-p", &code, "-i", "1", "--destroy"],
        &["bootcode", "-p", &code],
        &["bootcode", "-b", &code, "-p", &code, "-i", "1"],
        &["delete", "-i", "1"],
        &["destroy"],
        &["destroy", "-F"],
        &["modify", "-i", "1", "-t", "fat32"],
        &["resize", "-i", "1", "-s", "100"],
        &["set", "-a", "active", "-i", "1"],
        &["unset", "-a", "active", "-i", "1"],
        &["modify", "-i", "1", "-l", "name"],
    ];
    for verb in verbs {
        // The MBR is the shell of the database.
        for scheme in [&[][..], &["--scheme", "ldm"], &["--scheme", "mbr"]] {
            let said = refused(&[verb, scheme, &[disk.as_str()]].concat(), 1);
            assert!(said.contains("LDM table is only read"), "{verb:?}: {said}");
        }
    }
    assert!(part(&["recover", &disk]).ends_with(": nothing to recover\n"));
    for scheme in ["gpt", "ldm"] {
        let said = refused(&["create", "-s", scheme, &disk], 1);
        has(&said, "nothing was written");
    }
    for force in [&["restore"][..], &["restore", "-F"]] {
        let arguments = [&["part"], force, &[disk.as_str()]].concat();
        let said = ugeom_with(&arguments, saved.as_bytes()).failed(1);
        has(&said, "LDM");
    }
    assert!(
        std::fs::read(&path).expect("the disk") == before,
        "it was written"
    );
}
