//! fio's JSON, 3.x: a value of each job's reads, writes and trims, or of all together
//! (`unified_rw_reporting`). Several files give several, and so do several clients of one run.

use super::{Series, list, number, text};
use serde_json::Value;
use ugeom_measure::change::Better;

/// Quantity, unit, which values are good, and the way to the number.
const QUANTITIES: [(&str, &str, Better, &[&str]); 7] = [
    ("iops", "1/s", Better::Higher, &["iops"]),
    ("bytes_per_second", "bytes/s", Better::Higher, &["bw_bytes"]),
    ("latency", "ns", Better::Lower, &["lat_ns", "mean"]),
    (
        "completion_latency",
        "ns",
        Better::Lower,
        &["clat_ns", "mean"],
    ),
    (
        "latency50",
        "ns",
        Better::Lower,
        &["clat_ns", "percentile", "50.000000"],
    ),
    (
        "latency99",
        "ns",
        Better::Lower,
        &["clat_ns", "percentile", "99.000000"],
    ),
    (
        "latency99.9",
        "ns",
        Better::Lower,
        &["clat_ns", "percentile", "99.900000"],
    ),
];

pub(super) fn parse(value: &Value) -> Result<Vec<Series>, String> {
    let mut series = Vec::new();
    let key = match value.get("jobs") {
        None if value.get("client_stats").is_some() => "client_stats",
        _ => "jobs",
    };
    for (at, job) in list(value, "the result", key)?.iter().enumerate() {
        let path = format!("{key}[{at}]");
        let name = text(job, &path, "jobname")?;
        // The sum of the other entries.
        if key == "client_stats" && name == "All clients" {
            continue;
        }
        for side in ["read", "write", "trim", "mixed"] {
            let Some(part) = job.get(side) else { continue };
            if number(part, &["total_ios"]).unwrap_or(0.0) <= 0.0 {
                continue;
            }
            let case = format!("{name} {side}");
            for (metric, unit, better, keys) in QUANTITIES {
                // A latency of 0 was not measured.
                let found = number(part, keys).filter(|value| *value > 0.0);
                series.extend(
                    found.map(|value| Series::new(&case, metric, unit, better, vec![value])),
                );
            }
        }
    }
    Ok(series)
}
