//! `part resize` to less than the content of a partition: refused without `--destroy`, for
//! everything that states its length and for content that reaches to the end of its partition.

use crate::disks;
use crate::run::{command, has, other, part, run, ugeom, ugeom_with, words_of};

/// The size of the content of the partition: 320 MiB, the minimum of xfs.
const CONTENT_BYTES: u64 = 320 << 20;

/// A disk whose partition 1 has 384 MiB.
struct Disk {
    folder: tempfile::TempDir,
    text: String,
}

impl Disk {
    fn new() -> Self {
        let (folder, path) = disks::empty_image(512 << 20);
        let text = disks::text(&path);
        part(&["create", "-s", "gpt", &text]);
        part(&["add", "-t", "linux-data", "-s", "384m", &text]);
        Self { folder, text }
    }

    /// A file of the size of what is made in the partition.
    fn content(&self) -> String {
        let path = self.folder.path().join("content");
        let file = std::fs::File::create(&path).expect("a file");
        file.set_len(CONTENT_BYTES).expect("a length");
        disks::text(&path)
    }

    fn copy_in(&self, content: &str) {
        let shell = format!(
            "'{}' write '{}@p1' < '{content}'",
            crate::run::UGEOM,
            self.text
        );
        other("sh", &["-c", &shell]);
    }

    fn resize(&self, size: &str) -> crate::run::Ended {
        ugeom(&["part", "resize", "-i", "1", "-s", size, &self.text])
    }

    /// The error of a resize to `size`, after which the table is unchanged.
    fn refuses(&self, size: &str) -> String {
        let before = part(&["backup", &self.text]);
        let said = self.resize(size).failed(1);
        assert_eq!(part(&["backup", &self.text]), before, "{said}");
        let end = ", --destroy cuts it off\n";
        has(&said, "; nothing was written");
        assert!(said.ends_with(end), "{said}");
        said
    }
}

/// Programs that make something which states its length, and how `part` names it.
const MAKERS: [(&str, &[&str], &str); 11] = [
    ("mkfs.ext4", &["-q"], "an ext4 file system"),
    ("mkfs.xfs", &["-q"], "an XFS file system"),
    ("mkfs.btrfs", &["-q"], "a Btrfs file system"),
    ("mkfs.vfat", &[], "a FAT16 file system"),
    ("mkntfs", &["-q", "-F", "-f"], "an NTFS file system"),
    ("mkfs.exfat", &[], "an exFAT file system"),
    ("mkfs.f2fs", &["-q"], "an F2FS file system"),
    ("mkfs.jfs", &["-q"], "a JFS file system"),
    ("mkfs.reiserfs", &["-q", "-ff"], "a ReiserFS file system"),
    ("mkfs.nilfs2", &["-q"], "a NILFS2 file system"),
    ("mkswap", &[], "a swap area"),
];

#[test]
fn a_partition_is_not_made_shorter_than_its_file_system() {
    for (maker, arguments, title) in MAKERS {
        let Some(program) = ugeom_testkit::program(maker) else { continue };
        let disk = Disk::new();
        let content = disk.content();
        other(program, &[arguments, &[&content]].concat());
        disk.copy_in(&content);
        let said = disk.refuses("300m");
        has(&said, &format!("disk.imgp1 carries {title}"));
        has(&said, " bytes, and would have 314572800 bytes");
        // It fits exactly, or states a little less.
        disk.resize("320m").quiet();
        let cut = format!("part resize --destroy -i 1 -s 300m {}", disk.text);
        let cut = words_of(&cut);
        ugeom(&cut).quiet();
    }
}

#[test]
fn a_file_system_that_was_made_smaller_before_is_no_reason() {
    let Some(mkfs) = ugeom_testkit::program("mkfs.ext4") else { return };
    let disk = Disk::new();
    let content = disk.content();
    other(mkfs, &["-q", &content]);
    other("resize2fs", &[&content, "100M"]);
    disk.copy_in(&content);
    let said = disk.refuses("99m");
    let expected = "carries an ext4 file system (at byte 1080) of 104857600 bytes, and would have \
                    103809024 bytes; nothing was written, --destroy cuts it off";
    has(&said, expected);
    disk.resize("100m").quiet();
}

#[test]
fn what_reaches_to_the_end_of_its_partition_is_not_cut() {
    let disk = Disk::new();
    let p1 = format!("{}@p1", disk.text);
    // GELI's metadata is in the last sector.
    let key = disks::file(&disk.folder, "key", "secret");
    ugeom(&["geli", "init", "-B", "none", "-P", "-K", &key, &p1]).quiet();
    let said = disk.refuses("383m");
    has(&said, "GEOM::ELI");
    has(&said, "of 402653184 bytes");
    ugeom(&["geli", "clear", "--destroy", &p1]).quiet();
    disk.resize("383m").quiet();

    let Some(cryptsetup) = ugeom_testkit::program("cryptsetup") else { return };
    let content = disk.content();
    let format = format!("luksFormat -q --type luks1 --iter-time 10 {content}");
    let format = words_of(&format);
    let made = run(command(cryptsetup, &format), b"passphrase");
    assert_eq!(made.code, 0, "{}", made.stderr);
    disk.copy_in(&content);
    let said = disk.refuses("382m");
    has(&said, "LUKS1");
    has(&said, "of unknown length");
}

#[test]
fn partitions_in_a_partition_are_not_cut() {
    let (_folder, path) = disks::empty_image(64 << 20);
    let disk = disks::text(&path);
    part(&["create", "-s", "mbr", &disk]);
    part(&["add", "-t", "freebsd", "-s", "20m", &disk]);
    part(&["add", "-t", "ebr", "-s", "20m", &disk]);
    let (slice, extended) = (format!("{disk}@s1"), format!("{disk}@s2"));
    // A warning says that the extended partition has no record yet.
    for (scheme, kind, target) in [
        ("ebr", "linux-data", &extended),
        ("bsd", "freebsd-ufs", &slice),
    ] {
        assert_eq!(ugeom(&["part", "create", "-s", scheme, target]).code, 0);
        assert_eq!(
            ugeom(&["part", "add", "-t", kind, "-s", "10m", target]).code,
            0
        );
    }
    let before = std::fs::read(&path).expect("the image");
    for (index, size, scheme) in [("1", "9m", "BSD"), ("2", "9m", "EBR")] {
        let resize = ["part", "resize", "-i", index, "-s", size, &disk];
        let said = ugeom_with(&resize, b"").failed(1);
        let expected = format!("carries the {scheme} of its partitions of ");
        has(&said, &expected);
        assert!(std::fs::read(&path).expect("the image") == before, "{said}");
    }
    for index in ["1", "2"] {
        part(&["resize", "-i", index, "-s", "15m", &disk]);
    }
}
