//! Warnings about jobs whose verification fails or never happens, whatever the device does.

use super::settings::{Job, READ, Verify, WRITE};

/// Warnings about the verification of each job, each once, for the cases of fio's `fixup_options`
/// (init.c).
pub fn unverified(jobs: &[Job]) -> Vec<String> {
    let mut warnings = Vec::new();
    for job in jobs.iter().filter(|job| reads_back(job)) {
        let origin = job.origin_of("verify");
        let of_job = [
            shares_files(job).then(|| {
                format!(
                    "{origin}verify: {} copies of `{}` write to the same blocks, so one may find \
                     the data of another",
                    job.numjobs, job.name
                )
            }),
            never_ends(job).then(|| {
                format!(
                    "{origin}verify: `{}` writes until runtime is over and reads nothing back; set \
                     verify_backlog, or leave time_based out",
                    job.name
                )
            }),
        ];
        for warning in of_job.into_iter().flatten() {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

fn reads_back(job: &Job) -> bool {
    job.verify != Verify::No && job.do_verify && job.rw.does[WRITE] && !job.verifying.only
}

fn shares_files(job: &Job) -> bool {
    let one_file = job.filename.is_some() || !job.filename_format.contains("$jobnum");
    job.numjobs > 1 && one_file && !job.was_set("offset_increment")
}

fn never_ends(job: &Job) -> bool {
    let timed = job.time_based && job.runtime_ns > 0;
    // fio counts the requests of engines with a queue, and reads back each pass.
    let has_no_end = job.is_sync() && (job.rw.random || job.nrfiles == 1);
    timed && has_no_end && !job.rw.does[READ] && job.verifying.backlog == 0
}
