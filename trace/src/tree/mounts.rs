//! Mounted file systems: on which device each lies, and which one a path is on.

use super::{Class, KernelTree, Node};
use ugeom_machine::mounts::Mount;

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
            name: mount.point.display().to_string(),
            class: if fuse { Class::Fuse } else { Class::Fs },
            number: Some(mount.number),
            size_bytes: 0,
            sector_bytes: 0,
            start_bytes: None,
            read_only: mount.options.split(',').any(|option| option == "ro"),
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
        let point = mount.point.to_string_lossy();
        path.strip_prefix(point.trim_end_matches('/'))
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let mount = mounts
        .iter()
        .filter(holds)
        .max_by_key(|mount| mount.point.as_os_str().len())?;
    let is_it = |node: &Node| {
        matches!(node.class, Class::Fs | Class::Fuse) && node.number == Some(mount.number)
    };
    tree.nodes.iter().position(is_it)
}
