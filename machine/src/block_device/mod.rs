//! The block devices below a path: the disk that a file's file system lies on, through partitions,
//! loop devices and devices that are put together from others (LVM, RAID, encryption), as far as
//! the system reports them.
//!
//! Sources: stat(2), proc(5) for `mountinfo`, sysfs(5), Documentation/ABI/stable/sysfs-block and
//! Documentation/ABI/testing/sysfs-block of Linux.

// Without unsafe code there is nothing for Miri, and files take it minutes.
#[cfg(all(test, not(miri)))]
mod tests;

use rustix::fs::{major, minor};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Devices on devices are followed so far: more than any real pile.
const DEVICES_MAX: usize = 64;

/// A whole device (never a partition).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name in `/sys/block`: `vda`, `loop0`, `dm-1`.
    pub name: String,
    /// Its folder in `/sys/block`.
    folder: PathBuf,
}

/// How the kernel serves a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The I/O scheduler in use, where the kernel tells it.
    pub scheduler: Option<String>,
    /// The I/O schedulers that it could have.
    pub schedulers: Vec<String>,
    /// How many requests may wait, where the kernel tells it.
    pub requests: Option<u64>,
    /// The largest request that is handed to the device in one piece, bytes.
    pub request_bytes_max: Option<u64>,
    /// How far the kernel reads ahead of a sequential reader, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// The smallest block that it can be asked for, bytes.
    pub logical_block_bytes: Option<u64>,
    /// Whether it says of itself that it turns.
    pub rotational: Option<bool>,
}

impl BlockDevice {
    /// The text of its file `stat`: its counters since it appeared.
    ///
    /// # Errors
    /// When the device is gone, or the system has no sysfs.
    pub fn stat(&self) -> io::Result<String> {
        fs::read_to_string(self.folder.join("stat"))
    }

    /// Chooses the scheduler of its queue: one of [`Queue::schedulers`].
    ///
    /// # Errors
    /// The error of the kernel: EINVAL for one that it does not have, EACCES to all but root.
    pub fn set_scheduler(&self, name: &str) -> io::Result<()> {
        let file = self.folder.join("queue/scheduler");
        // Not made where there is none: that would only fail later.
        let mut file = fs::File::options().write(true).open(file)?;
        io::Write::write_all(&mut file, name.as_bytes())
    }

    /// How the kernel serves it.
    pub fn queue(&self) -> Queue {
        let folder = self.folder.join("queue");
        let number = |file: &str| word(&folder.join(file))?.parse::<u64>().ok();
        let kib = |file: &str| number(file)?.checked_mul(1024);
        let listed = word(&folder.join("scheduler")).unwrap_or_default();
        let bare = |one: &str| one.trim_matches(['[', ']']).to_owned();
        let words = listed.split_whitespace();
        Queue {
            // A list of one has no brackets.
            scheduler: match words.clone().count() {
                1 => words.clone().next().map(bare),
                _ => words.clone().find(|one| one.starts_with('[')).map(bare),
            },
            schedulers: words.map(bare).collect(),
            requests: number("nr_requests"),
            request_bytes_max: kib("max_sectors_kb"),
            read_ahead_bytes: kib("read_ahead_kb"),
            logical_block_bytes: number("logical_block_size"),
            rotational: number("rotational").map(|number| number != 0),
        }
    }
}

/// The devices that a path ends at, the nearest first: for a file the disk of its file system, for
/// a block device itself (or the disk that it is a partition of), and then what these stand on.
/// Empty where there is none, as for files in memory or on a network.
///
/// # Errors
/// When the path cannot be looked at.
pub fn below(path: &Path) -> io::Result<Vec<BlockDevice>> {
    System::default().below(path)
}

/// How many requests the queue of a device takes at a time: of the device with that number (as
/// `st_rdev` of a block device and `st_dev` of a file on it), or of the disk that it is a partition
/// of. `None` where the kernel does not tell, and for devices that are put together from others.
pub fn queue_requests(device: u64) -> Option<u64> {
    System::default().queue_requests(device)
}

/// The device with that name in `/sys/block` or `/dev`; none when there is no such device.
pub fn named(name: &str) -> Option<BlockDevice> {
    System::default().named(name)
}

/// All devices that the kernel knows, by their names.
pub fn all() -> Vec<BlockDevice> {
    System::default().all()
}

/// Where the system tells about itself.
#[derive(Clone, Debug)]
pub struct System {
    /// `/proc`, or a folder like it.
    pub proc: PathBuf,
    /// `/sys`, or a folder like it.
    pub sys: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            sys: "/sys".into(),
        }
    }
}

impl System {
    /// As [`below`].
    ///
    /// # Errors
    /// When the path cannot be looked at.
    pub fn below(&self, path: &Path) -> io::Result<Vec<BlockDevice>> {
        let mut ahead = Vec::from_iter(self.device_of(&fs::metadata(path)?));
        let mut found: Vec<BlockDevice> = Vec::new();
        while let Some(device) = ahead.pop() {
            if found.len() >= DEVICES_MAX || found.contains(&device) {
                continue;
            }
            ahead.extend(self.under(&device));
            found.push(device);
        }
        Ok(found)
    }

    /// As [`queue_requests`].
    pub fn queue_requests(&self, device: u64) -> Option<u64> {
        let folder = self.sys.join("dev/block").join(number(device));
        let disk = match folder.join("partition").exists() {
            true => fs::canonicalize(&folder).ok()?.parent()?.to_owned(),
            false => folder,
        };
        // Only a device with a driver of its own has queues of hardware.
        let has_driver = disk.join("mq").exists();
        has_driver.then(|| word(&disk.join("queue/nr_requests"))?.parse().ok())?
    }

    /// As [`named`].
    pub fn named(&self, name: &str) -> Option<BlockDevice> {
        let name = name.strip_prefix("/dev/").unwrap_or(name).replace('/', "!");
        let known = entries(&self.sys.join("block"));
        let device = known.into_iter().find(|device| *device == name)?;
        Some(self.device(device))
    }

    /// As [`all`].
    pub fn all(&self) -> Vec<BlockDevice> {
        let names = entries(&self.sys.join("block"));
        names.into_iter().map(|name| self.device(name)).collect()
    }

    fn device(&self, name: String) -> BlockDevice {
        let folder = self.sys.join("block").join(&name);
        BlockDevice { name, folder }
    }

    fn device_of(&self, about: &fs::Metadata) -> Option<BlockDevice> {
        if about.file_type().is_block_device() {
            return self.numbered(&number(about.rdev()));
        }
        let number = number(about.dev());
        self.numbered(&number).or_else(|| self.mounted(&number))
    }

    /// The whole device with that number, or the one that has a partition with it.
    fn numbered(&self, number: &str) -> Option<BlockDevice> {
        let has = |folder: &Path| word(&folder.join("dev")).as_deref() == Some(number);
        let block = self.sys.join("block");
        let is_it = |name: &String| {
            let folder = block.join(name);
            let parts = || entries(&folder).into_iter().map(|part| folder.join(part));
            has(&folder) || parts().any(|part| part.join("partition").exists() && has(&part))
        };
        entries(&block)
            .into_iter()
            .find(is_it)
            .map(|name| self.device(name))
    }

    /// The device that is mounted there: some file systems (btrfs) have numbers of their own.
    fn mounted(&self, number: &str) -> Option<BlockDevice> {
        let mounts = fs::read(self.proc.join("self/mountinfo")).ok()?;
        let mounts = String::from_utf8_lossy(&mounts).into_owned();
        mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let dash = fields.iter().position(|field| *field == "-")?;
            let source = fields
                .get(dash + 2)
                .filter(|source| source.starts_with('/'))?;
            if fields.get(2) != Some(&number) {
                return None;
            }
            let about = fs::metadata(source).ok()?;
            let is_device = about.file_type().is_block_device();
            is_device.then(|| self.device_of(&about)).flatten()
        })
    }

    /// The devices below a device: the disk of a loop device's file, the parts of a composed
    /// device.
    fn under(&self, device: &BlockDevice) -> Vec<BlockDevice> {
        let backing = fs::read_to_string(device.folder.join("loop/backing_file"));
        let file = backing.ok().and_then(|path| {
            let path = path.strip_suffix('\n').unwrap_or(&path);
            self.device_of(&fs::metadata(path).ok()?)
        });
        let slaves = device.folder.join("slaves");
        let numbers = entries(&slaves)
            .into_iter()
            .filter_map(|slave| word(&slaves.join(slave).join("dev")));
        let parts = numbers.filter_map(|number| self.numbered(&number));
        file.into_iter().chain(parts).collect()
    }
}

pub(crate) fn number(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

pub(crate) fn word(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The names in a folder, in order.
fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}
