//! The settings of a job's thread: priorities, processors, memory, user and group.

use std::num::NonZeroU64;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_current_timer_slack, set_thread_gid, set_thread_uid};
use ugeom_machine::cpu::Affinity;
use ugeom_machine::io_priority::{io_priority, set_io_priority};
use ugeom_machine::memory_policy::set_memory_policy;
use ugeom_machine::pinned::PinnedMemory;

use super::Copy;
use ugeom_job::error::JobError;
use ugeom_job::settings::Job;

/// The number of no user and no group: setuid(2).
const NO_ID: u32 = u32::MAX;

/// Sets up the calling thread for a copy of a job. The caller keeps the locked memory (`lockmem`)
/// until the job ends.
///
/// # Errors
/// A system call fails; the error names the option.
pub(super) fn set_up(copy: &Copy) -> Result<Option<PinnedMemory>, JobError> {
    let job = &copy.job;
    // Advice: sleeps between requests end when they are due, not up to 50 us later.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    if job.nice != 0 {
        // On Linux that is of the thread.
        rustix::process::setpriority_process(None, job.nice)
            .map_err(|error| JobError::caused(&job.name, format!("nice={}", job.nice), error))?;
    }
    if let Some(policy) = &job.memory_policy {
        set_memory_policy(policy)
            .map_err(|error| JobError::caused(&job.name, "numa_mem_policy", error))?;
    }
    if let Some((class, level)) = job.io_priority {
        set_io_priority(io_priority(class, level))
            .map_err(|error| JobError::caused(&job.name, "prio, prioclass", error))?;
    }
    if !job.cpus_allowed.is_empty() {
        let cores = match job.cpus_split {
            true => {
                let index = copy.number as usize % job.cpus_allowed.len();
                vec![job.cpus_allowed[index]]
            }
            false => job.cpus_allowed.clone(),
        };
        let pinned = Affinity::of(&cores).and_then(|affinity| affinity.apply());
        pinned.map_err(|error| JobError::caused(&job.name, "cpus_allowed", error))?;
    }
    // Before the job loses the right to lock memory.
    let pinned = pin(job)?;
    // On Linux they are those of the thread; the group first, while it may still be changed.
    let of_job = |ids: rustix::io::Result<()>, option: &str| {
        ids.map_err(|error| JobError::caused(&job.name, option, error))
    };
    if let Some(group) = job.gid.filter(|id| *id != NO_ID) {
        of_job(set_thread_gid(Gid::from_raw(group)), "gid")?;
    }
    if let Some(user) = job.uid.filter(|id| *id != NO_ID) {
        of_job(set_thread_uid(Uid::from_raw(user)), "uid")?;
    }
    Ok(pinned)
}

/// Locks the memory of `lockmem`, until the value is dropped.
fn pin(job: &Job) -> Result<Option<PinnedMemory>, JobError> {
    match job.lockmem_bytes {
        0 => Ok(None),
        bytes => PinnedMemory::new(bytes)
            .map(Some)
            .map_err(|error| JobError::caused(&job.name, "lockmem", error)),
    }
}
