//! The kernel's stack as a tree: disks, partitions, loop devices with their files, devices put
//! together from others, file systems.
//!
//! ```text
//!   vda                 DISK   what hardware or a hypervisor provides
//!     /                 FS     the file system on it
//!       /img/disk.img   FILE   the file of a loop device
//!         loop0         LOOP
//!           loop0p1     PART
//!             dm-0      DM     its slaves are the devices below
//! ```
//!
//! Everything is text of sysfs and procfs; only the targets of a device-mapper device need an ioctl
//! and root. Both roots are parameters, so a recorded tree reads like a running kernel.
//!
//! Sources: Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-block-dm,
//! sysfs-block-zram, sysfs-block-bcache and sysfs-block-loop of Linux, md(4), proc(5) for
//! `mountinfo`.

mod device;
pub(crate) mod mounts;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use ugeom_machine::block_device::System;

/// Devices, files and file systems beyond this number are left out, and the tree is marked.
const NODES_MAX: usize = 4096;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A disk of a driver that has no class of its own here.
    Disk,
    /// A disk of virtio_blk.
    Virtio,
    /// A disk of the SCSI layer: SATA, SAS, USB.
    Scsi,
    /// A namespace of NVMe.
    Nvme,
    /// A loop device (`loop0`).
    Loop,
    /// A disk of compressed memory (`zram0`).
    Zram,
    /// A device of the device mapper.
    Dm,
    /// A software RAID (`md0`).
    Md,
    /// A cached device of bcache.
    Bcache,
    /// A network block device.
    Nbd,
    /// A block device of a userspace server.
    Ublk,
    /// A partition of a disk.
    Part,
    /// A mounted file system.
    Fs,
    /// A file system of a userspace server.
    Fuse,
    /// The file that a loop device shows.
    File,
}

impl Class {
    /// The word for it in listings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Disk => "DISK",
            Self::Virtio => "VIRTIO",
            Self::Scsi => "SCSI",
            Self::Nvme => "NVME",
            Self::Loop => "LOOP",
            Self::Zram => "ZRAM",
            Self::Dm => "DM",
            Self::Md => "MD",
            Self::Bcache => "BCACHE",
            Self::Nbd => "NBD",
            Self::Ublk => "UBLK",
            Self::Part => "PART",
            Self::Fs => "FS",
            Self::Fuse => "FUSE",
            Self::File => "FILE",
        }
    }
}

/// The number of a device: major and minor.
pub type DeviceNumber = (u32, u32);

/// A device, a file of a loop device, or a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The kernel's name (`vda1`), the path of a file, or the place where a file system is mounted.
    pub name: String,
    /// The class of layer.
    pub class: Class,
    /// The number of the device; of a file system that of its mount.
    pub number: Option<DeviceNumber>,
    /// Its size, bytes; 0 where it is not known.
    pub size_bytes: u64,
    /// The smallest block that it accepts, bytes; 0 for files and file systems.
    pub sector_bytes: u32,
    /// Where it begins in the device below, bytes.
    pub start_bytes: Option<u64>,
    /// Whether the kernel refuses writes to it.
    pub read_only: bool,
    /// The kind within its class: the targets of a device-mapper device, the level of a RAID, the
    /// type of a file system.
    pub kind: String,
    /// A name that users gave: that of a logical volume, say.
    pub label: String,
    /// Scheduler, queue depth, limits and other facts of its class.
    pub config: Vec<(String, String)>,
    /// The nodes that it stands on.
    pub below: Vec<usize>,
}

/// All of the kernel's layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTree {
    /// The nodes; [`Node::below`] has positions in this list.
    pub nodes: Vec<Node>,
    /// Nodes that there was no room for.
    pub left_out: usize,
}

impl Node {
    /// A fact of [`Node::config`] by its key.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let found = self.config.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl KernelTree {
    /// Reads the tree of a system. Where `targets` is given, it is asked for the table of each
    /// device-mapper device.
    ///
    /// # Errors
    /// When `/sys/block` cannot be listed.
    pub fn read(system: &System, targets: Option<&TargetsOf>) -> io::Result<Self> {
        let mut tree = Self::default();
        device::add_all(&mut tree, system, targets)?;
        let mounts = system.mounts();
        mounts::add_file_systems(&mut tree, &mounts);
        device::connect(&mut tree, system, &mounts);
        Ok(tree)
    }

    /// The running kernel's tree.
    ///
    /// # Errors
    /// As [`KernelTree::read`].
    pub fn now() -> io::Result<Self> {
        let targets = |number: DeviceNumber| {
            let (count, bytes) = ugeom_machine::device_mapper::table(number).ok()?;
            ugeom_format::dm_table::parse(&bytes, count).ok()
        };
        Self::read(&System::default(), Some(&targets))
    }

    /// The node of that kernel name, path below `/dev`, file of a loop device or mount point.
    pub fn named(&self, name: &str) -> Option<usize> {
        let short = name.strip_prefix("/dev/").unwrap_or(name);
        let is_it = |node: &Node| node.name == name || node.name == short;
        let by_label = |node: &Node| {
            let mapped = short.strip_prefix("mapper/").unwrap_or(short);
            !node.label.is_empty() && node.label == mapped
        };
        let nodes = &self.nodes;
        nodes
            .iter()
            .position(is_it)
            .or_else(|| nodes.iter().position(by_label))
    }

    /// The node with that device number that is a block device.
    pub fn numbered(&self, number: DeviceNumber) -> Option<usize> {
        let is_it = |node: &Node| {
            node.number == Some(number) && !matches!(node.class, Class::Fs | Class::Fuse)
        };
        self.nodes.iter().position(is_it)
    }

    /// The node that a path ends at: a device by its number, a file by the file system that it
    /// lies on.
    ///
    /// # Errors
    /// When the path cannot be looked at.
    pub fn at(&self, path: &Path) -> io::Result<Option<usize>> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let about = std::fs::metadata(path)?;
        let number = |dev: u64| (rustix::fs::major(dev), rustix::fs::minor(dev));
        if about.file_type().is_block_device() {
            return Ok(self.numbered(number(about.rdev())));
        }
        let of = number(about.dev());
        let mounted =
            |node: &Node| matches!(node.class, Class::Fs | Class::Fuse) && node.number == Some(of);
        Ok(self.nodes.iter().position(mounted))
    }

    /// The nodes on a node.
    pub fn above(&self, at: usize) -> impl Iterator<Item = usize> {
        let stands = move |(_, node): &(usize, &Node)| node.below.contains(&at);
        self.nodes
            .iter()
            .enumerate()
            .filter(stands)
            .map(|(position, _)| position)
    }

    /// The node and all that it stands on, the nearest first.
    pub fn chain(&self, from: usize) -> Vec<usize> {
        let (mut found, mut next) = (vec![from], 0);
        while let Some(at) = found.get(next).copied() {
            next += 1;
            for below in &self.nodes[at].below {
                if !found.contains(below) {
                    found.push(*below);
                }
            }
        }
        found
    }

    /// Adds a node; none when the tree is full.
    fn add(&mut self, node: Node) -> Option<usize> {
        if self.nodes.len() >= NODES_MAX {
            self.left_out += 1;
            return None;
        }
        self.nodes.push(node);
        Some(self.nodes.len() - 1)
    }
}

fn numbers(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Asks for the table of a device-mapper device: its targets in order.
pub type TargetsOf = dyn Fn(DeviceNumber) -> Option<Vec<ugeom_format::dm_table::Target>>;
