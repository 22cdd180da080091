//! Differences of two results beside the change under test.

use super::Loaded;
use ugeom_measure::units::duration_human;

/// The other changes that the differences between results include, a warning each.
pub fn confounded(results: &[Loaded]) -> Vec<String> {
    let Some((base, others)) = results.split_first() else { return Vec::new() };
    let mut reasons = Vec::new();
    for other in others {
        if base.document.processes == other.document.processes {
            // `between` reports it: a measurement and itself are no time apart.
            continue;
        }
        let (old, new) = (&base.document.host, &other.document.host);
        let apart_s = old.started_unix_s.abs_diff(new.started_unix_s);
        let apart = match apart_s {
            0 => "at another time".to_owned(),
            seconds => format!("{} apart", duration_human(seconds as f64 * 1e9)),
        };
        reasons.push(format!(
            "{} and {} were measured {apart}: differences include all other changes in between \
             (ugeom ab interleaves both sides)",
            base.name, other.name
        ));
        if (&old.cpu_model, old.cores) != (&new.cpu_model, new.cores) {
            reasons.push(format!(
                "{} was measured on another machine ({} cores of {}, not {} of {}): differences \
                 include that of the machines",
                other.name, new.cores, new.cpu_model, old.cores, old.cpu_model
            ));
        } else if old.kernel != new.kernel {
            let kernels = format!("{} and {}", old.kernel, new.kernel);
            reasons.push(format!(
                "{} ran under another kernel ({kernels})",
                other.name
            ));
        }
        if base.document.experiment != other.document.experiment {
            let experiments = (&other.document.experiment, &base.document.experiment);
            reasons.push(format!(
                "{} is of the experiment {}, not {}",
                other.name, experiments.0, experiments.1
            ));
        }
    }
    reasons
}
