//! The requests of a session to its source and to the kernel's counters.

use super::{Counters, Scope, dev_of};
use crate::event::EventKind;
use crate::link::FUSE;
use crate::source::{self, Wish};
use ugeom_format::diskstats;

/// Memory for the events of a processor, bytes.
const RING_BYTES: usize = 4 << 20;

/// All kinds of events that requests of these devices can have.
pub(super) fn wish_of(scope: &Scope) -> Wish {
    let kallsyms = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let has_loop = !scope.topology.loops.is_empty();
    let functions = match has_loop {
        true => source::addresses(&kallsyms, &["loop_workfn", "loop_rootcg_workfn"]),
        false => Vec::new(),
    };
    let has_fuse = !scope.connections.is_empty();
    let wanted = |kind: &EventKind| match kind {
        EventKind::WorkQueue | EventKind::WorkStart | EventKind::WorkEnd => !functions.is_empty(),
        EventKind::FuseSend | EventKind::FuseEnd => has_fuse,
        EventKind::Served | EventKind::Window | EventKind::Lost => false,
        _ => true,
    };
    let block_tops = scope.tops.iter().filter(|dev| **dev & FUSE == 0);
    Wish {
        kinds: EventKind::ALL.into_iter().filter(wanted).collect(),
        devices: scope.disks.clone(),
        connections: scope.connections.clone(),
        // Bios of a partition carry the number of its disk.
        tops: match block_tops
            .clone()
            .any(|dev| scope.topology.partitions.contains(dev))
        {
            true => scope.disks.clone(),
            false => block_tops.copied().collect(),
        },
        functions,
        direct_end: source::addresses(&kallsyms, &["iomap_dio_bio_end_io"])
            .first()
            .copied(),
        ring_bytes: RING_BYTES,
    }
}

/// Reads, and writes with discards, of each device.
pub(super) fn counters(scope: &Scope) -> Counters {
    let text = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let devices = diskstats::parse(&text).unwrap_or_default();
    let wanted = devices.into_iter().filter_map(|device| {
        let dev = dev_of((device.major, device.minor));
        let discards = device.stat.discards.unwrap_or_default().completed;
        let counted = (
            device.stat.reads.completed,
            device.stat.writes.completed + discards,
        );
        scope.disks.contains(&dev).then_some((dev, counted))
    });
    wanted.collect()
}
