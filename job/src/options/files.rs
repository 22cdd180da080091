//! Options that say which files there are, and how they are made, opened and removed.

use super::values::{count, count_or_none, file_order, range_sync};
use super::{OptionEntry, idle, idle_switch, option, switch};
use crate::settings::{FadviseHint, Fallocate, FileLocking, Job, WriteSync};
use crate::value::{bytes, number32, range, truth};
use ugeom_classes::spec::OptionDefault::{Absent, Depends, Value};
use ugeom_classes::spec::values::text;
use ugeom_classes::{registry, set_choice, set_field};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("filename", "PATH[:PATH...]|STACK", Absent,
        "files, block devices, or a stack such as 'md:1g | nop:delay=1ms'",
        |job, names| {
            // As by fio, files are added to those of the global section. A stack stands alone.
            let earlier = job.filename.take();
            let earlier = earlier.filter(|earlier| !is_stack(earlier) && !is_stack(names));
            let earlier = earlier.map_or_else(String::new, |earlier| earlier + ":");
            job.filename = Some(earlier + &text(names)?);
            Ok(())
        }),
    option("directory", "PATH[:PATH...]", Absent,
        "directory of the files, also of those with a path; with several, each copy of a job \
         uses the next",
        set_field!(directory = text)),
    idle("dir", "PATH", "no effect, as in fio, which has it for --profile=tiobench; use directory"),
    option("opendir", "PATH", Absent,
        "the files in this directory and all below it, beside those of `filename`",
        set_field!(opendir = text)),
    option("nrfiles", "N", Value("1"), "number of files, used in turn",
        set_field!(nrfiles = count)).also(&["nr_files"]),
    option("filesize", "SIZE[-SIZE]", Depends("size, divided by nrfiles"),
        "the size of each file; 100%: all of a device",
        |job, text| {
            job.filesize = match text {
                "100%" => None,
                // fio takes `50%` for 2^64 - 51 bytes.
                text if text.contains('%') => {
                    let message = "the only share is 100% (all of a device): give bytes, or \
                                   use size=N% for a share of the files";
                    return Err(message.to_owned().into());
                }
                text => Some(range(text, bytes)?),
            };
            Ok(())
        }),
    option("sync", "none|sync|dsync|0|1", Value("none"),
        "a write is complete when it is durable: O_SYNC (sync, 1) or O_DSYNC (dsync)",
        set_choice!(sync = [
            ("none", WriteSync::None), ("sync", WriteSync::Sync), ("dsync", WriteSync::Dsync),
            ("0", WriteSync::None), ("1", WriteSync::Sync),
        ])),
    switch("overwrite", Value("0"), "fill files before writes, so that each write replaces data",
        set_field!(overwrite = truth)),
    switch("create_serialize", Value("1"),
        "0: create the files of the job, and check their sizes, when it starts",
        set_field!(create_serialize = truth)),
    switch("invalidate", Value("1"),
        "drop the files from the page cache before each pass over them",
        set_field!(invalidate = truth)),
    option("fadvise_hint", "0|1|random|sequential", Value("1"),
        "posix_fadvise(2), or posix_madvise(3), for the order of requests; 1: that of the job",
        set_choice!(fadvise_hint = [
            ("0", FadviseHint::None), ("1", FadviseHint::Pattern),
            ("random", FadviseHint::Random), ("sequential", FadviseHint::Sequential),
        ])),
    switch("unlink", Value("0"), "remove the files after the job", set_field!(unlink = truth)),
    switch("unlink_each_loop", Value("0"),
        "remove the files after each of loops but the last: writes make them anew",
        set_field!(unlink_each_loop = truth)),
    option("fallocate", "none|native|posix|keep|truncate|0|1", Value("native"),
        "reserve the space of new files; with none and keep they grow as they are written",
        set_choice!(fallocate = [
            ("none", Fallocate::None), ("native", Fallocate::Native),
            ("posix", Fallocate::Native), ("keep", Fallocate::Keep),
            ("truncate", Fallocate::Truncate), ("0", Fallocate::None), ("1", Fallocate::Native),
        ])),
    option("fsync", "N", Value("0"), "fsync(2) after this number of writes",
        set_field!(fsync = number32)),
    option("fdatasync", "N", Value("0"), "fdatasync(2) after this number of writes",
        set_field!(fdatasync = number32)),
    option("sync_file_range", "wait_before,write,wait_after[:N]", Absent,
        "sync_file_range(2) after N writes (1), with these flags, over what has been written to \
         the file since the last sync",
        set_field!(sync_file_range = range_sync)),
    switch("end_fsync", Value("0"), "fsync the files at the end", set_field!(end_fsync = truth)),
    option("filename_format", "FORMAT", Value("$jobname.$jobnum.$filenum"),
        "names of files without filename: $jobname, $jobnum, $filenum",
        set_field!(filename_format = text)),
    idle_switch("unique_filename",
        "no effect: there are no clients whose files could have the same name"),
    switch("create_on_open", Value("0"),
        "create empty files when they are opened, instead of full ones before",
        set_field!(create_on_open = truth)),
    switch("create_only", Value("0"), "make the files, then end", set_field!(create_only = truth)),
    switch("create_fsync", Value("1"), "fsync new files", set_field!(create_fsync = truth)),
    switch("allow_file_create", Value("1"), "0: a file that is missing is an error",
        set_field!(allow_file_create = truth)),
    idle_switch("allow_mounted_write",
        "no effect: --destroy allows writes to targets with content"),
    option("openfiles", "N", Depends("nrfiles"),
        "files in use at a time; a finished file is replaced by the next",
        set_field!(openfiles = count_or_none)),
    option("file_service_type",
        "roundrobin[:N]|sequential[:N]|random[:N]|zipf:T|pareto:H|normal:D", Value("roundrobin"),
        "choice of the file of a request; N: requests before the next choice; `:C` behind T, H \
         or D as in random_distribution",
        |job, text| {
            (job.file_order, job.file_run) = file_order(text)?;
            Ok(())
        }),
    switch("pre_read", Value("0"), "read the files before the job", set_field!(pre_read = truth)),
    switch("file_append", Value("0"), "append to existing files", set_field!(file_append = truth)),
    switch("fsync_on_close", Value("0"), "fsync the files when they are closed",
        set_field!(fsync_on_close = truth)),
    option("lockfile", "none|exclusive|readwrite", Value("none"),
        "requests in flight that exclude those of other jobs to the same file: all, or writes \
         and trims",
        set_choice!(file_locking = [
            ("none", FileLocking::No), ("exclusive", FileLocking::Exclusive),
            ("readwrite", FileLocking::ReadWrite),
        ])),
    idle("ioscheduler", "NAME", "no effect: the scheduler of a disk is left to the administrator"),
    idle("write_barrier", "N", "no effect: no engine has write barriers"),
    idle("write_hint", "none|short|medium|long|extreme", "no effect: writes have no hints"),
];

/// Whether a target has layers, or a class with options.
fn is_stack(target: &str) -> bool {
    let class = target.split_once(':').map(|(class, _)| class);
    target.contains('|') || class.is_some_and(|class| registry::find(class).is_some())
}
