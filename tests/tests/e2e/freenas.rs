//! docs/freenas.md, step by step: a disk as FreeNAS made it, opened with ugeom, its file systems
//! read by other programs.

use crate::disks;
use crate::files::Mounted;
use crate::run::{command, has, other, part, run, ugeom, ugeom_with};
use crate::serve::noise;
use std::fs;
use std::path::PathBuf;
use ugeom_testkit::{program, skip};

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
        disks::at(&self.folder, name)
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
    fn served(&self) -> Option<(Mounted, PathBuf)> {
        self.served_with(&[])
    }

    fn served_with(&self, arguments: &[&str]) -> Option<(Mounted, PathBuf)> {
        let own = tempfile::tempdir_in(self.folder.path()).expect("a folder");
        let served = Mounted::start(own, &self.target("geli.key"), arguments)?;
        let file = PathBuf::from(served.file("disk.imgp2.eli"));
        Some((served, file))
    }
}

/// Steps 2 to 5, with ext4 in place of a pool: debugfs reads the file that the server gives out.
#[test]
fn a_disk_of_freenas_is_opened_step_by_step() {
    let (Some(mkfs), Some(debugfs)) = (program("mkfs.ext4"), program("debugfs")) else {
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
    has(&shown, "ext");
    let Some((mut served, decrypted)) = disk.served() else { return };
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
    let (Some(makefs), Some(grub)) = (program("makefs"), program("grub-fstest")) else {
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
    let Some((_served, decrypted)) = disk.served() else { return };
    let out = disk.path("out");
    other(
        grub,
        &[&disks::text(&decrypted), "cp", "(loop0)/file", &out],
    );
    assert!(fs::read(out).expect("a file") == file);
}

/// The list of names and values of a pool's label, in XDR (RFC 4506): its header, pairs with their
/// sizes, and an empty pair at the end.
fn label_list(name: &str, guid: u64) -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let pair = |key: &str, kind: u32, value: Vec<u8>| {
        let mut body = text(key);
        body.extend(kind.to_be_bytes());
        body.extend(1_u32.to_be_bytes());
        body.extend(value);
        let size = body.len() as u32 + 8;
        let sizes = [size, size.next_multiple_of(8) + 16].map(u32::to_be_bytes);
        [sizes.concat(), body].concat()
    };
    let number = |value: u64| value.to_be_bytes().to_vec();
    let mut list = vec![1, 1, 0, 0];
    list.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    list.extend(pair("version", 8, number(5000)));
    list.extend(pair("name", 9, text(name)));
    list.extend(pair("state", 8, number(1)));
    list.extend(pair("pool_guid", 8, number(guid)));
    list.extend(pair("guid", 8, number(guid + 1)));
    list.extend([0; 8]);
    list
}

/// Steps 4 and 5 of a pool: its label is found once the partition is open, by ugeom, and by blkid
/// in the file that the server gives out.
#[test]
fn the_label_of_a_pool_is_found_inside() {
    let guid = 0x1234_5678_9abc_def0;
    // blkid looks for pools on disks of 64 MiB and more.
    let mut content = vec![0; 64 << 20];
    for label in [0, 256 << 10] {
        let list = label_list("tank", guid);
        content[label + (16 << 10)..][..list.len()].copy_from_slice(&list);
        for slot in 0..8 {
            let uberblock = [0x00ba_b10c_u64, 5000, 4 + slot, 7]
                .map(u64::to_le_bytes)
                .concat();
            let at = label + (128 << 10) + ((slot as usize) << 10);
            content[at..][..uberblock.len()].copy_from_slice(&uberblock);
        }
    }
    let disk = Disk::new(&content, "freebsd-zfs");
    let locked = ugeom(&["show", &disk.image]).quiet();
    assert!(!locked.contains("tank"), "{locked}");
    let shown = ugeom(&["show", &disk.target("geli.key")]).quiet();
    has(&shown, "ZFS pool");
    has(&shown, "tank");
    let Some(blkid) = program("blkid") else { return };
    let Some((_served, decrypted)) = disk.served() else { return };
    let read = other(blkid, &["-p", "-o", "export", &disks::text(&decrypted)]);
    let read = String::from_utf8(read).expect("text");
    for line in [
        "TYPE=zfs_member".to_owned(),
        "LABEL=tank".to_owned(),
        format!("UUID={guid}"),
    ] {
        assert!(read.lines().any(|one| one == line), "{line}: {read}");
    }
}

/// Runs commands of ZFS (`$1`, `$2`: arguments) beside a daemon of zfs-fuse that nothing else
/// reaches: its socket, its list of pools and its mounts are in name spaces that end with it.
const ZFS: &str = r#"
set -e
PATH=$PATH:/usr/sbin:/sbin
mount --make-rprivate /
mount -t tmpfs none /run
mkdir /run/zfs /run/lock
mkdir -p /var/lib/zfs
for own in /etc/zfs /var/lib/zfs; do mount -t tmpfs none $own; done
zfs-fuse --no-daemon --no-kstat-mount --pidfile /run/zfs/pid &
until [ -S /run/zfs/zfs_socket ]; do
    kill -0 $! || { echo "zfs-fuse ended" >&2; exit 1; }
    sleep 0.05
done
# The kernel may still be releasing a file that was just closed: "pool is busy".
export_tank() {
    until zpool export tank; do
        sleep 0.2
    done
}
eval "$0"
"#;

/// Step 6: zfs-fuse makes a pool inside the encrypted partition, exports it, and imports it from
/// the file that a new server gives out.
#[test]
fn a_pool_inside_geli_is_imported_and_read() {
    for needed in ["zfs-fuse", "zpool", "unshare"] {
        if program(needed).is_none() {
            return;
        }
    }
    let name_spaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let tried = run(
        command("unshare", &[&name_spaces[..], &["true"]].concat()),
        b"",
    );
    if tried.code != 0 {
        return skip(tried.stderr.trim());
    }
    let zfs = |script: &str, arguments: &[&str]| {
        let all = [&name_spaces[..], &["sh", "-c", ZFS, script], arguments].concat();
        let ended = run(command("unshare", &all), b"");
        assert_eq!(ended.code, 0, "{script}: {}{}", ended.text(), ended.stderr);
        ended.stdout
    };
    // A pool takes at least 64 MiB.
    let disk = Disk::new(&vec![0; 72 << 20], "freebsd-zfs");
    let content = noise(5, 300_000);
    let (file, pool) = (disk.path("file"), disk.path("pool"));
    fs::write(&file, &content).expect("a file");
    let Some((mut served, decrypted)) = disk.served_with(&["--rw"]) else { return };
    let made = r#"zpool create -m "$3" tank "$1" && cp "$2" "$3/file" && export_tank"#;
    zfs(made, &[&disks::text(&decrypted), &file, &pool]);
    assert_eq!(served.signal("-TERM").code(), Some(0));
    let locked = ugeom(&["show", &disk.image]).quiet();
    assert!(!locked.contains("tank"), "{locked}");
    let shown = ugeom(&["show", &disk.target("geli.key")]).quiet();
    has(&shown, "ZFS pool tank");

    let Some((mut served, decrypted)) = disk.served_with(&["--rw"]) else { return };
    let folder = decrypted.parent().expect("a folder");
    // The pool's own mount points lie below the folder that -R gives.
    let read = r#"zpool import -d "$1" -R "$2" tank && cat "$2$3/file" && export_tank"#;
    let arguments = [&disks::text(folder), &disk.path("import"), &pool];
    let arguments = arguments.map(String::as_str);
    let found = zfs(read, &arguments);
    assert!(found == content, "{} bytes", found.len());
    assert_eq!(served.signal("-TERM").code(), Some(0));
}
