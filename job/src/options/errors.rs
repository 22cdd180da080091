//! Options of errors: which of them end a job.

use super::values::{goes_on, ignored_errors};
use super::{OptionEntry, idle_switch, option, switch};
use crate::settings::Job;
use crate::value::nonzero;
use ugeom_classes::set_field;
use ugeom_classes::spec::OptionDefault::{Absent, Value};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("continue_on_error", "none|read|write|io|verify|all", Value("none"),
        "count errors of these kinds and continue", set_field!(goes_on = goes_on)),
    option("ignore_error", "E[:E...][,...]", Absent,
        "errors of reads, writes and verification to ignore: EIO, ENOSPC, numbers", ignored_errors),
    switch("exitall_on_error", Value("0"), "end all jobs when this one fails",
        set_field!(exitall_on_error = nonzero)),
    idle_switch("error_dump", "no effect: errors that are ignored are counted, not printed"),
];
