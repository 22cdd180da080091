//! One run of a case.

use super::{Case, Meter, RunResult, Sample};
use crate::HarnessError;

/// A case that failed.
pub(super) struct Stopped {
    pub case: String,
    pub error: HarnessError,
}

/// What a run is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It finds the length of the runs to come.
    Trial,
    /// It is judged, beside the reference loop.
    Sample,
}

/// One run of a case, and everything that is read around it.
pub(super) fn sample(
    case: &mut Case<'_>,
    iterations: u64,
    meter: &dyn Meter,
    purpose: Purpose,
) -> Result<Sample, Box<Stopped>> {
    if let Some(prepare) = &mut case.prepare {
        let stopped = |error| Stopped {
            case: case.name.clone(),
            error,
        };
        prepare().map_err(|error| Box::new(stopped(error)))?;
    }
    let device = |case: &Case<'_>| case.device.as_ref().and_then(|device| device.read());
    let device_before = device(case);
    let cores = case.seats.as_ref().map(super::Seats::cores);
    let cores = cores.unwrap_or_default();
    let reference = || match purpose {
        Purpose::Trial => None,
        Purpose::Sample => meter.reference_ns(&cores),
    };
    let reference_before = reference();
    let before = meter.read();
    let result = iterate(case, iterations)?;
    let cpu = meter.read().since(&before);
    let reference_after = reference();
    let device_after = device(case);
    Ok(Sample {
        iterations: result.counted.unwrap_or(iterations),
        wall_ns: result.ns_total,
        cpu,
        work: result.work,
        device: device_after
            .zip(device_before)
            .map(|(after, before)| after.since(&before)),
        core: meter.core(),
        reference_ns: reference_before
            .zip(reference_after)
            .map(|(before, after)| [before, after]),
        reference_cores: cores.len().max(1) as u32,
    })
}

/// Runs a case, and names it where it fails.
pub(super) fn iterate(case: &mut Case<'_>, iterations: u64) -> Result<RunResult, Box<Stopped>> {
    (case.run)(iterations).map_err(|error| {
        Box::new(Stopped {
            case: case.name.clone(),
            error,
        })
    })
}
