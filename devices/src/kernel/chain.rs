//! The chain of a device: what is read for each layer, and where the same blocks lie in it.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use ugeom_trace::tree::{Class, KernelTree};

/// A layer that can be read.
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it is.
    pub class: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// The open device or file.
    pub file: File,
    /// Where block 0 of the uppermost layer lies, bytes.
    pub offset_bytes: u64,
    /// The smallest read that it accepts, bytes.
    pub sector_bytes: u32,
}

/// The layers of a chain from the top, how many bytes all of them have, and what is left out.
pub struct Chain {
    /// The layers.
    pub rows: Vec<Row>,
    /// The region that is read of each, bytes.
    pub region_bytes: u64,
    /// What cannot be read, and why.
    pub left_out: Vec<String>,
}

/// The region that is read: no more than this, so that the same blocks come again.
const REGION_BYTES_MAX: u64 = 256 << 20;

impl Chain {
    /// The chain below a node. A file system cannot be read as such: its file is above it and its
    /// device below.
    #[must_use]
    pub fn of(tree: &KernelTree, top: usize) -> Self {
        let mut chain = Self {
            rows: Vec::new(),
            region_bytes: REGION_BYTES_MAX,
            left_out: Vec::new(),
        };
        let mut offset = 0;
        for at in tree.chain(top) {
            let node = &tree.nodes[at];
            let path = match node.class {
                Class::Fs | Class::Fuse => {
                    // Where a file lies on its device is known to the file system only.
                    offset = 0;
                    continue;
                }
                Class::File => node.name.clone(),
                _ => format!("/dev/{}", node.name),
            };
            if node.class == Class::File {
                offset += fact(&node.config, "loop begins at");
            }
            let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
            let opened = File::options().read(true).custom_flags(direct).open(&path);
            match opened {
                Ok(file) if node.size_bytes > offset => {
                    chain.region_bytes = chain.region_bytes.min(node.size_bytes - offset);
                    chain.rows.push(Row {
                        name: node.name.clone(),
                        class: node.class.word(),
                        path: path.into(),
                        file,
                        offset_bytes: offset,
                        sector_bytes: node.sector_bytes.max(512),
                    });
                }
                Ok(_) => chain.left_out.push(format!("{path}: too small")),
                Err(error) => chain.left_out.push(format!("{path}: opening it: {error}")),
            }
            offset += node.start_bytes.unwrap_or(0);
            // A device on another device by a loop offset; that of a file is at the file.
            let on_device = node.below.first().map(|below| tree.nodes[*below].class);
            if on_device.is_some_and(|class| class != Class::File) {
                offset += fact(&node.config, "offset");
            }
        }
        chain
    }
}

fn fact(config: &[(String, String)], name: &str) -> u64 {
    let found = config.iter().find(|(key, _)| key == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}
