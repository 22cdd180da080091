//! What keeps a machine from running at its speed: its battery, and limits of control groups.
//!
//! Sources: Documentation/ABI/testing/sysfs-class-power, Documentation/admin-guide/cgroup-v2.rst.

use super::word;
use std::path::Path;

/// Whether there is a power supply and it is not connected.
pub(super) fn on_battery(sys: &Path) -> bool {
    let Ok(supplies) = std::fs::read_dir(sys.join("class/power_supply")) else {
        return false;
    };
    let mains = supplies.flatten().map(|entry| entry.path());
    let mains = mains.filter(|path| word(&path.join("type")).as_deref() == Some("Mains"));
    let online: Vec<bool> = mains
        .filter_map(|path| Some(word(&path.join("online"))? == "1"))
        .collect();
    !online.is_empty() && !online.contains(&true)
}

/// The smallest limit among this process's control group and those above it, in cores.
pub(super) fn cpu_limit(sys: &Path) -> Option<f64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    smallest(&sys.join("fs/cgroup"), Path::new(group))
}

fn smallest(root: &Path, group: &Path) -> Option<f64> {
    let limits = group.ancestors().filter_map(|group| {
        let text = word(&root.join(group).join("cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok().filter(|it| *it > 0.0)?)
    });
    limits.min_by(f64::total_cmp)
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
    fn the_smallest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("a/b");
        std::fs::create_dir_all(&group).unwrap();
        assert_eq!(smallest(root.path(), Path::new("a/b")), None);
        std::fs::write(group.join("cpu.max"), "max 100000\n").unwrap();
        std::fs::write(root.path().join("a/cpu.max"), "150000 100000\n").unwrap();
        assert_eq!(smallest(root.path(), Path::new("a/b")), Some(1.5));
    }
}
