//! Events by perf_event_open(2): no BPF, and of tracefs only the descriptions of events, which
//! CAP_DAC_READ_SEARCH suffices for. Events carry places only, as those of [`super::tracefs`].
//!
//! It is the last source: an event costs more than with the others, and on some kernels it misses
//! those of idle processors without counting them, which the comparison with diskstats reveals.

use super::threads::Threads;
use super::tracefs::format::Format;
use super::tracefs::{filter, read, root};
use super::{NEEDED, Source, Wish};
use crate::event::{Event, EventKind};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use ugeom_machine::cpu;
use ugeom_machine::perf::{PerfEvent, PerfRing};

/// Rings are made smaller down to this, where the kernel locks no more memory.
const RING_BYTES_MIN: usize = 64 << 10;

/// Events that are open.
pub struct Perf {
    rings: Vec<PerfRing>,
    events: Vec<PerfEvent>,
    formats: HashMap<u16, Format>,
    kinds: Vec<EventKind>,
    threads: Threads,
    /// Kept while it is used: it holds the mount.
    _mount: Option<OwnedFd>,
}

/// Opens an event for each kind and processor.
///
/// # Errors
/// In words: no right, an event that is missing, too many descriptors.
pub fn open(wish: &Wish) -> Result<Perf, String> {
    let (root, mount) = root(false)?;
    let mut perf = Perf {
        rings: Vec::new(),
        events: Vec::new(),
        formats: HashMap::new(),
        kinds: Vec::new(),
        threads: Threads::new(&wish.tops),
        _mount: mount,
    };
    // The first one often has no such file: it cannot be switched off.
    let is_off = |cpu: &usize| {
        let state = std::fs::read(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        state.is_ok_and(|state| state.starts_with(b"0"))
    };
    let cpus = (0..cpu::possible_cores()).filter(|cpu| !is_off(cpu));
    let cpus: Vec<usize> = cpus.collect();
    for kind in &wish.kinds {
        let (group, name) = kind.tracepoint();
        let described = read(&root.join(format!("events/{group}/{name}/format")));
        let format = described.and_then(|text| {
            let format = Format::parse(*kind, &text);
            format.ok_or_else(|| format!("{name}: its format lacks a field"))
        });
        let opened = format.and_then(|format| {
            perf.open(*kind, format, &cpus, wish)
                .map_err(|error| format!("{name}: {}", refused(&error)))
        });
        match opened {
            Ok(()) => perf.kinds.push(*kind),
            Err(why) if NEEDED.contains(kind) => return Err(why),
            // An event that this kernel does not have: the linker does without.
            Err(_) => {}
        }
    }
    perf.gate(true);
    Ok(perf)
}

fn refused(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "perf_event_open(2): {error}; it needs CAP_PERFMON (sysctl kernel.perf_event_paranoid)"
        ),
        _ => format!("perf_event_open(2): {error}"),
    }
}

impl Perf {
    fn open(
        &mut self,
        kind: EventKind,
        format: Format,
        cpus: &[usize],
        wish: &Wish,
    ) -> io::Result<()> {
        let condition = filter(kind, wish);
        let first = self.rings.is_empty();
        for (at, cpu) in cpus.iter().enumerate() {
            let event = PerfEvent::open(u64::from(format.id), *cpu)?;
            if !condition.is_empty() {
                event.filter(&condition)?;
            }
            if first {
                self.rings
                    .push(ring(event, format.id, *cpu, &condition, wish.ring_bytes)?);
            } else {
                event.join(&self.rings[at])?;
                self.events.push(event);
            }
        }
        self.formats.insert(format.id, format);
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &PerfEvent> {
        let rings = self.rings.iter().map(PerfRing::event);
        rings.chain(&self.events)
    }
}

/// A ring as large as the kernel allows.
fn ring(
    mut event: PerfEvent,
    id: u16,
    cpu: usize,
    condition: &str,
    bytes: usize,
) -> io::Result<PerfRing> {
    let mut bytes = bytes.next_power_of_two();
    loop {
        match PerfRing::new(event, bytes) {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied && bytes > RING_BYTES_MIN =>
            {
                bytes /= 2;
                event = PerfEvent::open(u64::from(id), cpu)?;
                if !condition.is_empty() {
                    event.filter(condition)?;
                }
            }
            made => return made,
        }
    }
}

impl Source for Perf {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn kinds(&self) -> &[EventKind] {
        &self.kinds
    }

    fn gate(&mut self, open: bool) {
        for event in self.all() {
            let _ = event.enable(open);
        }
    }

    /// A disabled event costs next to nothing.
    fn rest(&mut self, _rests: bool) {}

    fn read(&mut self, events: &mut Vec<Event>) -> io::Result<Option<u64>> {
        let before = events.len();
        let formats = &self.formats;
        for ring in &mut self.rings {
            ring.read(&mut |sample| {
                let id = sample.data.first_chunk().map(|id| u16::from_le_bytes(*id));
                let format = id.and_then(|id| formats.get(&id));
                let cpu = sample.cpu as u16;
                let event = format.and_then(|it| it.event(sample.time_ns, cpu, sample.data));
                events.extend(event);
            })?;
        }
        self.threads.complete(events, before);
        Ok(None)
    }

    fn lost(&self) -> u64 {
        let counted = self.all().map(PerfEvent::lost).sum::<Option<u64>>();
        counted.unwrap_or_else(|| self.rings.iter().map(PerfRing::told_lost).sum())
    }
}
