//! criterion's `sample.json` (iterations and times of each sample) and `estimates.json` (the median
//! alone).

use super::{Series, list, number};
use serde_json::Value;
use ugeom_measure::change::Better;

pub(super) fn parse(case: &str, value: &Value) -> Result<Vec<Series>, String> {
    let values = match value.get("times") {
        Some(_) => samples(value)?,
        None => {
            let median = number(value, &["median", "point_estimate"]);
            vec![median.ok_or("median: there is no `point_estimate`")?]
        }
    };
    Ok(vec![Series::new(case, "time", "ns", Better::Lower, values)])
}

fn samples(value: &Value) -> Result<Vec<f64>, String> {
    let (iterations, times) = (
        list(value, "the sample", "iters")?,
        list(value, "the sample", "times")?,
    );
    if iterations.len() != times.len() {
        let (iterations, times) = (iterations.len(), times.len());
        return Err(format!(
            "{iterations} values in `iters`, but {times} in `times`"
        ));
    }
    let pairs = iterations.iter().zip(times).enumerate();
    pairs
        .map(|(at, (iterations, time))| {
            let pair = iterations.as_f64().zip(time.as_f64());
            let of = pair.filter(|(iterations, _)| *iterations > 0.0);
            let (iterations, time) = of
                .ok_or_else(|| format!("times[{at}]: expected a time of at least one iteration"))?;
            Ok(time / iterations)
        })
        .collect()
}
