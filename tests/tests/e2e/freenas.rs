//! docs/freenas.md, step by step: a disk as FreeNAS made it, opened with ugeom, its file systems
//! read by other programs.

use crate::disks;
use crate::files::Mounted;
use crate::run::{other, ugeom, ugeom_with};
use crate::serve::noise;
use std::fs;
use std::path::PathBuf;
use ugeom_testkit::program;

/// A disk with swap in partition 1 and encrypted data in partition 2: a keyfile in slot 0, a
/// recovery key in slot 1.
struct Disk {
    folder: tempfile::TempDir,
    image: String,
}

impl Disk {
    fn new(content: &[u8], kind: &str) -> Self {
        let (folder, path) = disks::empty_image(content.len() as u64 + (8 << 20));
        let image = disks::text(&path);
        let disk = Self { folder, image };
        let part = |arguments: &[&str]| ugeom(&[&["part"], arguments].concat()).quiet();
        part(&["create", "-s", "gpt", &disk.image]);
        part(&["add", "-t", "freebsd-swap", "-s", "2m", &disk.image]);
        part(&["add", "-t", kind, &disk.image]);
        let (key, recovery) = (disk.path("geli.key"), disk.path("recovery.key"));
        fs::write(&key, noise(1, 64)).expect("a key");
        fs::write(&recovery, noise(2, 64)).expect("a key");
        let target = format!("{}@p2", disk.image);
        let geli = |arguments: &[&str]| ugeom(&[&["geli"], arguments].concat());
        geli(&[
            "init", "-Bnone", "-s", "4096", "-l", "256", "-P", "-K", &key, &target,
        ])
        .quiet();
        let second = [
            "setkey", "-Bnone", "-n", "1", "-p", "-k", &key, "-P", "-K", &recovery,
        ];
        assert_eq!(geli(&[&second[..], &[&target]].concat()).code, 0);
        let write = ["write", "--destroy", &disk.target("geli.key")];
        let written = ugeom_with(&write, content);
        assert_eq!(written.code, 0, "{}", written.stderr);
        disk
    }

    fn path(&self, name: &str) -> String {
        disks::text(&self.folder.path().join(name))
    }

    /// The decrypted partition, as the page writes it.
    fn target(&self, key: &str) -> String {
        format!(
            "{}@p2 | eli:keyfile={},nopassphrase=1",
            self.image,
            self.path(key)
        )
    }

    /// Step 5: the decrypted partition as a file; `None`, after saying why, without FUSE.
    fn served(&self, test: &str) -> Option<(Mounted, PathBuf)> {
        let own = tempfile::tempdir_in(self.folder.path()).expect("a folder");
        let served = Mounted::start(test, own, &self.target("geli.key"), &[])?;
        let file = PathBuf::from(served.file("disk.imgp2.eli"));
        Some((served, file))
    }
}

/// Steps 2 to 5, with ext4 in place of a pool: debugfs reads the file that the server gives out.
#[test]
fn a_disk_of_freenas_is_opened_step_by_step() {
    let test = "a_disk_of_freenas_is_opened";
    let (Some(mkfs), Some(debugfs)) = (program(test, "mkfs.ext4"), program(test, "debugfs")) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (tree, system) = (folder.path().join("tree"), folder.path().join("ext4"));
    fs::create_dir(&tree).expect("a folder");
    let file = noise(3, 300_000);
    fs::write(tree.join("file"), &file).expect("a file");
    let (tree, system) = (disks::text(&tree), disks::text(&system));
    other(mkfs, &["-q", "-d", &tree, &system, "16m"]);
    let disk = Disk::new(&fs::read(&system).expect("a file system"), "freebsd-zfs");
    let before = fs::read(&disk.image).expect("an image");

    let shown = ugeom(&["show", &disk.image]).quiet();
    assert!(
        shown.contains("slots 0 1") || shown.contains("slots 0, 1"),
        "{shown}"
    );
    for (key, slot) in [("geli.key", "UsedKey: 0"), ("recovery.key", "UsedKey: 1")] {
        let listed = ugeom(&["geli", "list", &disk.target(key)]).quiet();
        assert!(listed.lines().any(|line| line == slot), "{listed}");
    }
    let shown = ugeom(&["show", &disk.target("geli.key")]).quiet();
    assert!(shown.contains("ext"), "{shown}");
    let Some((mut served, decrypted)) = disk.served(test) else {
        return;
    };
    let read = other(debugfs, &["-R", "cat /file", &disks::text(&decrypted)]);
    assert!(read == file);
    assert_eq!(served.signal("-TERM").code(), Some(0));
    assert!(
        fs::read(&disk.image).expect("an image") == before,
        "a step wrote"
    );
}

/// A disk with UFS: GRUB reads it, through the served file, and by itself from the encrypted disk.
#[test]
fn a_disk_with_ufs_is_read_through_the_served_file() {
    let test = "a_disk_with_ufs";
    let (Some(makefs), Some(grub)) = (program(test, "makefs"), program(test, "grub-fstest")) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (tree, system) = (folder.path().join("tree"), folder.path().join("ufs"));
    fs::create_dir(&tree).expect("a folder");
    let file = noise(4, 200_000);
    fs::write(tree.join("file"), &file).expect("a file");
    let (tree, system) = (disks::text(&tree), disks::text(&system));
    other(
        makefs,
        &["-t", "ffs", "-o", "version=2", "-s", "16m", &system, &tree],
    );
    let disk = Disk::new(&fs::read(&system).expect("a file system"), "freebsd-ufs");
    let shown = ugeom(&["show", &disk.target("geli.key")]).quiet();
    assert!(shown.to_lowercase().contains("ufs"), "{shown}");
    let Some((_served, decrypted)) = disk.served(test) else {
        return;
    };
    let out = disk.path("out");
    other(
        grub,
        &[&disks::text(&decrypted), "cp", "(loop0)/file", &out],
    );
    assert!(fs::read(out).expect("a file") == file);
}
