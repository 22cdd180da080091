//! iostat's `-o JSON`: a value of each device and column for each interval. The first report is the
//! time since the system started, and is left out where others follow. So are devices without any
//! request, unless all are.

use super::{Series, list, text};
use serde_json::Value;
use std::collections::BTreeSet;
use ugeom_measure::change::Better;

pub(super) fn parse(value: &Value) -> Result<Vec<Series>, String> {
    let mut series = Vec::new();
    let hosts = list(&value["sysstat"], "sysstat", "hosts")?;
    for (at, host) in hosts.iter().enumerate() {
        let path = format!("sysstat.hosts[{at}]");
        let reports = list(host, &path, "statistics")?;
        let since_start = usize::from(reports.len() > 1);
        for (number, report) in reports.iter().enumerate().skip(since_start) {
            let path = format!("{path}.statistics[{number}]");
            // `iostat -c` reports no devices.
            let Some(disks) = report.get("disk") else { continue };
            let disks = disks.as_array();
            for disk in disks.ok_or_else(|| format!("{path}.disk: expected a list"))? {
                of_disk(disk, &format!("{path}.disk"), &mut series)?;
            }
        }
    }
    let is_busy = |one: &Series| one.values.iter().any(|value| *value != 0.0);
    let busy = series.iter().filter(|one| is_busy(one));
    let busy: BTreeSet<String> = busy.map(|one| one.case.clone()).collect();
    if !busy.is_empty() {
        series.retain(|one| busy.contains(&one.case));
    }
    Ok(series)
}

/// The first columns of `iostat` and `iostat -x`; the others follow.
const FIRST: [&str; 13] = [
    "tps",
    "kB_read/s",
    "kB_wrtn/s",
    "MB_read/s",
    "MB_wrtn/s", // without -x
    "r/s",
    "rkB/s",
    "r_await",
    "w/s",
    "wkB/s",
    "w_await",
    "aqu-sz",
    "util",
];

fn of_disk(disk: &Value, path: &str, series: &mut Vec<Series>) -> Result<(), String> {
    let device = text(disk, path, "disk_device")?;
    let columns = disk.as_object().into_iter().flatten();
    let columns = columns.filter(|one| one.0 != "disk_device");
    let mut columns: Vec<(&String, &Value)> = columns.collect();
    let place = |column: &str| FIRST.iter().position(|first| *first == column);
    columns.sort_by_key(|(column, _)| place(column).unwrap_or(FIRST.len()));
    for (column, value) in columns {
        let Some(value) = value.as_f64() else {
            return Err(format!("{path}.{column} of {device}: expected a number"));
        };
        let (unit, better) = match column.as_str() {
            "r_await" | "w_await" | "d_await" | "f_await" => ("ms", Better::Lower),
            "tps" => ("1/s", Better::Higher),
            column if column.starts_with("kB_") && column.ends_with("/s") => {
                ("kB/s", Better::Higher)
            }
            column if column.starts_with("MB_") && column.ends_with("/s") => {
                ("MB/s", Better::Higher)
            }
            column if column.starts_with("kB_") => ("kB", Better::Lower),
            column if column.starts_with("MB_") => ("MB", Better::Lower),
            column if column.ends_with("kB/s") => ("kB/s", Better::Higher),
            column if column.ends_with("MB/s") => ("MB/s", Better::Higher),
            column if column.ends_with("/s") => ("1/s", Better::Higher),
            column if column.ends_with("areq-sz") => ("kB", Better::Lower),
            "rrqm" | "wrqm" | "drqm" | "util" => ("%", Better::Lower),
            // A number of requests.
            _ => ("", Better::Lower),
        };
        super::merge(
            series,
            Series::new(device, column, unit, better, vec![value]),
        );
    }
    Ok(())
}
