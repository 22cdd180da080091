//! Machines made of files.

use super::*;

struct Fake {
    folder: tempfile::TempDir,
    system: System,
}

impl Fake {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let system = System {
            proc: folder.path().join("proc"),
            sys: folder.path().join("sys"),
        };
        Self { folder, system }
    }

    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self, path: &Path) -> Vec<String> {
        let found = self.system.below(path).unwrap();
        found.into_iter().map(|device| device.name).collect()
    }
}

/// The number of the file system that the folders of these tests lie on.
fn own_number(path: &Path) -> String {
    number(fs::metadata(path).unwrap().dev())
}

#[test]
fn a_file_ends_at_the_disk_whose_partition_holds_it() {
    let fake = Fake::new();
    let file = fake.put("file", "x");
    assert_eq!(fake.names(&file), [""; 0], "nothing is known of any device");
    fake.put("sys/block/sda/dev", "8:0\n");
    fake.put("sys/block/sdb/dev", "8:16\n");
    fake.put("sys/block/sdb/sdb2/partition", "2\n");
    fake.put(
        "sys/block/sdb/sdb2/dev",
        &format!("{}\n", own_number(&file)),
    );
    assert_eq!(fake.names(&file), ["sdb"]);
    let all = fake.system.all();
    assert_eq!(
        all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
        ["sda", "sdb"]
    );
}

#[test]
fn what_a_device_is_put_together_from_follows_it() {
    let fake = Fake::new();
    let file = fake.put("file", "x");
    fake.put("sys/block/dm-0/dev", &own_number(&file));
    fake.put("sys/block/dm-0/slaves/md1/dev", "9:1\n");
    fake.put("sys/block/md1/dev", "9:1\n");
    fake.put("sys/block/md1/slaves/sda1/dev", "8:1\n");
    fake.put("sys/block/md1/slaves/sdb/dev", "8:16\n");
    fake.put("sys/block/sda/dev", "8:0\n");
    fake.put("sys/block/sda/sda1/dev", "8:1\n");
    fake.put("sys/block/sda/sda1/partition", "1\n");
    fake.put("sys/block/sdb/dev", "8:16\n");
    // A circle ends.
    fake.put("sys/block/sdb/slaves/dm-0/dev", &own_number(&file));
    assert_eq!(fake.names(&file), ["dm-0", "md1", "sdb", "sda"]);
}

#[test]
fn a_loop_device_stands_on_the_disk_of_its_file() {
    let fake = Fake::new();
    let image = fake.put("disk.img", "x");
    fake.put("sys/block/loop7/dev", "7:7\n");
    fake.put(
        "sys/block/loop7/loop/backing_file",
        &format!("{}\n", image.display()),
    );
    fake.put("sys/block/vda/dev", &own_number(&image));
    let device = fake.system.named("/dev/loop7").unwrap();
    let under = fake.system.under(&device);
    assert_eq!(
        under
            .iter()
            .map(|one| one.name.as_str())
            .collect::<Vec<_>>(),
        ["vda"]
    );
    assert_eq!(fake.system.named("loop8"), None);
}

#[test]
fn counters_and_queue_are_read_where_the_kernel_has_them() {
    let fake = Fake::new();
    fake.put("sys/block/cciss!c0d0/dev", "104:0\n");
    fake.put("sys/block/cciss!c0d0/stat", "1 2 3\n");
    fake.put(
        "sys/block/cciss!c0d0/queue/scheduler",
        "none [mq-deadline] kyber\n",
    );
    fake.put("sys/block/cciss!c0d0/queue/nr_requests", "256\n");
    fake.put("sys/block/cciss!c0d0/queue/max_sectors_kb", "1280\n");
    fake.put("sys/block/cciss!c0d0/queue/rotational", "1\n");
    let device = fake.system.named("/dev/cciss/c0d0").unwrap();
    assert_eq!(device.stat().unwrap(), "1 2 3\n");
    let queue = device.queue();
    assert_eq!(queue.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(queue.schedulers, ["none", "mq-deadline", "kyber"]);
    fake.put("sys/block/cciss!c0d0/queue/scheduler", "none\n");
    assert_eq!(device.queue().scheduler.as_deref(), Some("none"));
    assert_eq!(queue.requests, Some(256));
    assert_eq!(queue.request_bytes_max, Some(1_310_720));
    assert_eq!(
        (queue.rotational, queue.read_ahead_bytes),
        (Some(true), None)
    );
    fs::remove_dir_all(fake.folder.path().join("sys")).unwrap();
    assert!(device.stat().is_err(), "it is gone");
    assert_eq!(device.queue(), Queue::default());
}

#[test]
fn the_queue_of_a_device_and_of_its_partition_is_found_by_number() {
    let fake = Fake::new();
    fake.put("sys/block/sda/mq/0/nr_tags", "64\n");
    fake.put("sys/block/sda/queue/nr_requests", "62\n");
    fake.put("sys/block/sda/sda1/partition", "1\n");
    fake.put("sys/block/dm-0/queue/nr_requests", "128\n");
    let sys = fake.folder.path().join("sys");
    fs::create_dir_all(sys.join("dev/block")).unwrap();
    for (number, disk) in [("8:0", "sda"), ("8:1", "sda/sda1"), ("253:0", "dm-0")] {
        let link = sys.join("dev/block").join(number);
        std::os::unix::fs::symlink(sys.join("block").join(disk), link).unwrap();
    }
    let requests = |major, minor| {
        let number = rustix::fs::makedev(major, minor);
        fake.system.queue_requests(number)
    };
    assert_eq!(requests(8, 0), Some(62));
    assert_eq!(requests(8, 1), Some(62), "a partition");
    assert_eq!(requests(253, 0), None, "put together from others");
    assert_eq!(requests(0, 27), None, "a file in memory");
}

#[test]
fn a_path_that_is_not_there_is_an_error_and_memory_has_no_device() {
    assert!(below(Path::new("/no/such/file")).is_err());
    assert_eq!(below(Path::new("/proc/self/stat")).unwrap(), []);
}
