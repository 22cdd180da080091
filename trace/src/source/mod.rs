//! Where events come from.
//!
//! | source | needs | its events |
//! |---|---|---|
//! | [`bpf`] | CAP_BPF, CAP_PERFMON, the kernel's BTF | carry the addresses of bios and requests |
//! | [`tracefs`] | tracefs, which root may mount | carry places only |
//! | [`perf`] | CAP_PERFMON, the descriptions of events in tracefs | carry places only |

pub mod bpf;
pub mod perf;
mod threads;
pub mod tracefs;

use crate::event::{Event, EventKind};
use std::str::FromStr;

/// Kinds without which nothing can be linked.
const NEEDED: [EventKind; 4] = [
    EventKind::Queue,
    EventKind::GetRequest,
    EventKind::Issue,
    EventKind::Complete,
];

/// Events of all processors that one look takes, about: they bound the memory of a trace.
const LOOK_EVENTS: usize = 1 << 14;
/// Events of one processor that a look takes, at least.
const LOOK_EVENTS_MIN: usize = 1 << 10;

/// How many events a look takes from each of so many processors.
fn look_events(processors: usize) -> usize {
    (LOOK_EVENTS / processors.max(1)).max(LOOK_EVENTS_MIN)
}

/// A source by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Programs on raw tracepoints.
    Bpf,
    /// An instance of tracefs.
    Tracefs,
    /// perf_event_open(2), for rights that suffice for no other source.
    Perf,
}

impl Choice {
    /// All of them; the first that works is taken.
    pub const ALL: [Self; 3] = [Self::Bpf, Self::Tracefs, Self::Perf];

    /// The name in results and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Tracefs => "tracefs",
            Self::Perf => "perf",
        }
    }

    /// The cost of an event of the source of that name, ns, for the cost of a sample. Measured on
    /// zram (`ugeom trace zram0 --overhead`), rounded up.
    pub(crate) fn event_ns(name: &str) -> f64 {
        match name {
            "bpf" => 150.0,
            "tracefs" => 400.0,
            _ => 1100.0,
        }
    }

    /// Those that come after the one of that name.
    pub fn after(name: &str) -> Vec<Self> {
        let mut all = Self::ALL.into_iter();
        all.by_ref().find(|choice| choice.name() == name);
        all.collect()
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no source of this name; there are {names}")
        })
    }
}

/// The requested recording.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Kinds of events; those that the kernel does not have are left out.
    pub kinds: Vec<EventKind>,
    /// Devices, by their numbers; none for all.
    pub devices: Vec<u32>,
    /// FUSE connections; none for all.
    pub connections: Vec<u32>,
    /// Devices whose submitters are followed until they run again.
    pub tops: Vec<u32>,
    /// Addresses of the functions whose work is recorded.
    pub functions: Vec<u64>,
    /// Address of the function that ends bios of direct I/O to files, if it is known.
    pub direct_end: Option<u64>,
    /// Memory for each processor's events, bytes.
    pub ring_bytes: usize,
}

/// A source that runs until it is dropped.
pub trait Source: Send {
    /// Its name in results.
    fn name(&self) -> &'static str;

    /// The kinds of events that it gives.
    fn kinds(&self) -> &[EventKind];

    /// Opens or closes it without detaching.
    fn gate(&mut self, open: bool);

    /// Detaches a closed source, so that it costs nothing, or attaches it again. One that cannot be
    /// attached again stays closed.
    fn rest(&mut self, rests: bool);

    /// Reads what has happened since the last call, or a part of it; the events of a processor come
    /// in the order in which it took their slots. Where events were left, the time up to which none
    /// was, ns.
    ///
    /// # Errors
    /// The error of the kernel.
    fn read(&mut self, events: &mut Vec<Event>) -> std::io::Result<Option<u64>>;

    /// Events that were lost so far.
    fn lost(&self) -> u64;
}

/// Opens the first of these sources that works.
///
/// # Errors
/// Why each one did not.
pub fn open(wish: &Wish, choices: &[Choice]) -> Result<Box<dyn Source>, String> {
    let mut reasons = Vec::new();
    for choice in choices {
        let opened: Result<Box<dyn Source>, String> = match choice {
            Choice::Bpf => bpf::open(wish).map(|it| Box::new(it) as _),
            Choice::Tracefs => tracefs::open(wish).map(|it| Box::new(it) as _),
            Choice::Perf => perf::open(wish).map(|it| Box::new(it) as _),
        };
        match opened {
            Ok(source) => return Ok(source),
            Err(why) => reasons.push(format!("{}: {why}", choice.name())),
        }
    }
    Err(reasons.join("; "))
}

/// The addresses of functions of the kernel, from the text of `/proc/kallsyms`; none where it
/// hides them (sysctl kernel.kptr_restrict).
pub fn addresses(kallsyms: &str, names: &[&str]) -> Vec<u64> {
    let address = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next()?, words.nth(1)?);
        let address = u64::from_str_radix(address, 16).ok()?;
        (address != 0 && names.contains(&name)).then_some(address)
    };
    kallsyms.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_names_and_an_order() {
        assert_eq!("tracefs".parse(), Ok(Choice::Tracefs));
        let error = "ftrace".parse::<Choice>().unwrap_err();
        assert!(error.contains("bpf, tracefs, perf"), "{error}");
        assert_eq!(Choice::after("bpf"), [Choice::Tracefs, Choice::Perf]);
        assert_eq!(Choice::after("perf"), []);
    }

    #[test]
    fn functions_are_found_by_their_names_and_hidden_ones_are_not() {
        let text = "ffffffff81000000 T _text\nffffffff81a0 t loop_workfn\t[loop]\n\
                    0000000000000000 t loop_rootcg_workfn\nbad\n";
        assert_eq!(
            addresses(text, &["loop_workfn", "loop_rootcg_workfn"]),
            [0xffff_ffff_81a0]
        );
    }
}
