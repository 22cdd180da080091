//! The users of a block device or an image: file systems mounted from it, swap on it, loop devices
//! over it.
//!
//! Sources: proc(5) for `mountinfo` and `swaps`, sysfs(5) and
//! Documentation/ABI/testing/sysfs-block for partitions, holders and the files behind loop
//! devices.

use crate::block_device::{System, number, word};
use crate::mounts::{Mount, unescaped};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Devices on devices are followed so far: more than any real stack of LVM, RAID and encryption.
const MOST_DEVICES: usize = 1024;

/// File systems of servers, which may not answer: a path in them can wait forever. `fuse` with what
/// follows its dot, too.
const SERVED: [&str; 8] = [
    "fuse", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "9p", "ceph",
];

/// Whether a mount is one of a server, which may not answer.
fn is_served(mount: &Mount) -> bool {
    let kind = mount.kind.split('.').next();
    kind.is_some_and(|kind| SERVED.contains(&kind))
}

/// The mounts of this process, later ones over earlier ones.
struct Mounts(Vec<Mount>);

impl Mounts {
    /// Looks up a path, unless it lies in a file system that may not answer. One does that has just
    /// answered: that of `image`.
    fn look(&self, path: &str, image: Option<&fs::Metadata>) -> Option<fs::Metadata> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return None;
        }
        let around = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        let mount = around.max_by_key(|mount| mount.point.components().count());
        let answers = mount.is_none_or(|mount| {
            !is_served(mount) || image.is_some_and(|image| pair(image.dev()) == mount.number)
        });
        answers.then(|| fs::metadata(path).ok()).flatten()
    }
}

/// The use of a block device or an image (`is mounted at /mnt`, `is attached to /dev/loop0`), if
/// any. A path that cannot be examined counts as unused: opening it gives the error.
pub fn use_of(path: &Path) -> Option<String> {
    Uses::default().use_of(path)
}

/// The files behind a block device: those of loop devices, also below partitions and below devices
/// that are made of others. A file of a server that may not answer is left out.
pub fn files_behind(device: &Path) -> Vec<PathBuf> {
    Uses::default().files_behind(device)
}

/// The system's mounts, loop devices and swap areas.
#[derive(Default)]
struct Uses(System);

impl Uses {
    fn use_of(&self, path: &Path) -> Option<String> {
        let about = fs::metadata(path).ok()?;
        let mounts = self.mounts();
        let loops = self.loops_of(&about, &mounts);
        let is_device = about.file_type().is_block_device();
        let itself = is_device.then(|| number(about.rdev()));
        let first = itself.into_iter();
        let devices = first.chain(loops.iter().filter_map(|device| word(&device.join("dev"))));
        let devices = self.with_those_above(devices.collect());
        mount_of(&devices, &mounts)
            .or_else(|| self.swap_on(&devices, &about, &mounts))
            .or_else(|| {
                let name = loops.first()?.file_name()?.to_string_lossy();
                Some(format!("is attached to /dev/{name}"))
            })
    }

    fn files_behind(&self, device: &Path) -> Vec<PathBuf> {
        let Ok(about) = fs::metadata(device) else { return Vec::new() };
        match about.file_type().is_block_device() {
            true => self.files_below(number(about.rdev())),
            false => Vec::new(),
        }
    }

    /// The files below a device that is known by its number.
    fn files_below(&self, device: String) -> Vec<PathBuf> {
        let mounts = self.mounts();
        let mut files = Vec::new();
        let mut found = BTreeSet::new();
        let mut ahead = vec![device];
        while let Some(device) = ahead.pop() {
            if found.len() >= MOST_DEVICES || !found.insert(device.clone()) {
                continue;
            }
            let Some(folder) = self.folder_of(&device) else { continue };
            if folder.join("partition").exists() {
                ahead.extend(word(&folder.join("../dev")));
            }
            let parts = entries(&folder.join("slaves"));
            ahead.extend(parts.filter_map(|part| word(&part.join("dev"))));
            let Some(name) = read(&folder.join("loop/backing_file")) else { continue };
            let name = name.trim_end_matches('\n');
            match mounts.look(name, None) {
                Some(about) if about.file_type().is_block_device() => {
                    ahead.push(number(about.rdev()));
                }
                Some(_) => files.push(PathBuf::from(name)),
                None => {}
            }
        }
        files
    }

    fn mounts(&self) -> Mounts {
        Mounts(self.0.mounts())
    }

    /// The folders of the loop devices that stand on an image or a block device.
    fn loops_of(&self, image: &fs::Metadata, mounts: &Mounts) -> Vec<PathBuf> {
        let is_it = |file: &Path| {
            let name = read(file)?;
            let about = mounts.look(name.trim_end_matches('\n'), Some(image))?;
            is_same(&about, image).then_some(())
        };
        entries(&self.0.sys.join("block"))
            .filter(|device| is_it(&device.join("loop/backing_file")).is_some())
            .collect()
    }

    /// The devices themselves, their partitions, and the devices made of them (LVM,
    /// RAID, encryption).
    fn with_those_above(&self, first: Vec<String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut ahead = first;
        while let Some(device) = ahead.pop() {
            if found.len() >= MOST_DEVICES || !found.insert(device.clone()) {
                continue;
            }
            let Some(folder) = self.folder_of(&device) else { continue };
            let partitions = entries(&folder).filter(|entry| entry.join("partition").exists());
            let above = partitions.chain(entries(&folder.join("holders")));
            ahead.extend(above.filter_map(|entry| word(&entry.join("dev"))));
        }
        found
    }

    /// The folder of a device in sysfs. Containers often see no `dev/block`; there the device is
    /// looked for by its number.
    fn folder_of(&self, device: &str) -> Option<PathBuf> {
        let direct = self.0.sys.join("dev/block").join(device);
        if direct.exists() {
            return Some(direct);
        }
        let is_it = |folder: &PathBuf| word(&folder.join("dev")).as_deref() == Some(device);
        entries(&self.0.sys.join("class/block")).find(is_it)
    }

    fn swap_on(
        &self,
        devices: &BTreeSet<String>,
        image: &fs::Metadata,
        mounts: &Mounts,
    ) -> Option<String> {
        let swaps = read(&self.0.proc.join("swaps"))?;
        swaps.lines().skip(1).find_map(|line| {
            let path = unescaped(line.split_whitespace().next()?.as_bytes());
            let path = String::from_utf8_lossy(&path);
            let about = mounts.look(&path, Some(image))?;
            let is_device = about.file_type().is_block_device();
            let is_ours =
                is_same(&about, image) || (is_device && devices.contains(&number(about.rdev())));
            is_ours.then(|| format!("is in use as swap ({path})"))
        })
    }
}

fn mount_of(devices: &BTreeSet<String>, mounts: &Mounts) -> Option<String> {
    // Some file systems (btrfs) have numbers of their own there; the source names the device.
    let source = |mount: &Mount| {
        let about = mounts.look(&mount.source, None)?;
        let is_device = about.file_type().is_block_device();
        is_device.then(|| number(about.rdev()))
    };
    let is_ours = |mount: &&Mount| {
        devices.contains(&text(mount.number)) || source(mount).is_some_and(|d| devices.contains(&d))
    };
    let mount = mounts.0.iter().find(is_ours)?;
    Some(format!("is mounted at {}", mount.point.display()))
}

fn pair(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// A number as sysfs has it.
fn text((major, minor): (u32, u32)) -> String {
    format!("{major}:{minor}")
}

/// Two names of one file, or two nodes of one block device.
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    let is_device = |it: &fs::Metadata| it.file_type().is_block_device();
    match (is_device(one), is_device(other)) {
        (true, true) => one.rdev() == other.rdev(),
        (false, false) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

fn read(path: &Path) -> Option<String> {
    // Mount points need not be UTF-8.
    fs::read(path)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

// Without unsafe code there is nothing for Miri.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::io;

    struct Fake {
        folder: tempfile::TempDir,
        system: Uses,
    }

    impl Fake {
        fn new() -> io::Result<Self> {
            let folder = tempfile::tempdir()?;
            let system = Uses(System {
                proc: folder.path().join("proc"),
                sys: folder.path().join("sys"),
            });
            let fake = Self { folder, system };
            fake.put("proc/swaps", "Filename Type Size Used Priority\n")?;
            fake.put("proc/self/mountinfo", "")?;
            Ok(fake)
        }

        fn put(&self, path: &str, text: &str) -> io::Result<PathBuf> {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(&path, text)?;
            Ok(path)
        }
    }

    const MOUNTS: &str = "22 1 0:21 / /proc rw shared:5 - proc proc rw\n\
        36 35 8:3 / /mnt/a\\040b rw,noatime master:1 - ext4 /dev/none rw\n";

    #[test]
    fn a_file_system_on_a_partition_of_the_disk_is_found() -> io::Result<()> {
        let fake = Fake::new()?;
        fake.put("proc/self/mountinfo", MOUNTS)?;
        fake.put("sys/dev/block/8:0/sda3/partition", "3\n")?;
        fake.put("sys/dev/block/8:0/sda3/dev", "8:3\n")?;
        let found = fake.system.with_those_above(vec!["8:0".into()]);
        assert_eq!(found, BTreeSet::from(["8:0".into(), "8:3".into()]));
        let mounts = fake.system.mounts();
        let place = mount_of(&found, &mounts);
        assert_eq!(place.as_deref(), Some("is mounted at /mnt/a b"));
        assert_eq!(mount_of(&BTreeSet::from(["8:0".into()]), &mounts), None);
        Ok(())
    }

    #[test]
    fn a_device_is_found_by_its_number_where_the_shortcut_is_missing() -> io::Result<()> {
        let fake = Fake::new()?;
        fake.put("sys/class/block/sdb/dev", "8:16\n")?;
        fake.put("sys/class/block/sda/dev", "8:0\n")?;
        fake.put("sys/class/block/sda/sda3/partition", "3\n")?;
        fake.put("sys/class/block/sda/sda3/dev", "8:3\n")?;
        let found = fake.system.with_those_above(vec!["8:0".into()]);
        assert_eq!(found, BTreeSet::from(["8:0".into(), "8:3".into()]));
        Ok(())
    }

    #[test]
    fn what_is_put_together_from_devices_is_followed_and_circles_end() -> io::Result<()> {
        let fake = Fake::new()?;
        fake.put("sys/dev/block/8:0/holders/dm-0/dev", "253:0\n")?;
        fake.put("sys/dev/block/253:0/holders/dm-1/dev", "253:1\n")?;
        fake.put("sys/dev/block/253:1/holders/sda/dev", "8:0\n")?;
        let found = fake.system.with_those_above(vec!["8:0".into()]);
        assert_eq!(found.len(), 3);
        Ok(())
    }

    #[test]
    fn an_image_behind_a_loop_device_is_in_use_mounted_or_not() -> io::Result<()> {
        let fake = Fake::new()?;
        let image = fake.put("disk.img", "x")?;
        fake.put("sys/block/loop7/dev", "8:3\n")?;
        let backing = format!("{}\n", image.display());
        fake.put("sys/block/loop7/loop/backing_file", &backing)?;
        fake.put("proc/self/mountinfo", MOUNTS)?;
        let found = fake.system.use_of(&image);
        assert_eq!(found.as_deref(), Some("is mounted at /mnt/a b"));
        fake.put("proc/self/mountinfo", "")?;
        let found = fake.system.use_of(&image);
        assert_eq!(found.as_deref(), Some("is attached to /dev/loop7"));
        let other = fake.put("other.img", "x")?;
        assert_eq!(fake.system.use_of(&other), None);
        Ok(())
    }

    #[test]
    fn the_file_behind_a_loop_device_is_found_below_partitions_and_mappings() -> io::Result<()> {
        let fake = Fake::new()?;
        let image = fake.put("disk.img", "x")?;
        fake.put("sys/dev/block/253:0/slaves/loop7p1/dev", "259:1\n")?;
        fake.put("sys/block/loop7/dev", "7:7\n")?;
        fake.put("sys/block/loop7/loop7p1/partition", "1\n")?;
        fake.put("sys/block/loop7/loop7p1/dev", "259:1\n")?;
        let backing = format!("{}\n", image.display());
        fake.put("sys/block/loop7/loop/backing_file", &backing)?;
        let devices = fake.folder.path().join("sys/dev/block");
        for (number, place) in [("7:7", "loop7"), ("259:1", "loop7/loop7p1")] {
            let place = fake.folder.path().join("sys/block").join(place);
            std::os::unix::fs::symlink(place, devices.join(number))?;
        }
        for device in ["7:7", "259:1", "253:0"] {
            assert_eq!(fake.system.files_below(device.into()), [image.as_path()]);
        }
        assert!(fake.system.files_below("8:0".into()).is_empty());
        assert!(fake.system.files_behind(&image).is_empty());
        Ok(())
    }

    #[test]
    fn a_path_in_a_served_file_system_is_looked_at_only_if_the_image_is_there() -> io::Result<()> {
        let fake = Fake::new()?;
        let image = fake.put("served/disk.img", "x")?;
        let about = fs::metadata(&image)?;
        let place = fake.folder.path().join("served");
        let mounts = |device: &str, file_system: &str| -> io::Result<Mounts> {
            let place = place.display();
            let line = format!("36 35 {device} / {place} rw - {file_system} x rw\n");
            fake.put("proc/self/mountinfo", &line)?;
            Ok(fake.system.mounts())
        };
        let path = image.to_string_lossy();
        let seen = |mounts: &Mounts| mounts.look(&path, Some(&about)).is_some();
        assert!(!seen(&mounts("0:99", "fuse.sshfs")?));
        assert!(!seen(&mounts("0:99", "nfs4")?));
        assert!(seen(&mounts("0:99", "ext4")?));
        assert!(seen(&mounts(&number(about.dev()), "fuse")?));
        assert!(mounts("0:99", "ext4")?.look("disk.img", None).is_none());
        Ok(())
    }

    #[test]
    fn an_image_that_is_swap_is_in_use() -> io::Result<()> {
        let fake = Fake::new()?;
        let image = fake.put("swap.img", "x")?;
        let line = format!("Filename\n{} file 4 0 -2\n", image.display());
        fake.put("proc/swaps", &line)?;
        let found = fake.system.use_of(&image).unwrap_or_default();
        assert!(found.starts_with("is in use as swap ("), "{found}");
        Ok(())
    }
}
