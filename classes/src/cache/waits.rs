//! How long requests wait for blocks that others read or write.

/// How often a read waits for a block that another request reads before it goes past the cache: the
/// other one's thread may have other things to do than to collect it. With the pauses below it is
/// some 50 ms.
pub(super) const WAITS_MAX: u32 = 60;
/// The longest of these pauses, ns; the first takes a thousandth, each further one is twice as
/// long.
const PAUSE_NS_MAX: u64 = 1 << 20;
/// Why a request past the new end of a shortened media fails.
pub(super) const SHORTER: &str = "the media has become shorter and ends before it";
/// How long a request pauses which has done so `times` before, ns.
pub(super) fn pause_ns(times: u32) -> u64 {
    (1024 << times.min(10)).min(PAUSE_NS_MAX)
}
