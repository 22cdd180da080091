//! Latency histograms of fixed size: exact to 127, within 0.8 % above, up to the largest `u64`.
//!
//! ```text
//! values        bucket width   buckets
//! 0..128              1        0..128        (exact)
//! 128..256            2        128..192      64 buckets for each doubling
//! 256..512            4        192..256
//! ...
//! 2^63..2^64       2^57        3712..3776
//! ```
//!
//! 64 buckets a doubling make the middle of a bucket at most 1/128 (0.79 %) away from any value in
//! it; 32 would miss the 1 % that users of fio are used to, and 128 would double the 29.5 KiB. It
//! is fio's own layout (`stat.h`, 64 buckets a group), continued to the end of `u64` instead of
//! clamped at 17 s.

mod atomic;
mod bucket;
mod plain;
mod saved;

pub use atomic::AtomicHistogram;
pub use bucket::{BUCKETS, Bucket};
pub use plain::Histogram;
