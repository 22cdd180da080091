//! The block devices below jobs, and what they did meanwhile.

use std::collections::BTreeMap;
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
        let paths = copies.flat_map(Copy::paths);
        let names = paths.filter_map(|path| ugeom_harness::host::device_below(path));
        let counted = names.filter_map(|name| {
            let stat = stat_of(&name)?;
            Some((name, stat))
        });
        Self {
            begun: Instant::now(),
            before: counted.collect(),
        }
    }

    pub(super) fn since(self) -> Vec<DiskOutcome> {
        let elapsed_ms = self.begun.elapsed().as_millis() as u64;
        let outcome = |(name, before): (String, Stat)| {
            let after = stat_of(&name)?;
            Some(DiskOutcome {
                name,
                before,
                after,
                elapsed_ms,
            })
        };
        self.before.into_iter().filter_map(outcome).collect()
    }
}

fn stat_of(name: &str) -> Option<Stat> {
    let path = Path::new("/sys/class/block").join(name).join("stat");
    parse_stat(&std::fs::read_to_string(path).ok()?).ok()
}
