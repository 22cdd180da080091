//! Machines made of files.

use super::*;
use proptest::prelude::*;
use std::fs;
use ugeom_format::dm_table::Target;

struct Machine {
    _folder: tempfile::TempDir,
    system: System,
}

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(folder.path().join("sys/block")).unwrap();
        let system = System {
            proc: folder.path().join("proc"),
            sys: folder.path().join("sys"),
        };
        Self {
            _folder: folder,
            system,
        }
    }

    fn tree(&self) -> KernelTree {
        KernelTree::read(&self.system, None).unwrap()
    }
}

/// A disk with a partition, an encrypted device on it, a file system, a file of a loop device with
/// a partition, and a second loop device on the first.
const LAPTOP: &[(&str, &str)] = &[
    ("sys/block/sda/dev", "8:0\n"),
    ("sys/block/sda/size", "2048000\n"),
    ("sys/block/sda/ro", "0\n"),
    ("sys/block/sda/queue/logical_block_size", "4096\n"),
    (
        "sys/block/sda/queue/scheduler",
        "none [mq-deadline] kyber\n",
    ),
    ("sys/block/sda/queue/nr_requests", "64\n"),
    ("sys/block/sda/sda2/dev", "8:2\n"),
    ("sys/block/sda/sda2/partition", "2\n"),
    ("sys/block/sda/sda2/start", "2048\n"),
    ("sys/block/sda/sda2/size", "1000000\n"),
    ("sys/block/dm-0/dev", "252:0\n"),
    ("sys/block/dm-0/size", "999424\n"),
    ("sys/block/dm-0/dm/name", "root\n"),
    ("sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0\n"),
    ("sys/block/dm-0/slaves/sda2/dev", "8:2\n"),
    ("sys/block/loop0/dev", "7:0\n"),
    ("sys/block/loop0/size", "2048\n"),
    ("sys/block/loop0/loop/backing_file", "/images/a disk.img\n"),
    ("sys/block/loop0/loop/offset", "512\n"),
    ("sys/block/loop0/loop0p1/dev", "259:0\n"),
    ("sys/block/loop0/loop0p1/partition", "1\n"),
    ("sys/block/loop0/loop0p1/start", "64\n"),
    ("sys/block/loop0/loop0p1/size", "512\n"),
    ("sys/block/loop1/dev", "7:1\n"),
    ("sys/block/loop1/size", "2048\n"),
    ("sys/block/loop1/loop/backing_file", "/dev/loop0p1\n"),
    ("sys/block/loop2/dev", "7:2\n"),
    ("sys/block/loop2/size", "0\n"),
    (
        "proc/self/mountinfo",
        "20 1 0:5 / /proc rw - proc proc rw\n\
         21 1 252:0 / / rw,relatime shared:1 - ext4 /dev/mapper/root rw\n\
         22 1 0:40 / /mnt/my\\040files ro - fuse.ugeom ugeom rw\n\
         not a line\n",
    ),
];

fn names(tree: &KernelTree, nodes: &[usize]) -> Vec<String> {
    nodes
        .iter()
        .map(|at| tree.nodes[*at].name.clone())
        .collect()
}

#[test]
fn a_chain_goes_from_a_loop_device_to_the_disk() {
    let tree = Machine::new(LAPTOP).tree();
    let top = tree.named("/dev/loop1").unwrap();
    assert_eq!(
        names(&tree, &tree.chain(top)),
        [
            "loop1",
            "loop0p1",
            "loop0",
            "/images/a disk.img",
            "/",
            "dm-0",
            "sda2",
            "sda"
        ]
    );
    let disk = tree.named("sda").unwrap();
    assert_eq!(
        names(&tree, &tree.above(disk).collect::<Vec<_>>()),
        ["sda2"]
    );
    assert_eq!(tree.named("loop2"), None, "it has no file");
    assert_eq!(tree.named("mapper/root"), tree.named("dm-0"));
}

#[test]
fn sizes_starts_and_settings_are_those_of_sysfs() {
    let tree = Machine::new(LAPTOP).tree();
    let node = |name: &str| &tree.nodes[tree.named(name).unwrap()];
    let part = node("sda2");
    assert_eq!(part.start_bytes, Some(2048 * 512));
    assert_eq!((part.size_bytes, part.sector_bytes), (512_000_000, 4096));
    let setting = |name: &str| node("sda").fact(name);
    assert_eq!(setting("scheduler"), Some("mq-deadline"));
    assert_eq!(setting("queue depth"), Some("64"));
    let fuse = node("/mnt/my files");
    assert_eq!(
        (fuse.class, fuse.number, fuse.read_only),
        (Class::Fuse, Some((0, 40)), true)
    );
    assert_eq!(node("/").kind, "ext4");
}

#[test]
fn a_mapped_device_is_of_the_kind_of_its_targets() {
    let machine = Machine::new(LAPTOP);
    let targets = |number: DeviceNumber| {
        assert_eq!(number, (252, 0));
        let target = |kind: &str| Target {
            start_sector: 0,
            sectors: 8,
            kind: kind.to_owned(),
            parameters: String::new(),
        };
        Some(vec![target("linear"), target("linear"), target("delay")])
    };
    let tree = KernelTree::read(&machine.system, Some(&targets)).unwrap();
    assert_eq!(
        tree.nodes[tree.named("dm-0").unwrap()].kind,
        "linear, delay"
    );
}

#[test]
fn a_circle_of_devices_ends() {
    let tree = Machine::new(&[
        ("sys/block/md0/dev", "9:0"),
        ("sys/block/md0/md/level", "raid1"),
        ("sys/block/md0/slaves/md1/dev", "9:1"),
        ("sys/block/md1/dev", "9:1"),
        ("sys/block/md1/slaves/md0/dev", "9:0"),
    ])
    .tree();
    assert_eq!(names(&tree, &tree.chain(0)), ["md0", "md1"]);
    assert_eq!(
        (tree.nodes[0].class, tree.nodes[0].kind.as_str()),
        (Class::Md, "raid1")
    );
}

#[test]
fn names_are_sorted_by_their_numbers() {
    let disk = |name: &str| format!("sys/block/{name}/dev");
    let files = ["vda10", "vda9", "vda"].map(disk);
    let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "1:1")).collect();
    let tree = Machine::new(&files).tree();
    assert_eq!(names(&tree, &[0, 1, 2]), ["vda", "vda9", "vda10"]);
}

#[test]
fn this_machine_has_the_devices_of_diskstats() {
    let Ok(tree) = KernelTree::now() else {
        return ugeom_testkit::skip("no /sys/block");
    };
    let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let Ok(devices) = ugeom_format::diskstats::parse(&text) else { return };
    for device in devices {
        // Devices come and go while other tests run, and unused ones are left out.
        let unused = device.stat.reads.completed == 0;
        let exists = std::path::Path::new("/sys/block")
            .join(device.name)
            .exists();
        if exists && !unused && !device.name.starts_with("loop") {
            let node = tree.numbered((device.major, device.minor));
            assert!(node.is_some(), "{}", device.name);
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read(dev: String, size: String, backing: String, mounts: String, queue: String) {
        let tree = Machine::new(&[
            ("sys/block/loop0/dev", &dev),
            ("sys/block/loop0/size", &size),
            ("sys/block/loop0/queue/scheduler", &queue),
            ("sys/block/loop0/loop/backing_file", &backing),
            ("sys/block/sda/dev", &dev),
            ("sys/block/sda/sda1/partition", &size),
            ("proc/self/mountinfo", &mounts),
        ])
        .tree();
        for at in 0..tree.nodes.len() {
            prop_assert!(tree.chain(at).len() <= tree.nodes.len());
        }
    }
}
