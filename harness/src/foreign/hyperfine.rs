//! hyperfine's `--export-json`: the time of each run, and the CPU time of all together.

use super::{Series, list, number, text};
use serde_json::Value;
use ugeom_measure::change::Better;

pub(super) fn parse(value: &Value) -> Result<Vec<Series>, String> {
    let mut series = Vec::new();
    for (at, result) in list(value, "the result", "results")?.iter().enumerate() {
        let path = format!("results[{at}]");
        let command = text(result, &path, "command")?;
        let times = match result.get("times") {
            None | Some(Value::Null) => {
                let mean = number(result, &["mean"]);
                vec![mean.ok_or_else(|| format!("{path}: neither `times` nor `mean`"))? * 1e9]
            }
            Some(_) => {
                let times = list(result, &path, "times")?.iter().enumerate();
                let times = times.map(|(run, time)| {
                    let seconds = time.as_f64();
                    let wrong = || format!("{path}.times[{run}]: expected a number of seconds");
                    Ok(seconds.ok_or_else(wrong)? * 1e9)
                });
                times.collect::<Result<_, String>>()?
            }
        };
        series.push(Series::new(command, "time", "ns", Better::Lower, times));
        let cpu = number(result, &["user"]).zip(number(result, &["system"]));
        if let Some(cpu) = cpu.map(|(user, system)| (user + system) * 1e9) {
            series.push(Series::new(command, "cpu", "ns", Better::Lower, vec![cpu]));
        }
    }
    Ok(series)
}
