//! The directory: a file for each provider, with its attributes. All of it is asked of the stack at
//! the moment of the question, since providers come and go.

use super::Settings;
use crate::ranges::Ranges;
use crate::shown::{Seen, Shown};
use rustix::io::Errno;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};
use ugeom_format::text::{from_bytes, to_bytes};
use ugeom_format::wire::fuse::{
    Attributes, Entry, FileKind, FileSystem, NAME_BYTES_MAX, Names, ROOT, SetAttributes, Transfer,
    attributes_reply, set_flag,
};
use ugeom_machine::mutex::Mutex;
use ugeom_stack::Stack;

/// The preferred I/O size, bytes.
const BLOCK_BYTES: u32 = 4096;

/// The files of a mount.
pub(super) struct Files {
    pub stack: Stack,
    pub ranges: Ranges,
    shown: Shown,
    writable: bool,
    nodes: Mutex<Nodes>,
    /// The low 12 bits of the mode of files that may be written to.
    permissions: u32,
    uid: u32,
    gid: u32,
    /// When the server was started: the times of all files.
    time: (u64, u32),
}

/// The numbers of providers, by their names. A number is used once, and stays a name's even while
/// there is no provider of that name.
#[derive(Default)]
struct Nodes {
    by_name: HashMap<String, u64>,
    names: Vec<String>,
}

impl Nodes {
    /// The number of a name.
    fn of(&mut self, name: &str) -> u64 {
        if let Some(&node) = self.by_name.get(name) {
            return node;
        }
        self.names.push(name.to_owned());
        let node = ROOT + self.names.len() as u64;
        self.by_name.insert(name.to_owned(), node);
        node
    }

    fn name(&self, node: u64) -> Option<&str> {
        let index = usize::try_from(node.checked_sub(ROOT + 1)?).ok()?;
        self.names.get(index).map(String::as_str)
    }
}

/// The name of a provider's file, as sysfs writes names that hold a slash; `None` for a name that
/// no file can have.
pub(super) fn file_name(provider: &str) -> Option<Vec<u8>> {
    let mut name = to_bytes(provider);
    let fits = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(&0)
        && provider != "."
        && provider != "..";
    fits.then(|| {
        for byte in &mut name {
            if *byte == b'/' {
                *byte = b'!';
            }
        }
        name
    })
}

impl Files {
    pub fn new(stack: &Stack, shown: &Shown, settings: &Settings) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        Self {
            stack: stack.clone(),
            ranges: settings.ranges.clone(),
            shown: shown.clone(),
            writable: settings.writable,
            nodes: Mutex::default(),
            permissions: permissions(settings, umask()),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            time: (now.as_secs(), now.subsec_nanos()),
        }
    }

    /// The present files, the default one first.
    fn seen(&self) -> Vec<Seen> {
        let mut seen = self.shown.of_tree(&self.stack.tree());
        seen.retain(|it| it.view.error.is_none() && file_name(&it.view.name).is_some());
        seen
    }

    /// Whether programs may write to it.
    pub fn is_writable(&self, seen: &Seen) -> bool {
        self.writable && !seen.read_only
    }

    fn node_of(&self, name: &str) -> u64 {
        self.nodes.lock().of(name)
    }

    /// The provider of a node, as it is now.
    pub fn provider(&self, node: u64) -> Result<Seen, Errno> {
        let name = self.name(node).ok_or(Errno::STALE)?;
        let mut seen = self.seen().into_iter();
        seen.find(|it| it.view.name == name).ok_or(Errno::STALE)
    }

    fn of_root(&self) -> Attributes {
        Attributes {
            node: ROOT,
            kind: FileKind::Directory,
            permissions: 0o555,
            size_bytes: 0,
            allocated_bytes: 0,
            time: self.time,
            uid: self.uid,
            gid: self.gid,
            block_bytes: BLOCK_BYTES,
        }
    }

    fn of_provider(&self, seen: &Seen) -> Attributes {
        let view = &seen.view;
        Attributes {
            node: self.node_of(&view.name),
            kind: FileKind::File,
            permissions: match self.is_writable(seen) {
                true => self.permissions,
                false => self.permissions & !0o222,
            },
            size_bytes: view.content_bytes(),
            allocated_bytes: view.content_bytes(),
            block_bytes: BLOCK_BYTES.max(view.sectorsize_bytes),
            ..self.of_root()
        }
    }

    /// Answers LOOKUP: the attributes of a name of the directory.
    pub fn look_up(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut seen = self.seen().into_iter();
        let found = seen.find(|it| file_name(&it.view.name).is_some_and(|file| file == name));
        let found = found.ok_or(Errno::NOENT)?;
        Ok(Entry(self.of_provider(&found)).encode())
    }

    /// GETATTR of a file that is open and of which so many bytes are no hole.
    pub fn attributes_with(&self, node: u64, allocated_bytes: u64) -> Result<Vec<u8>, Errno> {
        let attributes = self.of_provider(&self.provider(node)?);
        Ok(attributes_reply(&Attributes {
            allocated_bytes: allocated_bytes.min(attributes.size_bytes),
            ..attributes
        }))
    }

    /// The name of a node's provider, if it is that of a file.
    pub fn name(&self, node: u64) -> Option<String> {
        self.nodes.lock().name(node).map(str::to_owned)
    }

    /// GETATTR. Nothing is known of the holes of a file that is not open.
    pub fn attributes(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let attributes = if node == ROOT {
            self.of_root()
        } else {
            self.of_provider(&self.provider(node)?)
        };
        Ok(attributes_reply(&attributes))
    }

    /// SETATTR. A provider's size is what it is; that size is taken and does nothing. To nothing,
    /// as open(2) asks with O_TRUNC, it is shortened only if no data is in it, which the caller
    /// looks for.
    pub fn set_attributes(&self, node: u64, set: &SetAttributes) -> Result<Vec<u8>, Errno> {
        if set.which & (set_flag::MODE | set_flag::UID | set_flag::GID) != 0 || node == ROOT {
            return Err(Errno::PERM);
        }
        let seen = self.provider(node)?;
        let size = seen.view.content_bytes();
        if set.which & set_flag::SIZE != 0 {
            if !self.is_writable(&seen) {
                return Err(Errno::ROFS);
            }
            if set.size_bytes != 0 && set.size_bytes != size {
                return Err(Errno::INVAL);
            }
        }
        self.attributes(node)
    }

    /// READDIR: in the order of the nodes, so that a listing that goes on after a change neither
    /// repeats nor skips remaining names.
    pub fn list(&self, node: u64, from: &Transfer) -> Result<Vec<u8>, Errno> {
        if node != ROOT {
            return Err(Errno::NOTDIR);
        }
        let mut names = Names::new(from.length_bytes);
        let dots: [(u64, &[u8]); 2] = [(1, b"."), (2, b"..")];
        for (next, name) in dots {
            if from.offset < next && !names.push(ROOT, next, FileKind::Directory, name) {
                return Ok(names.encode());
            }
        }
        let seen = self.seen().into_iter();
        let mut files: Vec<(u64, Vec<u8>)> = seen
            .filter_map(|it| Some((self.node_of(&it.view.name), file_name(&it.view.name)?)))
            .collect();
        files.sort_unstable();
        for (node, name) in files {
            // The first file's node is one behind the root's.
            let next = node + 1;
            if from.offset < next && !names.push(node, next, FileKind::File, &name) {
                break;
            }
        }
        Ok(names.encode())
    }

    /// STATFS: the size of the largest provider, all of it in use.
    pub fn file_system(&self) -> Vec<u8> {
        let seen = self.seen();
        let sizes = seen.iter().map(|it| it.view.content_bytes());
        let largest_bytes = sizes.max().unwrap_or(0);
        let reply = FileSystem {
            blocks: largest_bytes / u64::from(BLOCK_BYTES),
            block_bytes: BLOCK_BYTES,
            files: seen.len() as u64,
        };
        reply.encode()
    }

    /// The names of all files, the default one first.
    pub fn names(&self) -> Vec<String> {
        let seen = self.seen().into_iter();
        seen.filter_map(|it| Some(from_bytes(&file_name(&it.view.name)?)))
            .collect()
    }
}

/// Permissions of a file: the owner, and where other users may use the mount, those that the umask
/// leaves.
fn permissions(settings: &Settings, umask: u32) -> u32 {
    let own = if settings.writable { 0o600 } else { 0o400 };
    if settings.allow_other {
        own | (own >> 3 | own >> 6) & !umask
    } else {
        own
    }
}

/// The umask of this process (proc(5)); umask(2) would change it for other threads.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o077)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stay_with_their_names() {
        let mut nodes = Nodes::default();
        assert_eq!((nodes.of("md0"), nodes.of("md0s1")), (2, 3));
        assert_eq!(nodes.of("md0"), 2);
        assert_eq!(nodes.name(3), Some("md0s1"));
        assert_eq!(
            (nodes.name(1), nodes.name(4), nodes.name(0)),
            (None, None, None)
        );
    }

    #[test]
    fn names_that_no_file_can_have_are_no_files() {
        assert_eq!(file_name("a/b").as_deref(), Some(&b"a!b"[..]));
        assert_eq!(file_name("a\u{10ffff}").as_deref(), Some(&b"a\xff"[..]));
        assert_eq!(
            file_name("disk.imgs1a").as_deref(),
            Some(&b"disk.imgs1a"[..])
        );
        for bad in ["", ".", "..", "a\0b"] {
            assert!(file_name(bad).is_none());
        }
        assert!(file_name(&"x".repeat(256)).is_none());
    }
}
