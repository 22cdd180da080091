//! The chain of a device: the blocks that are read of each layer, and their place in it.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use ugeom_trace::tree::{Class, KernelTree, Node};

/// A layer that can be read.
pub struct ChainLayer {
    /// Name of the device or of the file.
    pub name: String,
    /// The kind of layer.
    pub class: &'static str,
    /// Path of the device or file that is read.
    pub path: PathBuf,
    /// The open device or file.
    pub file: File,
    /// Where block 0 of the uppermost layer lies, bytes.
    pub offset_bytes: u64,
    /// The smallest read that it accepts, bytes.
    pub sector_bytes: u32,
}

/// The layers of a chain from the top, how many bytes all of them have, and the layers left out.
pub struct Chain {
    pub rows: Vec<ChainLayer>,
    /// The region that is read of each, bytes.
    pub region_bytes: u64,
    /// The unreadable parts, with reasons.
    pub left_out: Vec<String>,
}

/// The region that is read: no more than this, so that the same blocks come again.
const REGION_BYTES_MAX: u64 = 256 << 20;
/// A shorter file has no room for a read.
const SIZE_BYTES_MIN: u64 = 4096;

impl Chain {
    /// The chain below a node, with `target` above it if that is a file on a file system. A file
    /// system cannot be read as such: its file is above it and its device below.
    pub fn of(tree: &KernelTree, top: usize, target: &Path) -> Self {
        let mut chain = Self {
            rows: Vec::new(),
            region_bytes: REGION_BYTES_MAX,
            left_out: Vec::new(),
        };
        if matches!(tree.nodes[top].class, Class::Fs | Class::Fuse) && target.is_file() {
            chain.add_file(tree, top, target);
        }
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
                offset += bytes_fact(node, "loop begins at");
            }
            match open(Path::new(&path)) {
                Ok(file) if node.size_bytes > offset => {
                    chain.region_bytes = chain.region_bytes.min(node.size_bytes - offset);
                    chain.rows.push(ChainLayer {
                        name: node.name.clone(),
                        class: node.class.word(),
                        path: path.into(),
                        file,
                        offset_bytes: offset,
                        sector_bytes: node.sector_bytes.max(512),
                    });
                }
                Ok(_) => chain.left_out.push(format!("{path}: too small")),
                Err(error) => chain.left_out.push(format!("{path}: {error}")),
            }
            offset += node.start_bytes.unwrap_or(0);
            // A device on another device by a loop offset; that of a file is at the file.
            let on_device = node.below.first().map(|below| tree.nodes[*below].class);
            if on_device.is_some_and(|class| class != Class::File) {
                offset += bytes_fact(node, "offset");
            }
        }
        chain
    }

    /// The file above its file system. Its device says how it may be read.
    fn add_file(&mut self, tree: &KernelTree, top: usize, path: &Path) {
        let below = tree.chain(top).into_iter().map(|at| &tree.nodes[at]);
        let sectors = below.map(|node| node.sector_bytes);
        let sector_bytes = sectors.max().unwrap_or(0).max(512);
        let opened = open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let name = path.display().to_string();
        match opened {
            Ok((size_bytes, file)) if size_bytes >= SIZE_BYTES_MIN => {
                self.region_bytes = self.region_bytes.min(size_bytes);
                self.rows.push(ChainLayer {
                    name,
                    class: Class::File.word(),
                    path: path.to_owned(),
                    file,
                    offset_bytes: 0,
                    sector_bytes,
                });
            }
            Ok(_) => self.left_out.push(format!("{name}: too small")),
            Err(error) => self.left_out.push(format!("{name}: {error}")),
        }
    }
}

/// Opens a device or a file for reads past the page cache.
fn open(path: &Path) -> std::io::Result<File> {
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    File::options().read(true).custom_flags(direct).open(path)
}

fn bytes_fact(node: &Node, name: &str) -> u64 {
    let value = node.fact(name).and_then(|value| value.parse().ok());
    value.unwrap_or(0)
}
