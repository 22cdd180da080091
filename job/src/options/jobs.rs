//! Options of a job's name, the number of its copies, and its order beside other jobs.

use super::numa::{memory_policy, node_cores};
use super::priorities::{priority_class, priority_level};
use super::values::{count, mask};
use super::{OptionEntry, idle, option, switch};
use crate::settings::{ExitWhat, Job};
use crate::value::{cores, microseconds, nonzero, number32};
use ugeom_classes::spec::OptionDefault::{Absent, Depends, Value};
use ugeom_classes::spec::values::text;
use ugeom_classes::{set_choice, set_field};

/// In the order in which help shows them.
#[rustfmt::skip]
pub const ENTRIES: &[OptionEntry<Job>] = &[
    option("name", "NAME", Absent, "name of the job in reports", set_field!(name = text)),
    option("description", "TEXT", Absent, "text that is printed with the results",
        set_field!(description = text)),
    option("numjobs", "N", Value("1"), "number of copies of the job", set_field!(numjobs = count)),
    switch("thread", Value("1"), "jobs are threads (always the case)",
        set_field!(thread = nonzero)).also(&["threads"]),
    switch("group_reporting", Value("0"), "report the jobs of a group together",
        set_field!(group_reporting = nonzero)),
    switch("new_group", Value("0"), "start a new reporting group", set_field!(new_group = nonzero)),
    switch("stonewall", Value("0"), "start after all previous jobs have ended",
        set_field!(stonewall = nonzero)).also(&["wait_for_previous"]),
    switch("exitall", Value("0"),
        "end all running jobs when one ends, whichever job has this option",
        set_field!(exitall = nonzero)),
    option("cpus_allowed", "CPUS", Depends("all"), "CPUs to run on: 0,2-3",
        set_field!(cpus_allowed = cores)),
    option("cpus_allowed_policy", "shared|split", Value("shared"),
        "split: one CPU for each copy of the job",
        set_choice!(cpus_split = [("shared", false), ("split", true)])),
    option("exit_what", "group|stonewall|all", Value("group"),
        "scope of exitall: the jobs of the group, all running jobs, or also waiting jobs",
        set_choice!(exit_what = [
            ("group", ExitWhat::Group), ("stonewall", ExitWhat::Stonewall),
            ("all", ExitWhat::All),
        ])),
    option("wait_for", "NAME", Absent, "start after all copies of that job have ended",
        set_field!(wait_for = text)),
    option("exec_prerun", "COMMAND", Absent,
        "shell command before the job; its output goes to NAME.prerun.txt",
        set_field!(exec_prerun = text)),
    option("exec_postrun", "COMMAND", Absent,
        "shell command after the job; its output goes to NAME.postrun.txt",
        set_field!(exec_postrun = text)),
    option("uid", "N", Absent, "user that the job opens its files as, by number",
        set_field!(uid = number32)),
    option("gid", "N", Absent, "group that the job opens its files as, by number",
        set_field!(gid = number32)),
    option("nice", "N", Value("0"), "nice(2) of the job, from -20 to 19",
        |job, text| {
            let nice = text.trim().parse::<i32>().ok();
            let nice = nice.filter(|nice| (-20..=19).contains(nice));
            job.nice = nice.ok_or_else(|| format!("`{text}` is not within -20 to 19"))?;
            Ok(())
        }),
    option("cpumask", "MASK", Depends("all"), "CPUs to run on, one bit each",
        set_field!(cpus_allowed = mask)),
    option("numa_cpu_nodes", "NODES", Depends("all"), "run on the CPUs of these NUMA nodes: 0,2-3",
        set_field!(cpus_allowed = node_cores)),
    option("numa_mem_policy", "POLICY[:NODES]", Value("default"),
        "NUMA nodes of the job's memory: default, local, prefer:N, bind:0,2-3, interleave[:0,2-3]",
        set_field!(memory_policy = memory_policy)),
    option("prio", "N", Depends("that of the program"),
        "level of the job's I/O priority, 0 to 7; without prioclass that of best effort",
        |job, text| {
            job.io_priority.get_or_insert_default().1 = priority_level(text)?;
            Ok(())
        }),
    option("prioclass", "CLASS", Depends("that of the program"),
        "class of the job's I/O priority: 1 real-time, 2 best effort, 3 idle",
        |job, text| {
            job.io_priority.get_or_insert_default().0 = priority_class(text)?;
            Ok(())
        }),
    option("flow", "WEIGHT", Value("0"),
        "weight of the job: its share of the requests of all jobs with its flow_id",
        set_field!(flow = number32)),
    option("flow_id", "N", Value("0"), "the group of jobs that flow divides requests among",
        set_field!(flow_id = number32)),
    idle("flow_watermark", "N", "no effect: fio ignores it, too"),
    option("flow_sleep", "TIME", Value("0"),
        "sleep time when it is not the turn of the job; us without a unit",
        set_field!(flow_sleep_ns = microseconds)),
];
