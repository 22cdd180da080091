//! Limits on the speed of a machine: its battery, and limits of control groups.
//!
//! Sources: Documentation/ABI/testing/sysfs-class-power, Documentation/admin-guide/cgroup-v2.rst,
//! Documentation/scheduler/sched-bwc.rst (version 1).

use super::word;
use std::path::{Path, PathBuf};

/// Whether there is a power supply and it is not connected. Machines that are supplied by USB list
/// none; their battery reports that it discharges.
pub(super) fn on_battery(sys: &Path) -> bool {
    let Ok(supplies) = std::fs::read_dir(sys.join("class/power_supply")) else { return false };
    let supplies: Vec<PathBuf> = supplies.flatten().map(|entry| entry.path()).collect();
    let of_type = |kind: &str| {
        let is = |path: &&PathBuf| word(&path.join("type")).as_deref() == Some(kind);
        supplies.iter().filter(is).collect::<Vec<_>>()
    };
    let mains = of_type("Mains").into_iter();
    let online: Vec<bool> = mains
        .filter_map(|path| Some(word(&path.join("online"))? == "1"))
        .collect();
    if !online.is_empty() {
        return !online.contains(&true);
    }
    // The battery of a mouse has this scope.
    let of_device = |path: &Path| word(&path.join("scope")).as_deref() == Some("Device");
    let empties = |path: &&PathBuf| {
        !of_device(path) && word(&path.join("status")).as_deref() == Some("Discharging")
    };
    of_type("Battery").iter().any(empties)
}

/// The smallest limit among this process's control group and those above it, in cores.
pub(super) fn cpu_limit(sys: &Path) -> Option<f64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(&sys.join("fs/cgroup"), &groups)
}

/// The limit of the groups that `/proc/self/cgroup` names, below where they are mounted.
fn limit_of(mounted: &Path, groups: &str) -> Option<f64> {
    let limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let group = Path::new(group.trim_start_matches('/'));
        if controllers.is_empty() {
            return smallest(mounted, group, version_2);
        }
        let mut names = controllers.split(',');
        names.any(|name| name == "cpu").then_some(())?;
        // Version 1: the folder has the names of its controllers, and a link for each.
        let folders = [controllers, "cpu"].map(|name| mounted.join(name));
        let mut limits = folders.iter().map(|it| smallest(it, group, version_1));
        limits.find_map(|limit| limit)
    });
    limits.min_by(f64::total_cmp)
}

fn smallest(root: &Path, group: &Path, limit: fn(&Path) -> Option<f64>) -> Option<f64> {
    // In a container the path may be that of the host: the topmost folder is its own group then.
    let limits = group
        .ancestors()
        .filter_map(|group| limit(&root.join(group)));
    limits.min_by(f64::total_cmp)
}

/// `cpu.max`: `150000 100000`, or `max 100000`.
fn version_2(folder: &Path) -> Option<f64> {
    let text = word(&folder.join("cpu.max"))?;
    let (quota, period) = text.split_once(' ')?;
    cores(quota, period)
}

/// `cpu.cfs_quota_us`, which is -1 without a limit.
fn version_1(folder: &Path) -> Option<f64> {
    let text = |name: &str| word(&folder.join(name));
    cores(&text("cpu.cfs_quota_us")?, &text("cpu.cfs_period_us")?)
}

fn cores(quota: &str, period: &str) -> Option<f64> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|it| *it > 0.0);
    Some(number(quota)? / number(period)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_laptop_without_its_supply_runs_on_its_battery() {
        let sys = tempfile::tempdir().unwrap();
        assert!(!on_battery(sys.path()), "a machine without a battery");
        let supply = sys.path().join("class/power_supply/AC");
        std::fs::create_dir_all(&supply).unwrap();
        std::fs::write(supply.join("type"), "Mains\n").unwrap();
        std::fs::write(supply.join("online"), "1\n").unwrap();
        assert!(!on_battery(sys.path()));
        std::fs::write(supply.join("online"), "0\n").unwrap();
        assert!(on_battery(sys.path()));
    }

    #[test]
    fn a_laptop_supplied_by_usb_is_known_by_its_battery() {
        let sys = tempfile::tempdir().unwrap();
        let battery = sys.path().join("class/power_supply/BAT0");
        std::fs::create_dir_all(&battery).unwrap();
        std::fs::write(battery.join("type"), "Battery\n").unwrap();
        std::fs::write(battery.join("status"), "Charging\n").unwrap();
        assert!(!on_battery(sys.path()));
        std::fs::write(battery.join("status"), "Discharging\n").unwrap();
        assert!(on_battery(sys.path()));
        std::fs::write(battery.join("scope"), "Device\n").unwrap();
        assert!(!on_battery(sys.path()), "a mouse");
    }

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("a/b");
        std::fs::create_dir_all(&group).unwrap();
        let limit = |groups: &str| limit_of(root.path(), groups);
        assert_eq!(limit("0::/a/b\n"), None);
        std::fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        std::fs::write(root.path().join("a/cpu.max"), "150000 100000\n").unwrap();
        assert_eq!(limit("0::/a/b\n"), Some(1.5));
        assert_eq!(limit("0::/\n"), None, "the group of another branch");
    }

    #[test]
    fn groups_of_version_1_have_limits_too() {
        let root = tempfile::tempdir().unwrap();
        let cpu = root.path().join("cpu,cpuacct");
        let group = cpu.join("docker/a");
        std::fs::create_dir_all(&group).unwrap();
        let groups = "5:cpuset:/\n4:cpu,cpuacct:/docker/a\n0::/\n";
        let set = |folder: &Path, quota: &str| {
            std::fs::write(folder.join("cpu.cfs_quota_us"), quota).unwrap();
            std::fs::write(folder.join("cpu.cfs_period_us"), "100000\n").unwrap();
        };
        set(&group, "-1\n");
        assert_eq!(limit_of(root.path(), groups), None);
        set(&group, "50000\n");
        assert_eq!(limit_of(root.path(), groups), Some(0.5));
        // In a container: the path of the host, and the group itself is what is mounted.
        let inside = "4:cpu,cpuacct:/elsewhere/b\n";
        set(&cpu, "200000\n");
        assert_eq!(limit_of(root.path(), inside), Some(2.0));
    }
}
