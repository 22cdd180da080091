//! `ugeom part` in the manner of gpart, with sgdisk and sfdisk as judges.

use crate::disks;
use crate::part_verbs::parted;
use crate::run::{has, json_of, other, part, part_refused as refused, ugeom, words_of};
use serde_json::Value;
use ugeom_testkit::begins;

#[test]
fn a_table_that_is_only_read_is_named() {
    let Some(sfdisk) = ugeom_testkit::program("sfdisk") else { return };
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    let command = crate::run::command(&sfdisk, &["-q", &disk]);
    let made = crate::run::run(command, b"label: sgi\nstart=4096,size=8192\n");
    assert_eq!(made.code, 0, "{}", made.stderr);
    for verb in [&["show"][..], &["add", "-t", "efi"], &["backup"]] {
        let said = refused(&[verb, &[disk.as_str()]].concat(), 1);
        has(&said, "its SGI volume header is only read, by `ugeom show`");
    }
}

#[test]
fn the_mbr_of_a_gpt_is_not_taken_for_that_of_a_partition() {
    let Some(sgdisk) = ugeom_testkit::program("sgdisk") else { return };
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    other(sgdisk, &["-n1:2048:+8M", "-n2:0:+8M", "-h", "1:2", &disk]);
    let said = refused(&["show", "--scheme", "mbr", &disk], 1);
    has(&said, "the MBR of disk.img belongs to its GPT");
}

/// The rest in front of the usual first sector, which is the largest space that is left.
#[test]
fn a_partition_that_no_size_was_given_for_is_warned_of_where_it_is_not_aligned() {
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    part(&["create", "-s", "gpt", &disk]);
    assert_eq!(part(&["add", "-t", "efi", &disk]), "disk.imgp1 added\n");
    let added = ugeom(&["part", "add", "-t", "efi", &disk]);
    assert_eq!(
        (added.code, added.text().as_str()),
        (0, "disk.imgp2 added\n")
    );
    has(
        &added.stderr,
        "disk.imgp2: sector 34 is not aligned to 4 KiB",
    );
}

#[test]
fn a_new_gpt_is_what_sgdisk_calls_sound() {
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    assert_eq!(part(&["create", "-s", "gpt", &disk]), "disk.img created\n");
    let add = format!("add -t freebsd-ufs -a 1m -s 16m -l root {disk}");
    let add = words_of(&add);
    assert_eq!(part(&add), "disk.imgp1 added\n");
    assert_eq!(
        part(&["add", "-t", "linux-data", "-i", "5", &disk]),
        "disk.imgp5 added\n"
    );
    let expected = "\
=>    34  131005  disk.img  GPT  (64M)
      34    2014            - free -  (1.0M)
    2048   32768         1  freebsd-ufs  (16M)
   34816   96223         5  linux-data  (47M)

";
    assert_eq!(part(&["show", &disk]), expected);
    assert!(part(&["show", "-l", &disk]).contains("  1  root  (16M)\n"));
    assert!(part(&["show", "-p", &disk]).contains("  disk.imgp5  linux-data  (47M)\n"));
    let raw = part(&["show", "-r", &disk]);
    has(&raw, "  516e7cb6-6ecf-11d6-8ff8-00022d09712b  (16M)\n");
    let Some(sgdisk) = ugeom_testkit::program("sgdisk") else { return };
    let verdict = other(sgdisk, &["-v", &disk]);
    assert!(String::from_utf8_lossy(&verdict).contains("No problems found"));
}

#[test]
fn a_damaged_gpt_is_shown_and_left_alone_until_it_is_recovered() {
    let (_folder, path) = disks::empty_image(4 << 20);
    let disk = disks::text(&path);
    part(&["create", "-s", "gpt", &disk]);
    part(&["add", "-t", "linux-data", &disk]);
    let sound = std::fs::read(&path).expect("the image");
    let mut damaged = sound.clone();
    damaged[512 + 56] ^= 1;
    std::fs::write(&path, &damaged).expect("the image");

    let shown = ugeom(&["part", "show", &disk]);
    assert_eq!(shown.code, 0);
    has(&shown.text(), "GPT  (4.0M) [CORRUPT]\n");
    let start = "ugeom: warning: disk.img: the primary GPT is damaged: ";
    assert!(shown.stderr.starts_with(start), "{}", shown.stderr);
    let tree = ugeom(&["show", &disk]).quiet();
    has(&tree, "\n│ ! GPT: the primary GPT is damaged: ");
    let add = refused(&["add", "-t", "efi", &disk], 1);
    has(&add, "the GPT table is damaged");
    assert!(
        std::fs::read(&path).expect("the image") == damaged,
        "nothing is repaired unasked"
    );

    let kept = disks::text(&path.with_extension("kept"));
    let recovered = part(&["recover", "--keep", &kept, &disk]);
    assert!(recovered.starts_with("disk.img recovered\n"), "{recovered}");
    assert!(std::fs::read(&path).expect("the image") == sound);
    assert_eq!(part(&["recover", &disk]), "disk.img: nothing to recover\n");
}

#[test]
fn a_label_in_a_slice_is_listed_once() {
    let (_folder, path) = disks::empty_image(1 << 20);
    let disk = disks::text(&path);
    assert_eq!(part(&["create", "-s", "MBR", &disk]), "disk.img created\n");
    assert_eq!(part(&["add", "-t", "freebsd", &disk]), "disk.imgs1 added\n");
    let slice = format!("{disk}@s1");
    assert_eq!(
        part(&["create", "-s", "bsd", &slice]),
        "disk.imgs1 created\n"
    );
    let added = json_of(part(&words_of(&format!(
        "add -t freebsd-ufs -b 16 --json {slice}"
    ))));
    assert_eq!(added["provider"], "disk.imgs1a");
    assert_eq!(
        (&added["start_sector"], &added["index"]),
        (&Value::from(16), &Value::from(1))
    );
    let expected = "\
=>  63  1985  disk.img  MBR  (1.0M)
    63  1985         1  freebsd  (993K)  BSD

=>   0  1985  disk.imgs1  BSD  (993K)
     0    16              - free -  (8.0K)
    16  1969           1  freebsd-ufs  (985K)

";
    assert_eq!(part(&["show", &disk]), expected);
    let label = part(&["show", "--scheme", "bsd", &disk]);
    assert!(label.starts_with("=>   0  1985  disk.imgs1  BSD") && expected.ends_with(&label));
    let tables = json_of(part(&["show", "--json", &disk]));
    assert_eq!(tables[1]["rows"][1]["provider"], "disk.imgs1a");
    let Some(sfdisk) = ugeom_testkit::program("sfdisk") else { return };
    let dump = other(sfdisk, &["--dump", &disk]);
    let dump = String::from_utf8_lossy(&dump).into_owned();
    has(&dump, "start=          63, size=        1985, type=a5");
}

#[test]
fn nothing_is_destroyed_unasked() {
    let (_folder, path) = disks::partitioned_image(4096, 63, 100);
    let disk = disks::text(&path);
    let before = std::fs::read(&path).expect("the image");
    let error = refused(&["create", "-s", "gpt", &disk], 1);
    let expected = "ugeom: disk.img carries an MBR (at byte 446); nothing was written, \
                    --destroy overwrites it\n";
    assert_eq!(error, expected);
    assert!(std::fs::read(&path).expect("the image") == before);
    assert_eq!(
        part(&["create", "-s", "gpt", "--destroy", &disk]),
        "disk.img created\n"
    );
    assert!(part(&["show", &disk]).starts_with("=>"));
}

#[test]
fn a_partition_that_is_deleted_is_gone_and_its_bytes_stay() {
    let (_folder, path) = disks::partitioned_image(4096, 63, 100);
    let disk = disks::text(&path);
    let mut image = std::fs::read(&path).expect("the image");
    image[63 * 512..63 * 512 + 5].copy_from_slice(b"bytes");
    std::fs::write(&path, &image).expect("the image");
    assert_eq!(part(&["delete", "-i", "1", &disk]), "disk.imgs1 deleted\n");
    let error = refused(&["delete", "-i", "1", &disk], 1);
    assert_eq!(error, "ugeom: disk.img: there is no partition 1\n");
    let image = std::fs::read(&path).expect("the image");
    assert_eq!(&image[63 * 512..63 * 512 + 5], b"bytes");
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let (_folder, path) = disks::empty_image(1 << 20);
    let disk = disks::text(&path);
    let none = refused(&["show", &disk], 1);
    begins(&none, "ugeom: there is no partition table on disk.img");
    part(&["create", "-s", "mbr", &disk]);
    let other = refused(&["show", "--scheme", "bsd", &disk], 1);
    has(&other, "there is no BSD table on disk.img");
    let unknown = refused(&["add", "-t", "nonsense", &disk], 2);
    has(&unknown, "\"nonsense\" is no partition type of MBR");
    let odd = refused(&["add", "-t", "freebsd", "-s", "513b", &disk], 2);
    has(
        &odd,
        "the size of 513 bytes is no whole number of the 512-byte",
    );
    let large = refused(&["add", "-t", "freebsd", "-s", "2m", &disk], 1);
    has(&large, "no free space of 4096 sectors");
    refused(&["create", "-s", "sgi", &disk], 2);
    refused(&["delete", &disk], 2);
}

/// The view of other programs on a table: they call it sound, and list these partitions with their
/// first and last sector.
fn judged(disk: &str, scheme: &str, expected: &[(u32, u64, u64)]) {
    let run = |program: &str, arguments: &[&str]| {
        let program = ugeom_testkit::program(program)?;
        let said = other(program, &[arguments, &[disk]].concat());
        Some(String::from_utf8_lossy(&said).into_owned())
    };
    if let Some(said) = (scheme == "gpt").then(|| run("sgdisk", &["-v"])).flatten() {
        has(&said, "No problems found");
    }
    if let Some(said) = run("sfdisk", &["--verify"]) {
        has(&said, "No errors detected.");
    }
    let label = if scheme == "mbr" { "msdos" } else { scheme };
    if let Some(listed) = parted(disk, label) {
        assert_eq!(listed, expected);
    }
}

#[test]
fn partitions_of_a_gpt_are_modified_resized_and_destroyed_as_gpart_does() {
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    part(&["create", "-s", "gpt", &disk]);
    part(&["add", "-t", "linux-data", "-s", "3m", &disk]);
    part(&["add", "-t", "linux-data", "-s", "3.5m", &disk]);
    judged(&disk, "gpt", &[(1, 2048, 8191), (2, 8192, 15_359)]);
    let steps: [(&[&str], &str); 5] = [
        (
            &["modify", "-i", "1", "-t", "freebsd-ufs", "-l", "home"],
            "disk.imgp1 modified\n",
        ),
        (
            &["set", "-a", "bootonce", "-i", "1"],
            "bootonce set on disk.imgp1\n",
        ),
        (&["set", "-a", "active"], "active set on disk.img\n"),
        (
            &["unset", "-a", "bootme", "-i", "1"],
            "bootme unset on disk.imgp1\n",
        ),
        (&["resize", "-i", "2", "-s", "40m"], "disk.imgp2 resized\n"),
    ];
    for (arguments, said) in steps {
        assert_eq!(part(&[arguments, &[disk.as_str()]].concat()), said);
        let end = if arguments[0] == "resize" {
            90_111
        } else {
            15_359
        };
        judged(&disk, "gpt", &[(1, 2048, 8191), (2, 8192, end)]);
    }
    let sector0 = std::fs::read(&path).expect("the image");
    assert_eq!((sector0[446], sector0[450]), (0x80, 0xee), "it is active");
    let shown = part(&["show", "-l", &disk]);
    has(
        &shown,
        "  2048    6144         1  home  [bootonce]  (3.0M)\n",
    );
    has(&shown, "  8192   81920         2  (null)  (40M)\n");
    let resized = json_of(part(&["resize", "-i", "2", "-a", "1m", "--json", &disk]));
    assert_eq!(resized["sectors"], 120_832, "59 MiB, up to the end");
    judged(&disk, "gpt", &[(1, 2048, 8191), (2, 8192, 129_023)]);
    let text = refused(&["resize", "-i", "1", "-s", "10m", &disk], 1);
    has(&text, "overlap partition 2");
    let text = refused(&["set", "-a", "bootable", "-i", "1", &disk], 2);
    has(
        &text,
        "it has bootme, bootonce, bootfailed, active, lenovofix",
    );
    let text = refused(&["destroy", &disk], 1);
    has(&text, "the GPT of disk.img is not empty (partitions: 2)");
    has(&text, "-F");
    judged(&disk, "gpt", &[(1, 2048, 8191), (2, 8192, 129_023)]);
    assert_eq!(part(&["destroy", "-F", &disk]), "disk.img destroyed\n");
    refused(&["show", &disk], 1);
    if let Some(wipefs) = ugeom_testkit::program("wipefs") {
        assert_eq!(other(wipefs, &["-n", &disk]), b"", "nothing is left");
    }
}

#[test]
fn slices_of_an_mbr_are_modified_resized_and_destroyed_as_gpart_does() {
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    assert_eq!(part(&["create", "-s", "mbr", &disk]), "disk.img created\n");
    let again = refused(&["create", "-s", "gpt", &disk], 1);
    has(&again, "an MBR without partitions");
    assert_eq!(
        part(&["add", "-t", "!131", "-s", "8m", &disk]),
        "disk.imgs1 added\n"
    );
    assert_eq!(part(&["add", "-t", "!131", &disk]), "disk.imgs2 added\n");
    judged(&disk, "mbr", &[(1, 2048, 18_431), (2, 18_432, 131_071)]);
    for index in ["2", "1"] {
        let set = ["set", "-a", "active", "-i", index, &disk];
        assert_eq!(part(&set), format!("active set on disk.imgs{index}\n"));
        judged(&disk, "mbr", &[(1, 2048, 18_431), (2, 18_432, 131_071)]);
    }
    part(&["modify", "-i", "2", "-t", "freebsd", &disk]);
    part(&["resize", "-i", "1", "-s", "1m", &disk]);
    judged(&disk, "mbr", &[(1, 2048, 4095), (2, 18_432, 131_071)]);
    let shown = part(&["show", &disk]);
    has(
        &shown,
        "    2048    2048         1  linux-data  [active]  (1.0M)\n",
    );
    has(&shown, "  2  freebsd  (55M)\n");
    let label = refused(&["modify", "-i", "2", "-l", "home", &disk], 1);
    has(&label, "an MBR has no labels");
    assert_eq!(part(&["destroy", "-F", &disk]), "disk.img destroyed\n");
    refused(&["show", &disk], 1);
    assert_eq!(part(&["create", "-s", "gpt", &disk]), "disk.img created\n");
}

#[test]
fn actions_of_gpart_that_are_not_here_are_named() {
    for name in ["commit", "undo"] {
        let text = refused(&[name, "disk.img"], 2);
        let expected =
            format!("ugeom: there is no `ugeom part {name}`: each change is written immediately\n");
        assert_eq!(text, expected);
    }
    let text = refused(&["restor", "disk.img"], 2);
    has(&text, "\"restor\" is no action of `ugeom part`");
    has(&text, "did you mean restore?");
}
