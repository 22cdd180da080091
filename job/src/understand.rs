//! From sections to jobs: global settings, then each job's own; contradictions, and settings
//! without effect.

use super::effects::without_effect;
use super::error::{JobError, Origin};
use super::language::Section;
use super::options::{OPTIONS, Setting, apply};
use super::settings::{FileOperation, Job, READ, TRIM, Verify, WRITE};
use super::unverified::unverified;

/// The written jobs, and the warnings about them.
#[derive(Debug, Default)]
pub struct Understood {
    /// In the order in which they were written; `numjobs` has not been applied.
    pub jobs: Vec<Job>,
    /// Settings without an effect.
    pub warnings: Vec<String>,
}

/// Turns sections into jobs.
///
/// # Errors
/// The first setting that is wrong, and where it stands.
pub fn understand(sections: &[Section]) -> Result<Understood, JobError> {
    let nowhere = Origin::Default;
    let mut global = Job::new("global", nowhere.clone());
    let mut understood = Understood::default();
    let (mut file, mut begins_file) = (0, false);
    for section in sections {
        if section.file != file {
            if file == 0 {
                for_the_first_file_only(&global, &mut understood.warnings);
            }
            // Each further job file begins with fio's defaults, and waits for the one before.
            global = Job::new("global", nowhere.clone());
            (file, begins_file) = (section.file, true);
        }
        if section.is_global() {
            set(&mut global, section)?;
            understood.warnings.append(&mut global.notes);
            for setting in &section.settings {
                let value = setting.value.clone().unwrap_or_default();
                global.global.push((primary(&setting.name), value));
            }
            continue;
        }
        let mut job = global.clone();
        job.name.clone_from(&section.name);
        job.section.clone_from(&section.name);
        job.origin = section.origin.clone();
        job.stonewall |= std::mem::take(&mut begins_file);
        set(&mut job, section)?;
        for setting in &section.settings {
            let value = setting.value.clone().unwrap_or_default();
            job.own.push((primary(&setting.name), value));
        }
        understood.warnings.append(&mut job.notes);
        settle(&mut job, &mut understood.warnings)?;
        check(&job)?;
        understood.jobs.push(job);
    }
    understood.warnings.extend(without_effect(&understood.jobs));
    understood.warnings.extend(unverified(&understood.jobs));
    too_many(&understood.jobs)?;
    awaited(&understood.jobs)?;
    if understood.jobs.is_empty() && !sections.is_empty() {
        let origin = sections
            .first()
            .map_or(&Origin::Default, |first| &first.origin);
        let message = "there is no job: only global settings";
        return Err(JobError::language(origin, message));
    }
    Ok(understood)
}

/// Says which options of the command line do not hold for a second job file.
fn for_the_first_file_only(global: &Job, warnings: &mut Vec<String>) {
    for (option, origin) in &global.origins {
        if let Origin::Argument { .. } = origin {
            warnings.push(format!(
                "{origin}{option} has no effect in other job files than the first"
            ));
        }
    }
}

/// Checks that no job writes, trims or deletes files (`--readonly`), and has none make files.
///
/// # Errors
/// The first job that does, and where.
pub fn keep_files(jobs: &mut [Job]) -> Result<(), JobError> {
    jobs.iter_mut().for_each(|job| job.keeps_files = true);
    let breaks = |job: &Job| job.changes_data() || job.deletes_files();
    match jobs.iter().find(|job| breaks(job)) {
        None => Ok(()),
        Some(job) if job.deletes_files() => {
            let message = format!("the job {} deletes files, against --readonly", job.name);
            let option = match job.file_operation() {
                Some(FileOperation::Delete) => "ioengine",
                _ if job.unlink => "unlink",
                _ => "unlink_each_loop",
            };
            Err(JobError::language(job.origin_of(option), message))
        }
        Some(job) => {
            let message = format!("the job {} writes or trims, against --readonly", job.name);
            Err(JobError::language(job.origin_of("rw"), message))
        }
    }
}

/// At most so many jobs with all their copies (fio's `REAL_MAX_JOBS`): each is a thread.
const JOBS_MAX: u64 = 4096;

fn too_many(jobs: &[Job]) -> Result<(), JobError> {
    let mut total = 0;
    for job in jobs {
        total += u64::from(job.numjobs);
        if total > JOBS_MAX {
            let message = format!("there are at most {JOBS_MAX} jobs with all their copies");
            return Err(JobError::language(job.origin_of("numjobs"), message));
        }
    }
    Ok(())
}

/// Whether each job that another one waits for stands before it.
fn awaited(jobs: &[Job]) -> Result<(), JobError> {
    for (index, job) in jobs.iter().enumerate() {
        let Some(name) = &job.wait_for else { continue };
        if !jobs[..index].iter().any(|other| other.name == *name) {
            let message = format!("there is no job `{name}` before {}", job.name);
            return Err(JobError::language(job.origin_of("wait_for"), message));
        }
    }
    Ok(())
}

/// The name of an option, for any alias; fio reports `threads` as it was written.
fn primary(name: &str) -> String {
    if name == "threads" {
        return name.to_owned();
    }
    OPTIONS
        .find(name)
        .map_or(name, |entry| entry.doc.name)
        .to_owned()
}

fn set(job: &mut Job, section: &Section) -> Result<(), JobError> {
    // As in fio, it holds for all sizes of a section, but for those after it on a command line.
    let of_section = |setting: &&Setting| {
        setting.name == "kb_base" && matches!(setting.origin, Origin::Line { .. })
    };
    let (units, others): (Vec<_>, Vec<_>) = section.settings.iter().partition(of_section);
    let all = units.into_iter().chain(others);
    all.into_iter().try_for_each(|setting| apply(job, setting))
}

/// `verify_interval` as fio has it: it divides the sizes of all writes, and is not larger than a
/// read.
fn settle_interval(job: &mut Job) {
    let (write, read) = (&job.sizes[WRITE], &job.sizes[READ]);
    let mut interval = job.verifying.interval_bytes;
    if interval == 0 && write.min == write.max {
        return;
    }
    if interval == 0 || interval > write.min {
        interval = write.min;
    } else if job.rw.does[READ] && interval > read.min {
        interval = read.min;
    }
    if interval == 0 || write.min % interval > 0 || write.max % interval > 0 {
        interval = greatest_common_divisor(write.min, write.max);
    }
    job.verifying.interval_bytes = match job.unaligned {
        true => 0,
        false => interval,
    };
}

/// Euclid's algorithm; the other number if one is 0.
fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Settings that depend on others.
fn settle(job: &mut Job, warnings: &mut Vec<String>) -> Result<(), JobError> {
    if job.time_based && job.runtime_ns == 0 {
        let origin = job.origin_of("time_based");
        warnings.push(format!(
            "{origin}time_based has no effect: there is no runtime"
        ));
        job.time_based = false;
    }
    // A job that only reads verifies what it reads.
    job.verifying.only &= job.rw.does[WRITE];
    settle_interval(job);
    Ok(())
}

/// Refuses jobs that cannot run on any target.
fn check(job: &Job) -> Result<(), JobError> {
    let wrong = |option: &str, message: String| JobError::language(job.origin_of(option), message);
    check_verify(job)?;
    if job.verifying.only && job.time_based {
        let message = "verify_only ends when everything is checked: leave time_based out";
        return Err(wrong("verify_only", message.to_owned()));
    }
    if job.latency.target_ns > 0 && job.latency.window_ns == 0 {
        let message = "latency_target needs a latency_window";
        return Err(wrong("latency_target", message.to_owned()));
    }
    if !job.makes_requests() && job.cpu.load_percent == 0 {
        let message = "cpuio needs a load: cpuload=PERCENT";
        return Err(wrong("ioengine", message.to_owned()));
    }
    if job.zones.bytes > 0 && !job.zones.strided {
        let message = "zonesize needs zonemode=strided";
        return Err(wrong("zonesize", message.to_owned()));
    }
    if job.zones.strided && job.zones.bytes == 0 {
        let message = "zonemode=strided needs the size of a zone: zonesize=SIZE";
        return Err(wrong("zonemode", message.to_owned()));
    }
    if job
        .zones
        .range()
        .is_some_and(|range| range < job.smallest_bytes())
    {
        let message = "a zone is smaller than the smallest request";
        return Err(wrong("zonesize", message.to_owned()));
    }
    let split = job.priorities.split.iter().any(|split| !split.is_empty());
    if split && job.priorities.percent != [0; 2] {
        let message = "cmdprio_percentage and cmdprio_bssplit exclude each other";
        return Err(wrong("cmdprio_bssplit", message.to_owned()));
    }
    if job.rw.does[READ] && job.rw.does[TRIM] {
        return Err(wrong("rw", "reads and trims cannot be mixed".to_owned()));
    }
    Ok(())
}

/// Whether the headers of blocks to verify fit into them.
fn check_verify(job: &Job) -> Result<(), JobError> {
    let wrong = |option: &str, message: String| JobError::language(job.origin_of(option), message);
    if matches!(job.verify, Verify::Pattern | Verify::PatternHeader)
        && job.verify_pattern.is_empty()
    {
        let message = "a pattern to verify needs a verify_pattern".to_owned();
        return Err(wrong("verify", message));
    }
    let Some(head) = job.verify.header_bytes() else {
        return Ok(());
    };
    let (interval, at) = (job.verifying.interval_bytes, job.verifying.offset_bytes);
    let blocks = job.sizes.iter().zip(job.rw.does).filter(|(_, does)| *does);
    let uneven = |bytes: u64| interval > 0 && bytes > interval && !bytes.is_multiple_of(interval);
    for (sizes, _) in blocks {
        let of_split = sizes.split.iter().map(|(bytes, _)| *bytes);
        let odd = of_split
            .chain([sizes.min, sizes.max])
            .find(|bytes| uneven(*bytes));
        if let Some(bytes) = odd {
            let message =
                format!("a block of {bytes} bytes is no multiple of verify_interval={interval}");
            return Err(wrong("verify_interval", message));
        }
    }
    let smallest = match interval {
        0 => job.smallest_bytes(),
        interval => interval.min(job.smallest_bytes()),
    };
    if smallest < head as u64 {
        let message = format!("blocks to verify need room for a header of {head} bytes");
        return Err(wrong("verify", message));
    }
    if at > 0 && (at < head as u64 || at.saturating_add(head as u64) > smallest) {
        let message = format!(
            "a header of {head} bytes at {at} overlaps the beginning or the end of its block of \
             {smallest} bytes"
        );
        return Err(wrong("verify_offset", message));
    }
    Ok(())
}
