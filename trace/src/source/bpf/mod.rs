//! BPF programs on raw tracepoints, assembled here: no compiler, no library, no kprobes.
//!
//! The kernel's BTF says where the members of its structs lie. Events carry the addresses of bios
//! and requests, which are their identity.

mod assemble;
mod program;
mod ring;

use super::{NEEDED, Source, Wish};
use crate::event::{Event, EventKind};
use program::Wanted;
use ring::{Layout, Rings};
use std::os::fd::{AsFd, AsRawFd};
use ugeom_format::btf::Btf;
use ugeom_machine::bpf::{self, Attached, SharedArray};
use ugeom_machine::cpu;

/// Where the kernel shows its BTF.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// BPF programs that are attached, and the rings that they write events to.
pub struct Programs {
    rings: Rings,
    attached: Vec<Attached>,
    kinds: Vec<EventKind>,
}

/// Loads the programs and attaches them.
///
/// # Errors
/// In words: no BTF, no right, refused by the verifier.
pub fn open(wish: &Wish) -> Result<Programs, String> {
    let bytes = std::fs::read(BTF).map_err(|error| format!("{BTF}: {error}"))?;
    let btf = Btf::parse(&bytes).map_err(|error| format!("{BTF}: {error}"))?;
    let layout = Layout::new(cpu::possible_cores(), wish.ring_bytes);
    let array = SharedArray::new(layout.bytes()).map_err(|error| refused(&error))?;
    let descriptor = array.as_fd().as_raw_fd();
    let mut wanted = Wanted {
        array: descriptor,
        layout,
        devices: &wish.devices,
        connections: &wish.connections,
        tops: &wish.tops,
        functions: &wish.functions,
        files: program::Files::of(&btf, wish.direct_end),
    };
    let (mut attached, mut kinds) = (Vec::new(), Vec::new());
    for kind in &wish.kinds {
        let typedef = format!("btf_trace_{}", kind.tracepoint().1);
        let attach = |wanted: &Wanted<'_>| {
            let code = program::program(*kind, &btf, wanted)?;
            let id = btf.typedef(&typedef).unwrap_or(0);
            let refused = |error| format!("{}: {}", kind.tracepoint().1, refused(&error));
            bpf::attach(&code, id).map_err(refused)
        };
        let mut one = attach(&wanted);
        // A kernel whose structs are others than those of files here.
        if one.is_err() && wanted.files.take().is_some() {
            one = attach(&wanted);
        }
        match one {
            Ok(one) => {
                attached.push(one);
                kinds.push(*kind);
            }
            Err(why) if NEEDED.contains(kind) => return Err(why),
            // An event that this kernel does not have: the linker does without.
            Err(_) => {}
        }
    }
    let rings = Rings::new(array, layout);
    rings.gate(true);
    Ok(Programs {
        rings,
        attached,
        kinds,
    })
}

fn refused(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::PermissionDenied if !rustix::process::geteuid().is_root() => format!(
            "bpf(2): {error}; it needs CAP_BPF and CAP_PERFMON (sysctl \
             kernel.unprivileged_bpf_disabled), as root has them"
        ),
        _ => format!("bpf(2): {error}"),
    }
}

impl Source for Programs {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn kinds(&self) -> &[EventKind] {
        &self.kinds
    }

    fn gate(&mut self, open: bool) {
        self.rings.gate(open);
    }

    fn rest(&mut self, rests: bool) {
        for one in &mut self.attached {
            let _ = one.attach(!rests);
        }
    }

    fn read(&mut self, events: &mut Vec<Event>) -> std::io::Result<Option<u64>> {
        Ok(self.rings.read(events))
    }

    fn lost(&self) -> u64 {
        let misses = self.attached.iter().filter_map(|one| one.misses().ok());
        self.rings.lost() + misses.sum::<u64>()
    }
}
