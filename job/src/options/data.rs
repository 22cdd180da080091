//! Options of content: the data of writes, and its verification.

use super::bytes::bytes_pattern;
use super::{OptionEntry, idle_switch, option, switch};
use crate::settings::{Fill, Job};
use crate::value::{bytes, nonzero, percentage, truth};
use ugeom_classes::spec::OptionDefault::{Absent, Value};
use ugeom_classes::{set_choice, set_field};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("buffer_pattern", "PATTERN", Absent, "write these bytes",
        set_field!(job, text => fill = Fill::Pattern(bytes_pattern(text)?))),
    switch("zero_buffers", Value("0"), "write zeroes",
        set_field!(job, text => fill = if nonzero(text)? { Fill::Zero } else { Fill::Random })),
    switch("refill_buffers", Value("0"), "new random bytes for each write",
        |job, text| {
            if nonzero(text)? {
                job.fill = Fill::Refill;
            } else if job.fill == Fill::Refill {
                job.fill = Fill::Random;
            }
            Ok(())
        }),
    switch("scramble_buffers", Value("1"),
        "change a few bytes of each write, so that no two are equal", set_field!(scramble = truth)),
    option("buffer_compress_percentage", "PERCENT", Value("0"),
        "share of each chunk that is zeroes, or the buffer_pattern",
        set_field!(redundancy.compress_percent = percentage)),
    option("buffer_compress_chunk", "SIZE", Value("512"),
        "the chunks of buffer_compress_percentage", set_field!(redundancy.chunk_bytes = bytes)),
    option("dedupe_percentage", "PERCENT", Value("0"), "share of blocks that repeat an earlier one",
        set_field!(redundancy.dedupe_percent = percentage)),
    option("dedupe_mode", "repeat|working_set", Value("repeat"),
        "repeat the block before, or any of a set",
        set_choice!(redundancy.working_set = [("repeat", false), ("working_set", true)])),
    option("dedupe_working_set_percentage", "PERCENT", Value("5"),
        "the size of the set of dedupe_mode=working_set, percent of size",
        set_field!(redundancy.working_set_percent = percentage)),
    idle_switch("dedupe_global", "no effect: each job repeats only its blocks"),
];
