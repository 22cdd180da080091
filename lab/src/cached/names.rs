//! The names of the cases: `PART/WAY SIZE ORDER`. They stand in saved results, so they do not
//! change their meaning.

use super::orders::Order;

/// An empty loop over an order of places: the share of the loop in a step.
pub const LOOP: &str = "floor/loop";
/// Reading the clock: the cost of timing.
pub const CLOCK: &str = "floor/clock";
/// A dependent load at random from an array as large as the hash index.
pub const LOAD: &str = "lookup/load";
/// Hashing a string of 16 bytes.
pub const HASH_16: &str = "lookup/hash of 16 bytes";

/// The class of the caches, as their geoms have it.
pub const CACHE: &str = "CACHE";
/// The part in which everything is in memory.
pub const HITS: &str = "hits";
/// The part in which buffers are recycled.
pub const RECYCLED: &str = "recycled";

/// A size as it stands in names: `4k`.
pub fn kib(bytes: u64) -> String {
    format!("{}k", bytes >> 10)
}

/// The cache class with this index and block size, as a way to read: `hash 16k`.
pub fn class(index: &str, block_bytes: u64) -> String {
    format!("{index} {}", kib(block_bytes))
}

/// The same, reading ahead of sequential readers: `hash 16k ahead`.
pub fn ahead(way: &str) -> String {
    format!("{way} ahead")
}

/// Reading cached data, in some way.
pub fn hits(way: &str, read_bytes: u64, order: Order) -> String {
    format!("{HITS}/{way} {} {}", kib(read_bytes), order.word())
}

/// The same once more, for the A/A noise.
pub fn hits_again(way: &str, read_bytes: u64, order: Order) -> String {
    format!("{} again", hits(way, read_bytes, order))
}

/// Reading while buffers are recycled all the time.
pub fn recycled(way: &str, read_bytes: u64, order: Order) -> String {
    format!("{RECYCLED}/{way} {} {}", kib(read_bytes), order.word())
}

/// What a hit of the store does without the path of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HitStep {
    /// It finds and marks the block.
    Lookup,
    /// And copies the data out.
    LookupAndCopy,
}

/// The steps of a hit without the path of a request.
pub fn steps(step: HitStep, way: &str, read_bytes: u64, order: Order) -> String {
    let step = match step {
        HitStep::Lookup => "lookup",
        HitStep::LookupAndCopy => "lookup+copyout",
    };
    format!("steps/{step} {way} {} {}", kib(read_bytes), order.word())
}

/// A miss without the read below: getnewbuf, and entering the block into index and queues.
pub fn miss(way: &str) -> String {
    format!("steps/getnewbuf {way}")
}

/// A lookup at random, each depending on the one before, among so many blocks.
pub fn lookup(index: &str, blocks: u64) -> String {
    format!("lookup/{index} {blocks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_read_well() {
        let way = class("hash", 16 << 10);
        assert_eq!(way, "hash 16k");
        let hit = hits(&way, 4096, Order::Shuffled);
        assert_eq!(hit, "hits/hash 16k 4k shuffled");
        assert_eq!(
            recycled("md", 16 << 10, Order::Random),
            "recycled/md 16k random"
        );
        assert_eq!(
            steps(HitStep::Lookup, &way, 4096, Order::Sequential),
            "steps/lookup hash 16k 4k sequential"
        );
        assert_eq!(lookup("splay", 64), "lookup/splay 64");
    }
}
