//! Conformance suites, faults and oracles for the tests of ugeom.
#![forbid(unsafe_code)]

mod bench;
pub mod engine;
pub mod generated;
mod loop_device;
pub mod provider;
mod recorded_disk;
mod server;
mod skip;

pub use bench::{bench_budget_ns, bench_seconds, is_bench};
pub use loop_device::LoopDevice;
pub use recorded_disk::RecordedDisk;
pub use server::Server;
pub use skip::{or_skip, program, python, shared, skip, test_name};

/// Fails, and shows the text, unless it has these words.
#[track_caller]
pub fn has(text: &(impl AsRef<str> + ?Sized), words: &(impl AsRef<str> + ?Sized)) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert!(text.contains(words), "no `{words}` in: {text}");
}

/// Fails, and shows the text, unless it begins with these words.
#[track_caller]
pub fn begins(text: &(impl AsRef<str> + ?Sized), words: &(impl AsRef<str> + ?Sized)) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert!(
        text.starts_with(words),
        "no `{words}` at the start of: {text}"
    );
}

/// Fails, and shows the text, unless it ends with these words.
#[track_caller]
pub fn ends(text: &(impl AsRef<str> + ?Sized), words: &(impl AsRef<str> + ?Sized)) {
    let (text, words) = (text.as_ref(), words.as_ref());
    assert!(text.ends_with(words), "no `{words}` at the end of: {text}");
}
