//! The description of cached reads in a document.

use super::names;
use super::orders::{ORDERS, Order};
use serde::{Deserialize, Serialize};
use ugeom_harness::figure::Figure;

/// A finished experiment about cached reads.
pub type Document = ugeom_harness::document::Document<Subject>;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "cached";

/// The block size that the profile and the diagnosis are made for, bytes: the cache's own choice
/// when none is asked for, and that of the file system of 2006.
pub const MAIN_BLOCK_BYTES: u64 = 16 << 10;

/// The stack and the orders of reads that `lab cached` measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The file that the user named; none for a temporary one.
    pub file: Option<String>,
    /// How much of it is read, and the capacity of each cache, bytes.
    pub size_bytes: u64,
    /// The requested size, bytes: more than the size used when the memory or the budget is too
    /// small.
    pub size_wanted_bytes: u64,
    /// Sizes of a read, bytes.
    pub reads_bytes: Vec<u64>,
    /// Block sizes of the cache class, bytes.
    pub blocks_bytes: Vec<u64>,
    /// In which orders the file is read.
    pub orders: Vec<Order>,
    /// The regime of 2006: the memory disk, bytes, and the cache before it.
    pub recycled_media_bytes: u64,
    /// The cache's part of it, bytes.
    pub recycled_cache_bytes: u64,
    /// How many blocks the large index has.
    pub index_blocks: u64,
    /// How many blocks the small index has, as in 2006.
    pub index_blocks_small: u64,
    /// Memory of the cache beyond its blocks, for each block, bytes.
    pub overhead_bytes_a_block: f64,
    /// The share of the file in memory, before and after, in per cent.
    pub resident_percent: [f64; 2],
    /// Bytes that this process read from devices during the measurement; none where the system does
    /// not report it.
    #[serde(default)]
    pub own_read_bytes: Option<u64>,
    /// The counts of the caches over all their reads.
    pub caches: Vec<Counted>,
    /// The servers through which the cache was read, too.
    #[serde(default)]
    pub through: Vec<String>,
    /// The cases left out, with reasons.
    pub left_out: Vec<String>,
}

/// The counts of a cache while it was read in one order, blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counted {
    /// The part of the experiment: [`names::HITS`] or [`names::RECYCLED`]. Results of older
    /// versions have the first alone, and no name for it.
    pub part: String,
    /// The way to read: `hash 16k`.
    pub way: String,
    /// The order; none in results of older versions, which added up all of them.
    pub order: Option<Order>,
    /// Blocks that were found in the cache.
    pub hits: u64,
    /// Not found. Where everything is to be in memory: none, or they were no hits.
    pub misses: u64,
    /// Made room for others.
    pub evictions: u64,
    /// Blocks that were read ahead.
    pub readahead: u64,
    /// Read ahead, and used.
    pub readahead_used: u64,
    /// Read ahead, and dropped unused.
    pub readahead_wasted: u64,
    /// The most that was dirty at the end of a run, bytes.
    pub dirty_bytes: u64,
}

impl Counted {
    /// Blocks that were asked for.
    pub fn asked(&self) -> u64 {
        self.hits + self.misses
    }

    /// Adds the counts of another process.
    pub fn join(&mut self, other: &Self) {
        let sums = [
            (&mut self.hits, other.hits),
            (&mut self.misses, other.misses),
            (&mut self.evictions, other.evictions),
            (&mut self.readahead, other.readahead),
            (&mut self.readahead_used, other.readahead_used),
            (&mut self.readahead_wasted, other.readahead_wasted),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.dirty_bytes = self.dirty_bytes.max(other.dirty_bytes);
    }

    /// It belongs to the part in which everything is in memory.
    pub(crate) fn is_of_hits(&self) -> bool {
        self.part != names::RECYCLED
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The whole matrix (`--full`).
    Whole,
    /// The cases that answer the question in 15 seconds.
    Short,
}

impl Extent {
    /// The orders that are measured.
    pub fn orders(self) -> Vec<Order> {
        match self {
            Self::Whole => ORDERS.to_vec(),
            Self::Short => vec![Order::Sequential, Order::Shuffled],
        }
    }

    /// The caches of the hits: index and block size.
    pub(crate) fn caches(self) -> Vec<(&'static str, u64)> {
        let blocks = [4 << 10, 16 << 10, 64 << 10];
        match self {
            Self::Whole => ["hash", "splay"]
                .into_iter()
                .flat_map(|index| blocks.map(|block| (index, block)))
                .collect(),
            Self::Short => vec![
                ("hash", 4 << 10),
                ("hash", MAIN_BLOCK_BYTES),
                ("splay", MAIN_BLOCK_BYTES),
            ],
        }
    }

    /// The cases that this leaves out, in plain words.
    pub fn left_out(self) -> Vec<String> {
        match self {
            Self::Whole => Vec::new(),
            Self::Short => vec![
                "blocks of 64 KiB, the splay tree with other blocks than 16 KiB, and random reads \
                 with repetition (ugeom lab cached measures them)"
                    .to_owned(),
            ],
        }
    }
}

/// A figure in words; that it was not measured, where it was not.
pub(super) fn words(document: &Document, id: &str) -> String {
    let figure = document.figure(id);
    figure.map_or("(not measured)".to_owned(), Figure::amount)
}
