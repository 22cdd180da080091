//! Options of verification: how blocks are marked and checked.

use super::bytes::bytes_pattern;
use super::values::verify;
use super::{OptionEntry, idle, idle_switch, option, switch};
use crate::settings::{Job, Verify};
use crate::value::{bytes, nonzero, number, percentage, truth};
use ugeom_classes::set_field;
use ugeom_classes::spec::OptionDefault::{Absent, Depends, Value};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("verify", "DIGEST", Value("none"),
        "verify reads; after writes, read back: md5, crc64, crc32c, crc32, crc16, crc7, xxhash, \
         sha1, sha256, sha512, sha3-224 to sha3-512, meta (a header alone), pattern, null",
        set_field!(verify = verify)),
    switch("do_verify", Value("1"), "with `verify`, read back written data",
        set_field!(do_verify = truth)),
    option("verify_pattern", "PATTERN", Absent,
        "the bytes of verify=pattern: 0xdeadbeef, \"abc\", %o",
        |job, text| {
            job.verify_pattern = bytes_pattern(text)?;
            // As in fio, a pattern alone is checked behind a header.
            if !job.was_set("verify") {
                job.verify = Verify::PatternHeader;
            }
            Ok(())
        }),
    option("verify_interval", "SIZE", Depends("bs"), "bytes per header",
        set_field!(verifying.interval_bytes = bytes)),
    option("verify_offset", "SIZE", Value("0"), "offset of the header in the block",
        set_field!(verifying.offset_bytes = bytes)),
    switch("verify_write_sequence", Value("1"),
        "each block must carry the number of its last write; 0: any number is right, as of several \
         jobs that write to the same file",
        set_field!(verifying.in_sequence = truth)),
    switch("verify_fatal", Value("0"),
        "end at the first wrong block, as without continue_on_error=verify in any case",
        |_, text| {
            truth(text)?;
            Ok(())
        }),
    switch("verify_dump", Value("0"),
        "write a wrong block to FILE.OFFSET.received and the expected one to FILE.OFFSET.expected; \
         with a wrong header to FILE.OFFSET.hdr_fail alone",
        set_field!(verifying.dump = truth)),
    option("verify_backlog", "N", Value("0"),
        "read back after this number of writes, not only at the end",
        set_field!(verifying.backlog = number)),
    option("verify_backlog_batch", "N", Depends("verify_backlog"),
        "number of blocks that are read back then", set_field!(verifying.backlog_batch = number)),
    switch("verify_only", Value("0"),
        "write nothing, and verify the data of an earlier run of the job",
        set_field!(verifying.only = nonzero)),
    idle("verify_async", "N", "no effect: blocks are checked in any case"),
    idle("verify_async_cpus", "CPUS", "no effect: blocks are checked in any case"),
    switch("experimental_verify", Value("0"),
        "reads that check count against the bytes of all loops, and all loops together check no \
         more than one has written",
        set_field!(verifying.counted = truth)),
    switch("verify_state_save", Value("1"),
        "write `local-NAME-N-verify.state`, the writes that ended last, after a job that writes \
         and verifies; N is the number of the job from 0",
        set_field!(verifying.saves = truth)),
    switch("verify_state_load", Value("0"),
        "verify no further than the writes that had ended according to that file",
        set_field!(verifying.loads = truth)),
    option("trim_percentage", "N", Value("0"),
        "trim this share of the blocks that were written again before they are verified",
        set_field!(trimming.percent = percentage)),
    option("trim_backlog", "N", Value("0"),
        "trim whenever so many blocks wait to be verified; without it nothing is trimmed",
        set_field!(trimming.backlog = number)),
    option("trim_backlog_batch", "N", Depends("trim_backlog"),
        "number of blocks that are trimmed then, and one more, as in fio",
        set_field!(trimming.batch = number)),
    switch("trim_verify_zero", Value("0"),
        "verify that what was trimmed is zero; else it is not verified",
        set_field!(trimming.verifies_zero = truth)),
    idle_switch("verifysort", "no effect: blocks are checked in the order of their places"),
    idle("verifysort_nr", "N", "no effect: blocks are checked in the order of their places"),
];
