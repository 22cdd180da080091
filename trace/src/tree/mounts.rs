//! Mounted file systems: on which device each lies, and which one a path is on.
//!
//! Source: proc(5), `/proc/PID/mountinfo`.

use super::{Class, DeviceNumber, KernelTree, Node, numbers};
use std::fs;
use std::path::Path;

/// A line of `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The number of the file system.
    pub number: DeviceNumber,
    /// Where it is mounted.
    pub point: String,
    /// Type of the file system, as `ext4`.
    pub kind: String,
    /// What was mounted: a device, or a name.
    pub source: String,
    /// Whether it is mounted read-only.
    pub read_only: bool,
}

/// All mounts, in the kernel's order; none when the file cannot be read.
pub fn read(proc: &Path) -> Vec<Mount> {
    let bytes = fs::read(proc.join("self/mountinfo")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.lines().filter_map(parse).collect()
}

/// A line: `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
pub fn parse(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ').skip(2);
    let number = numbers(fields.next()?)?;
    let point = unescaped(fields.nth(1)?);
    let options = fields.next()?;
    let mut fields = fields.skip_while(|field| *field != "-").skip(1);
    Some(Mount {
        number,
        point,
        kind: fields.next()?.to_owned(),
        source: unescaped(fields.next()?),
        read_only: options.split(',').any(|option| option == "ro"),
    })
}

/// Blanks, tabs, newlines and backslashes are `\040` and the like.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Adds a node for each file system on a block device, and for each of a userspace server.
pub fn add_file_systems(tree: &mut KernelTree, mounts: &[Mount]) {
    for mount in mounts {
        let fuse = mount.kind == "fuse" || mount.kind.starts_with("fuse.");
        let on = tree.numbered(mount.number).or_else(|| {
            // btrfs and others have a number of their own; their source names the device.
            let device = mount.source.starts_with("/dev/");
            device.then(|| tree.named(&mount.source)).flatten()
        });
        let known = |node: &Node| {
            matches!(node.class, Class::Fs | Class::Fuse) && node.number == Some(mount.number)
        };
        if (on.is_none() && !fuse && !mount.kind.eq("fuseblk")) || tree.nodes.iter().any(known) {
            continue;
        }
        tree.add(Node {
            name: mount.point.clone(),
            class: if fuse { Class::Fuse } else { Class::Fs },
            number: Some(mount.number),
            size_bytes: 0,
            sector_bytes: 0,
            start_bytes: None,
            read_only: mount.read_only,
            kind: mount.kind.clone(),
            label: if fuse {
                mount.source.clone()
            } else {
                String::new()
            },
            config: Vec::new(),
            below: on.into_iter().collect(),
        });
    }
}

/// The file system that a path lies on: the mount whose point is the longest part of it, the last
/// one where several are mounted there.
pub fn below(tree: &KernelTree, mounts: &[Mount], path: &str) -> Option<usize> {
    let holds = |mount: &&Mount| {
        let point = mount.point.trim_end_matches('/');
        path.strip_prefix(point)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let mount = mounts
        .iter()
        .filter(holds)
        .max_by_key(|mount| mount.point.len())?;
    let is_it = |node: &Node| {
        matches!(node.class, Class::Fs | Class::Fuse) && node.number == Some(mount.number)
    };
    tree.nodes.iter().position(is_it)
}
