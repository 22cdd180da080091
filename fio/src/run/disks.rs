//! The load of the block devices below jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use ugeom_format::diskstats::{Stat, parse_stat};

use super::Copy;
use crate::outcome::DiskOutcome;

/// The block devices below all jobs, and their counters when they were looked at first.
pub(super) struct Disks {
    begun: Instant,
    before: BTreeMap<String, Stat>,
}

impl Disks {
    pub(super) fn below<'a>(copies: impl Iterator<Item = &'a Copy>) -> Self {
        // To find a device takes some dozen calls: once for all files of a file system.
        let mut seen = BTreeSet::new();
        let paths = copies.flat_map(Copy::paths);
        let first_on_its_device = paths.filter(|path| {
            let about = std::fs::metadata(path).map(|about| (about.dev(), about.rdev()));
            about.map_or(true, |devices| seen.insert(devices))
        });
        let names = first_on_its_device.filter_map(|path| ugeom_harness::host::device_below(path));
        let counted = names.filter_map(|name| {
            let stat = stat_of(&name)?;
            Some((name, stat))
        });
        Self {
            begun: Instant::now(),
            before: counted.collect(),
        }
    }

    pub(super) fn since(&self) -> Vec<DiskOutcome> {
        let elapsed_ms = self.begun.elapsed().as_millis() as u64;
        let outcome = |(name, before): (&String, &Stat)| {
            let after = stat_of(name)?;
            Some(DiskOutcome {
                name: name.clone(),
                before: *before,
                after,
                elapsed_ms,
            })
        };
        self.before.iter().filter_map(outcome).collect()
    }
}

fn stat_of(name: &str) -> Option<Stat> {
    let path = Path::new("/sys/class/block").join(name).join("stat");
    parse_stat(&std::fs::read_to_string(path).ok()?).ok()
}
