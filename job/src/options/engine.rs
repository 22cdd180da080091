//! Options of engines: which one, and how many requests it has in flight.

use super::priorities::{of_reads_and_writes, priority_class, priority_level, priority_split};
use super::values::{count, count_or_none, engine};
use super::{OptionEntry, idle, idle_switch, option, switch};
use crate::settings::{Job, StatCall};
use crate::value::{bytes, microseconds, percentage, truth};
use ugeom_classes::spec::OptionDefault::{Absent, Depends, Value};
use ugeom_classes::{set_choice, set_field};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("ioengine", "ENGINE", Value("psync"),
        "psync, sync, vsync, pvsync, pvsync2, io_uring, libaio, posixaio (threads, one for a \
         file at most, as in glibc), guasi, splice, mmap, null, filecreate, filestat, filedelete, \
         falloc, ftruncate, cpuio, auto",
        set_field!(job, text => ioengine = engine(text)?.to_owned())),
    option("guasi_workers", "MIN..MAX", Depends("1..iodepth, at most 2000"),
        "threads of ioengine=guasi (MAX alone: 1..MAX)",
        set_field!(job, text => guasi.workers = Some(text.parse()?))),
    option("guasi_backend", "BACKEND", Value("workers"),
        "backend of ioengine=guasi: workers, ring (io_uring), auto",
        set_field!(job, text => guasi.backend = text.parse()?)),
    option("stat_type", "stat|lstat|statx", Value("stat"), "system call of ioengine=filestat",
        set_choice!(stat_call = [
            ("stat", StatCall::Stat), ("lstat", StatCall::Lstat), ("statx", StatCall::Statx),
        ])),
    option("cpuload", "PERCENT", Value("0"),
        "share of time that ioengine=cpuio keeps a processor busy",
        set_field!(cpu.load_percent = percentage)),
    option("cpuchunks", "TIME", Value("50ms"),
        "length of a busy phase of ioengine=cpuio, us without a unit",
        set_field!(cpu.busy_ns = microseconds)),
    option("cpumode", "noop|qsort", Value("noop"),
        "what ioengine=cpuio does while it is busy: count, or sort numbers",
        set_choice!(cpu.sorts = [("noop", false), ("qsort", true)])),
    switch("exit_on_io_done", Value("0"),
        "end ioengine=cpuio with the last job that makes requests",
        set_field!(cpu.ends_with_others = truth)),
    switch("direct", Value("0"), "direct I/O (O_DIRECT)", set_field!(direct = truth)),
    switch("buffered", Value("1"), "the opposite of direct",
        set_field!(job, text => direct = !truth(text)?)),
    option("iodepth", "N", Value("1"), "requests in flight", set_field!(iodepth = count)),
    option("iodepth_low", "N", Depends("iodepth"),
        "when the queue was full, submit again at this number in flight",
        set_field!(iodepth_low = count_or_none)),
    option("iodepth_batch", "N", Depends("as many as are in flight, at most 8"),
        "most requests submitted with one call; 0: iodepth",
        |job, text| {
            // 0 is iodepth, which may follow.
            job.iodepth_batch = Some(count_or_none(text)?);
            Ok(())
        }).also(&["iodepth_batch_submit"]),
    option("iodepth_batch_complete_min", "N", Value("1"), "fewest completions to reap at a time",
        set_field!(iodepth_batch_complete_min = count_or_none)).also(&["iodepth_batch_complete"]),
    option("iodepth_batch_complete_max", "N", Depends("iodepth_batch_complete_min"),
        "most completions to process before new requests are made",
        set_field!(iodepth_batch_complete_max = count_or_none)),
    idle("io_submit_mode", "inline|offload",
        "no effect: requests of a rate are due at their times in any case"),
    idle_switch("registerfiles", "no effect: files are registered with io_uring in any case"),
    idle_switch("fixedbufs", "no effect: buffers are registered with io_uring in any case"),
    idle_switch("nonvectored",
        "no effect: io_uring gets reads and writes of one buffer in any case"),
    idle_switch("userspace_reap",
        "no effect: completions of libaio are read from the kernel's ring in any case"),
    idle_switch("hipri", "no effect: completions come by interrupt, not by polling"),
    idle_switch("sqthread_poll", "no effect: the job submits its requests itself"),
    idle("sqthread_poll_cpu", "CPU", "no effect: the job submits its requests itself"),
    idle_switch("uncached", "no effect: pages stay in the page cache"),
    idle_switch("nowait", "no effect: a request may wait for a resource"),
    idle("force_async", "N", "no effect: the kernel decides which requests run in the background"),
    option("cmdprio_percentage", "PERCENT[,PERCENT]", Value("0"),
        "share of reads and writes with an I/O priority; io_uring and libaio",
        set_field!(job, text => priorities.percent = of_reads_and_writes(text, percentage)?)),
    option("cmdprio_class", "CLASS[,CLASS]", Value("1"),
        "class of the priority: 1 real-time, 2 best effort, 3 idle",
        set_field!(job, text => priorities.class = of_reads_and_writes(text, priority_class)?)),
    option("cmdprio", "LEVEL[,LEVEL]", Value("0"), "level of the priority in its class, 0 to 7",
        set_field!(job, text => priorities.level = of_reads_and_writes(text, priority_level)?)),
    option("cmdprio_bssplit", "SIZE/PERCENT[/CLASS/LEVEL]:...[,...]", Absent,
        "I/O priorities by request size",
        set_field!(job, text => priorities.split = of_reads_and_writes(text, priority_split)?)),
    idle("mem", "malloc|mmap|shm|mmapshared|mmaphuge|shmhuge",
        "no effect: buffers are anonymous memory").also(&["iomem"]),
    idle("iomem_align", "SIZE", "no effect: buffers begin at a page").also(&["mem_align"]),
    idle("hugepage-size", "SIZE", "no effect: buffers are anonymous memory"),
    option("lockmem", "SIZE", Value("0"),
        "memory that each job takes from the system while it runs, to measure with less page cache",
        set_field!(lockmem_bytes = bytes)),
];
