//! Zones of a file that are worked on one after the other (`zonemode=strided`), as by fio:
//! transfers count for all files together, and requests may reach past the end of a zone.

use super::RegionState;
use ugeom_job::settings::Job;

/// The zones of a file and where the present one begins, bytes.
#[derive(Clone, Copy)]
pub struct Zone {
    /// How much is transferred in one.
    bytes: u64,
    pub range: u64,
    skip: u64,
    /// Where the present one begins, from the start of the region.
    pub start: u64,
}

impl Zone {
    /// The first zone of a file of `job`; `None` without zones.
    pub fn of(job: &Job) -> Option<Self> {
        let range = job.zones.range()?;
        // fio ignores zones where several files are open.
        (job.openfiles <= 1).then_some(Self {
            bytes: job.zones.bytes,
            range,
            skip: job.zones.skip_bytes,
            start: 0,
        })
    }
}

impl RegionState {
    /// Goes to the next zone when enough has been transferred in the present ones of all files
    /// (`used`), and to the beginning of the zone when its end is reached before; behind the last
    /// one comes the first.
    pub fn enter_zone(&mut self, mut zone: Zone, kind: usize, used: &mut u64) {
        if *used >= zone.bytes {
            *used = 0;
            let step = zone.range.saturating_add(zone.skip);
            zone.start = zone.start.saturating_add(step);
            // fio goes on up to the end of the file, also where `size` ends before it.
            if zone.start >= self.length {
                zone.start = 0;
            }
            self.next[kind] = zone.start;
            self.zone = Some(zone);
        }
        if self.next[kind] >= zone.start.saturating_add(zone.range) {
            self.next[kind] = zone.start;
        }
        if used.is_multiple_of(zone.range) {
            self.restart();
        }
    }
}
