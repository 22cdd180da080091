//! The splay index: a self-adjusting tree a shard, as FreeBSD's buffer lookup was in 2006.
//!
//! D. D. Sleator, R. E. Tarjan: "Self-adjusting binary search trees", JACM 32(3), 1985; the
//! top-down form. Each look-up moves the block to the root, so it changes the tree and needs its
//! lock: that, and the cache lines that it touches on the way, are to be measured.

use super::{Entry, Index, Lookup, shard_of, spread};
use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use ugeom_machine::mutex::Mutex;
use ugeom_machine::slab::Slab;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    block: u64,
    left: u32,
    right: u32,
    busy: bool,
    stale: bool,
}

const EMPTY: Node = Node {
    block: 0,
    left: NONE,
    right: NONE,
    busy: false,
    stale: false,
};

/// One shard's tree. Nodes have numbers of the shard's own, so that a shard's memory is its own.
struct Tree {
    root: u32,
    nodes: Vec<Node>,
    /// The buffer of each node.
    slots: Vec<u32>,
    free: Vec<u32>,
}

impl Tree {
    /// Brings the block, or a neighbour of where it would be, to the root.
    fn splay(&mut self, block: u64) {
        if self.root == NONE {
            return;
        }
        let nodes = &mut self.nodes;
        let (mut root, mut left_root, mut right_root) = (self.root, NONE, NONE);
        let (mut left_end, mut right_end) = (NONE, NONE);
        loop {
            let here = nodes[root as usize];
            if block < here.block {
                let mut child = here.left;
                if child == NONE {
                    break;
                }
                if block < nodes[child as usize].block {
                    nodes[root as usize].left = nodes[child as usize].right;
                    nodes[child as usize].right = root;
                    root = child;
                    child = nodes[root as usize].left;
                    if child == NONE {
                        break;
                    }
                }
                match right_end {
                    NONE => right_root = root,
                    end => nodes[end as usize].left = root,
                }
                right_end = root;
                root = child;
            } else if block > here.block {
                let mut child = here.right;
                if child == NONE {
                    break;
                }
                if block > nodes[child as usize].block {
                    nodes[root as usize].right = nodes[child as usize].left;
                    nodes[child as usize].left = root;
                    root = child;
                    child = nodes[root as usize].right;
                    if child == NONE {
                        break;
                    }
                }
                match left_end {
                    NONE => left_root = root,
                    end => nodes[end as usize].right = root,
                }
                left_end = root;
                root = child;
            } else {
                break;
            }
        }
        let Node { left, right, .. } = nodes[root as usize];
        match left_end {
            NONE => left_root = left,
            end => nodes[end as usize].right = left,
        }
        match right_end {
            NONE => right_root = right,
            end => nodes[end as usize].left = right,
        }
        nodes[root as usize].left = left_root;
        nodes[root as usize].right = right_root;
        self.root = root;
    }

    /// The node of a block, brought to the root.
    fn find(&mut self, block: u64) -> Option<u32> {
        self.splay(block);
        let root = self.root;
        (root != NONE && self.nodes[root as usize].block == block).then_some(root)
    }

    fn insert(&mut self, block: u64, slot: u32) {
        self.splay(block);
        let mut node = Node {
            block,
            busy: true,
            ..EMPTY
        };
        let place = self.free.pop().unwrap_or(self.nodes.len() as u32);
        if self.root != NONE {
            let root = &mut self.nodes[self.root as usize];
            if block < root.block {
                (node.left, node.right) = (root.left, self.root);
                root.left = NONE;
            } else {
                (node.left, node.right) = (self.root, root.right);
                root.right = NONE;
            }
        }
        if place as usize == self.nodes.len() {
            self.nodes.push(node);
            self.slots.push(slot);
        } else {
            self.nodes[place as usize] = node;
            self.slots[place as usize] = slot;
        }
        self.root = place;
    }

    /// Takes the root out.
    fn remove_root(&mut self) {
        let gone = self.root;
        let Node {
            block, left, right, ..
        } = self.nodes[gone as usize];
        self.free.push(gone);
        if left == NONE {
            self.root = right;
            return;
        }
        self.root = left;
        // All of the left tree is less, so its greatest comes up, and has nothing to its right.
        self.splay(block);
        self.nodes[self.root as usize].right = right;
    }

    fn entry(&self, node: u32) -> Entry {
        let Node { busy, stale, .. } = self.nodes[node as usize];
        Entry {
            slot: self.slots[node as usize],
            busy,
            stale,
        }
    }
}

#[repr(align(128))]
struct Shard {
    tree: Mutex<Tree>,
}

/// The buffer and its version.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    slot: u32,
    version: u32,
}

/// The splay index: a tree and its lock for each shard of the blocks.
pub struct Splay {
    shards: Box<[Shard]>,
    shard_bits: u32,
    /// A version for each buffer, odd while it changes.
    versions: Box<[AtomicU32]>,
}

impl Splay {
    fn tree(&self, block: u64) -> MutexGuard<'_, Tree> {
        let shard = shard_of(spread(block), self.shard_bits);
        self.shards[shard].tree.lock()
    }

    fn change<R>(&self, slot: u32, with: impl FnOnce() -> R) -> R {
        let of_slot = &self.versions[slot as usize];
        let version = of_slot.load(Ordering::Relaxed);
        of_slot.store(version | 1, Ordering::Relaxed);
        // As in `hash`: before every store that follows.
        fence(Ordering::Release);
        let result = with();
        of_slot.store((version | 1).wrapping_add(1), Ordering::Release);
        result
    }
}

impl Index for Splay {
    type Place = Place;
    const NAME: &'static str = "splay";

    fn new(slots: u32, shard_bits: u32) -> io::Result<Self> {
        let each = slots as usize >> shard_bits;
        let shard = |_| Shard {
            tree: Mutex::new(Tree {
                root: NONE,
                nodes: Vec::with_capacity(each),
                slots: Vec::with_capacity(each),
                free: Vec::new(),
            }),
        };
        Ok(Self {
            shards: (0..1 << shard_bits).map(shard).collect(),
            shard_bits,
            versions: (0..slots).map(|_| AtomicU32::new(0)).collect(),
        })
    }

    fn find(&self, block: u64) -> Lookup<Place> {
        let mut tree = self.tree(block);
        let Some(node) = tree.find(block) else {
            return Lookup::Absent;
        };
        let entry = tree.entry(node);
        let version = self.versions[entry.slot as usize].load(Ordering::Acquire);
        if version & 1 != 0 {
            return Lookup::Changing;
        }
        let slot = entry.slot;
        Lookup::At(Place { slot, version }, entry)
    }

    fn unchanged(&self, place: Place) -> bool {
        fence(Ordering::Acquire);
        self.versions[place.slot as usize].load(Ordering::Relaxed) == place.version
    }

    fn holds(&self, block: u64) -> bool {
        self.tree(block).find(block).is_some()
    }

    fn insert(&self, block: u64, slot: u32) -> bool {
        self.tree(block).insert(block, slot);
        true
    }

    fn remove(&self, block: u64) -> Option<Entry> {
        let mut tree = self.tree(block);
        let node = tree.find(block)?;
        let entry = tree.entry(node);
        self.change(entry.slot, || tree.remove_root());
        Some(entry)
    }

    fn flag_stale(&self, block: u64) {
        let mut tree = self.tree(block);
        if let Some(node) = tree.find(block) {
            let node = &mut tree.nodes[node as usize];
            node.stale |= node.busy;
        }
    }

    fn publish(&self, block: u64) -> bool {
        let mut tree = self.tree(block);
        let Some(node) = tree.find(block) else { return false };
        let node = &mut tree.nodes[node as usize];
        node.busy &= node.stale;
        !node.stale
    }

    fn write(&self, block: u64, slab: &Slab, within: usize, from: &[u8]) -> bool {
        let mut tree = self.tree(block);
        let Some(node) = tree.find(block) else { return false };
        let slot = tree.slots[node as usize];
        self.change(slot, || slab.copy_in(slot, within, from))
    }

    /// Where it lies is only known on the way there.
    fn prefetch(&self, _block: u64) {}

    fn memory_bytes(&self) -> usize {
        let nodes = |shard: &Shard| {
            let tree = shard.tree.lock();
            tree.nodes.capacity() * size_of::<Node>()
                + (tree.slots.capacity() + tree.free.capacity()) * size_of::<u32>()
        };
        size_of_val(&*self.versions) + self.shards.iter().map(nodes).sum::<usize>()
    }
}
