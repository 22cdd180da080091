//! The file or device under test as the system describes it: where it is mounted, with what file
//! system, and how the device below is driven.
//!
//! Sources: proc(5) (`mountinfo`), stat(2), and `ugeom_machine::block_device`.

use super::content::{Content, encrypted_and_compressed, is_dm_crypt};
use super::word;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use ugeom_machine::block_device::{BlockDevice, System};
use ugeom_machine::mounts::Mount;

/// The name of a temporary file in results.
pub const TEMPORARY_FILE: &str = "the temporary file";

/// Facts about a file or a device. Facts that the system does not report are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// The path, as the user gave it.
    pub path: String,
    /// `regular file`, `block device` or `character device`.
    pub kind: String,
    /// Where the file system that holds a regular file is mounted.
    pub mount_point: Option<String>,
    /// The type of that file system.
    pub file_system: Option<String>,
    /// The options that it is mounted with.
    pub mount_options: Option<String>,
    /// The whole device below, such as `vda`.
    pub device: Option<String>,
    /// The device's I/O scheduler.
    pub scheduler: Option<String>,
    /// The I/O schedulers that it could have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedulers: Vec<String>,
    /// How many requests the kernel queues for it.
    pub queue_requests: Option<u64>,
    /// Whether it is rotational.
    pub rotational: Option<bool>,
    /// The smallest block that it can be asked for, bytes.
    pub logical_block_bytes: Option<u64>,
    /// The largest transfer that the kernel asks it for, bytes.
    pub transfer_bytes_max: Option<u64>,
    /// The length of a regular file, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How much of it is not in holes, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// Whether its first byte is in a hole.
    #[serde(default)]
    pub begins_with_hole: bool,
    /// Whether the file or the device is encrypted by the kernel.
    #[serde(default)]
    pub encrypted: bool,
    /// Whether the file system compresses it.
    #[serde(default)]
    pub compressed: bool,
    /// The file behind a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_file: Option<String>,
    /// Whether a loop device reads that file through the page cache.
    #[serde(default)]
    pub backing_is_buffered: bool,
}

impl TargetFacts {
    /// The facts about a path; none for a missing one.
    pub fn of(path: &Path) -> Option<Self> {
        facts(&System::default(), path)
    }

    /// The same of a temporary file, whose path says nothing to a reader.
    pub fn of_temporary(path: &Path) -> Option<Self> {
        Some(Self {
            path: TEMPORARY_FILE.to_owned(),
            ..Self::of(path)?
        })
    }
}

/// The name of the whole block device that a path is, or lies on: `vda` for `/dev/vda1` and for a
/// file on it. None where there is none (tmpfs, a network, some file systems of many devices).
pub fn device_below(path: &Path) -> Option<String> {
    TargetFacts::of(path)?.device
}

fn facts(system: &System, path: &Path) -> Option<TargetFacts> {
    let about = fs::metadata(path).ok()?;
    let kind = about.file_type();
    let mut facts = TargetFacts {
        path: path.display().to_string(),
        kind: match (kind.is_block_device(), kind.is_char_device()) {
            (true, _) => "block device",
            (_, true) => "character device",
            _ => "regular file",
        }
        .to_owned(),
        ..TargetFacts::default()
    };
    if kind.is_char_device() {
        return Some(facts);
    }
    let mut devices = system.below(path).unwrap_or_default();
    if !kind.is_block_device()
        && let Some(mount) = mount_of(system, path, about.dev())
    {
        if devices.is_empty() {
            devices = below_btrfs(system, &mount);
        }
        facts.mount_point = Some(mount.point.display().to_string());
        facts.file_system = Some(mount.kind);
        facts.mount_options = Some(format!("{},{}", mount.options, mount.own_options));
    }
    if let Some(device) = devices.first() {
        let queue = device.queue();
        facts.device = Some(device.name.clone());
        facts.scheduler = queue.scheduler;
        facts.schedulers = queue.schedulers;
        facts.queue_requests = queue.requests;
        facts.rotational = queue.rotational;
        facts.logical_block_bytes = queue.logical_block_bytes;
        facts.transfer_bytes_max = queue.request_bytes_max;
    }
    look_inside(&mut facts, system, path);
    Some(facts)
}

/// The device of a btrfs, whose files have a device number that no disk has. Empty where it has
/// several: then none of them counts all reads.
fn below_btrfs(system: &System, mount: &Mount) -> Vec<BlockDevice> {
    if mount.kind != "btrfs" {
        return Vec::new();
    }
    let devices = system.below(Path::new(&mount.source)).unwrap_or_default();
    let is_alone = |device: &BlockDevice| is_alone_in_btrfs(system, &device.name);
    match devices.first().is_some_and(is_alone) {
        true => devices,
        false => Vec::new(),
    }
}

/// Whether a device is the only one of its btrfs: `/sys/fs/btrfs/UUID/devices` has all.
fn is_alone_in_btrfs(system: &System, device: &str) -> bool {
    let all = fs::read_dir(system.sys.join("fs/btrfs"));
    let folders = all.into_iter().flatten().flatten();
    let mut folders = folders.map(|entry| entry.path().join("devices"));
    let Some(folder) = folders.find(|folder| folder.join(device).exists()) else {
        return false;
    };
    fs::read_dir(folder).is_ok_and(|entries| entries.count() == 1)
}

/// Holes, encryption, compression, and the device or file below a loop device.
fn look_inside(facts: &mut TargetFacts, system: &System, path: &Path) {
    if let Some(content) = Content::of(path) {
        facts.bytes = Some(content.bytes);
        facts.data_bytes = content.data_bytes;
        facts.begins_with_hole = content.begins_with_hole;
    }
    let options = facts.mount_options.as_deref().unwrap_or_default();
    (facts.encrypted, facts.compressed) = encrypted_and_compressed(path, options);
    facts.encrypted |= facts.file_system.as_deref() == Some("ecryptfs");
    let Some(device) = &facts.device else { return };
    let folder = system.sys.join("class/block").join(device);
    facts.encrypted |= is_dm_crypt(word(&folder.join("dm/uuid")).as_deref());
    facts.backing_file = word(&folder.join("loop/backing_file"));
    facts.backing_is_buffered = word(&folder.join("loop/dio")).as_deref() == Some("0");
}

/// The mount with the longest mount point that holds the path, on the device of the file. Files of
/// btrfs and of overlays have devices that no mount has: then the longest mount point decides, and
/// among equal ones the last, which hides the others.
fn mount_of(system: &System, path: &Path, device: u64) -> Option<Mount> {
    // A file without a name has no path that could be compared.
    let path = fs::canonicalize(path).ok();
    let number = (rustix::fs::major(device), rustix::fs::minor(device));
    let mounts = system.mounts();
    let of_number = |mount: &Mount| mount.number == number;
    let holds = |mount: &Mount| path.as_ref().is_some_and(|it| it.starts_with(&mount.point));
    let longest = |is: &dyn Fn(&Mount) -> bool| {
        let mounts = mounts.iter().filter(|mount| is(mount));
        mounts
            .max_by_key(|mount| mount.point.as_os_str().len())
            .cloned()
    };
    if path.is_none() {
        return longest(&of_number);
    }
    longest(&|mount| of_number(mount) && holds(mount)).or_else(|| longest(&holds))
}

/// `regular file on ext4 at /, device vda (scheduler mq-deadline, queue depth 256)`.
impl fmt::Display for TargetFacts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.kind)?;
        if let (Some(file_system), Some(point)) = (&self.file_system, &self.mount_point) {
            write!(out, " on {file_system} at {point}")?;
        }
        let Some(device) = &self.device else { return Ok(()) };
        write!(out, ", device {device}")?;
        let mut more = Vec::new();
        if let Some(scheduler) = &self.scheduler {
            more.push(format!("scheduler {scheduler}"));
        }
        if let Some(requests) = self.queue_requests {
            more.push(format!("queue depth {requests}"));
        }
        if self.rotational == Some(true) {
            more.push("rotational".to_owned());
        }
        match more.is_empty() {
            true => Ok(()),
            false => write!(out, " ({})", more.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn only_a_btrfs_of_one_device_has_a_device_that_counts_all_reads() {
        let folder = tempfile::tempdir().unwrap();
        let system = System {
            proc: folder.path().join("proc"),
            sys: folder.path().to_owned(),
        };
        assert!(!is_alone_in_btrfs(&system, "vda"), "no btrfs at all");
        put(&folder.path().join("fs/btrfs/uuid-1/devices/vda"), "");
        put(&folder.path().join("fs/btrfs/uuid-2/devices/vdb"), "");
        put(&folder.path().join("fs/btrfs/uuid-2/devices/vdc"), "");
        put(&folder.path().join("fs/btrfs/features"), "");
        let alone = ["vda", "vdb", "vdd"].map(|name| is_alone_in_btrfs(&system, name));
        assert_eq!(alone, [true, false, false]);
    }

    #[test]
    fn a_file_is_found_on_its_mount_and_its_device() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let system = System {
            proc: root.join("proc"),
            sys: root.join("sys"),
        };
        let file = root.join("with blank/disk.img");
        put(&file, "x");
        let number = fs::metadata(&file).unwrap().dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let place = root
            .join("with blank")
            .display()
            .to_string()
            .replace(' ', "\\040");
        let line = |point: &str, kind: &str| {
            format!("30 1 {major}:{minor} / {point} rw,noatime shared:1 - {kind} none rw\n")
        };
        put(
            &root.join("proc/self/mountinfo"),
            &(line("/", "ext2") + &line(&place, "ext4") + "garbage\n"),
        );
        let disk = root.join("sys/block/vdz");
        put(&disk.join("vdz1/partition"), "1\n");
        put(&disk.join("vdz1/dev"), &format!("{major}:{minor}\n"));
        put(&disk.join("queue/scheduler"), "none [mq-deadline] kyber\n");
        put(&disk.join("queue/nr_requests"), "256\n");
        put(&disk.join("queue/rotational"), "1\n");
        put(&disk.join("queue/max_sectors_kb"), "512\n");
        let facts = facts(&system, &file).unwrap();
        assert_eq!(facts.device.as_deref(), Some("vdz"));
        assert_eq!(facts.schedulers, ["none", "mq-deadline", "kyber"]);
        assert_eq!(facts.transfer_bytes_max, Some(512 << 10));
        let point = root.join("with blank").display().to_string();
        assert_eq!(
            facts.to_string(),
            format!(
                "regular file on ext4 at {point}, device vdz (scheduler mq-deadline, \
                 queue depth 256, rotational)"
            )
        );
    }

    #[test]
    fn a_file_whose_device_no_mount_has_is_on_the_longest_mount_point() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let system = System {
            proc: root.join("proc"),
            sys: root.join("sys"),
        };
        let file = root.join("pool/disk.img");
        put(&file, "x");
        let pool = root.join("pool").display().to_string();
        let lines = [
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n".to_owned(),
            format!("60 22 0:50 / {pool} rw - btrfs /dev/sdb rw,compress=zstd:3\n"),
            format!("61 22 0:51 / {pool}2 rw - xfs /dev/sdc rw\n"),
        ];
        put(&root.join("proc/self/mountinfo"), &lines.concat());
        let facts = facts(&system, &file).unwrap();
        assert_eq!(facts.file_system.as_deref(), Some("btrfs"));
        assert!(facts.compressed);
        let between = facts.between().join("; ");
        assert!(between.contains("copy-on-write"), "{between}");
    }

    #[test]
    fn what_is_not_there_or_has_no_device_is_told_as_far_as_it_goes() {
        assert_eq!(TargetFacts::of(Path::new("/nonexistent/disk.img")), None);
        let zero = TargetFacts::of(Path::new("/dev/zero")).unwrap();
        assert_eq!(zero.to_string(), "character device");
        let process = TargetFacts::of(Path::new("/proc/self/stat")).unwrap();
        assert_eq!(
            (process.device, process.file_system.as_deref()),
            (None, Some("proc"))
        );
    }
}
