//! Options of traces: requests that are read from a log, and a log of those that are made.

use super::values::skipped;
use super::{OptionEntry, idle_switch, option, switch};
use crate::settings::Job;
use crate::value::{bytes, number, truth};
use ugeom_classes::set_field;
use ugeom_classes::spec::OptionDefault::{Absent, Value};
use ugeom_classes::spec::values::text;

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("read_iolog", "FILE[:FILE...]", Absent,
        "run the requests of this trace when they are due: fio's log, version 2 or 3, CSV of MSR \
         Cambridge, Alibaba or vscsiStats, output of blktrace or blkparse; with several, each \
         copy of a job uses the next",
        set_field!(read_iolog = text)),
    option("write_iolog", "FILE", Absent,
        "log the requests, in version 3 of fio's log; FILE.N for further copies of the job",
        set_field!(write_iolog = text)),
    idle_switch("read_iolog_chunked", "no effect: traces are always read incrementally"),
    option("replay_redirect", "TARGET", Absent,
        "send all requests of a trace to this file, device or stack",
        set_field!(replaying.redirect = text)),
    switch("replay_no_stall", Value("0"), "run the requests of a trace as fast as possible",
        set_field!(replaying.no_stall = truth)),
    option("replay_time_scale", "PERCENT", Value("100"), "speed of a trace: 200 is twice as fast",
        |job, text| match number(text)? {
            0 => Err("time must pass: 1 or more".to_owned().into()),
            percent => {
                job.replaying.time_percent = percent;
                Ok(())
            }
        }),
    option("replay_scale", "N", Value("1"), "divide the offsets of a trace by this",
        |job, text| match number(text)? {
            0 => Err("nothing can be divided by 0".to_owned().into()),
            scale => {
                job.replaying.scale = scale;
                Ok(())
            }
        }),
    option("replay_align", "SIZE", Value("0"),
        "round the offsets of a trace down to multiples of this",
        set_field!(replaying.align_bytes = bytes)),
    option("replay_skip", "read,write,trim,sync", Absent, "skip requests of these kinds in a trace",
        set_field!(replaying.skip = skipped)),
];
