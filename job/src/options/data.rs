//! Options of content: what is written, and how it is checked.

use super::bytes::bytes_pattern;
use super::{OptionEntry, idle_switch, switch, with};
use crate::settings::{Fill, Job};
use crate::value::{bytes, nonzero, percentage, truth};
use ugeom_classes::set_field;
use ugeom_classes::spec::OptionDefault::{Absent, Value};
use ugeom_classes::spec::values::choice;

/// In the order in which help shows them.
pub const ENTRIES: &[OptionEntry<Job>] = &[
    with(
        "buffer_pattern",
        &[],
        "PATTERN",
        Absent,
        "write these bytes",
        |job, text| {
            job.fill = Fill::Pattern(bytes_pattern(text)?);
            Ok(())
        },
    ),
    switch(
        "zero_buffers",
        &[],
        Value("0"),
        "write zeroes",
        |job, text| {
            job.fill = if nonzero(text)? {
                Fill::Zero
            } else {
                Fill::Random
            };
            Ok(())
        },
    ),
    switch(
        "refill_buffers",
        &[],
        Value("0"),
        "new random bytes for each write",
        |job, text| {
            if nonzero(text)? {
                job.fill = Fill::Refill;
            } else if job.fill == Fill::Refill {
                job.fill = Fill::Random;
            }
            Ok(())
        },
    ),
    switch(
        "scramble_buffers",
        &[],
        Value("1"),
        "change a few bytes of each write, so that no two are equal",
        set_field!(scramble = truth),
    ),
    with(
        "buffer_compress_percentage",
        &[],
        "PERCENT",
        Value("0"),
        "share of each chunk that is zeroes, or the buffer_pattern",
        set_field!(redundancy.compress_percent = percentage),
    ),
    with(
        "buffer_compress_chunk",
        &[],
        "SIZE",
        Value("512"),
        "the chunks of buffer_compress_percentage",
        set_field!(redundancy.chunk_bytes = bytes),
    ),
    with(
        "dedupe_percentage",
        &[],
        "PERCENT",
        Value("0"),
        "share of blocks that repeat an earlier one",
        set_field!(redundancy.dedupe_percent = percentage),
    ),
    with(
        "dedupe_mode",
        &[],
        "repeat|working_set",
        Value("repeat"),
        "repeat the block before, or any of a set",
        |job, text| {
            let known = [("repeat", false), ("working_set", true)];
            job.redundancy.working_set = choice(&known, text)?;
            Ok(())
        },
    ),
    with(
        "dedupe_working_set_percentage",
        &[],
        "PERCENT",
        Value("5"),
        "the size of the set of dedupe_mode=working_set, percent of size",
        set_field!(redundancy.working_set_percent = percentage),
    ),
    idle_switch(
        "dedupe_global",
        &[],
        "no effect: each job repeats only its blocks",
    ),
];
