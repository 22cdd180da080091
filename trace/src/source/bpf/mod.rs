//! BPF programs on raw tracepoints, assembled here: no compiler, no library, no kprobes.
//!
//! The kernel's BTF says where the members of its structs lie. Events carry the addresses of bios
//! and requests, which are their identity.

mod assemble;
mod program;
mod ring;

use super::{NEEDED, Source, Wish};
use crate::event::{Event, Kind};
use program::Wanted;
use ring::{Layout, Rings};
use std::os::fd::{AsFd, AsRawFd};
use ugeom_format::btf::Btf;
use ugeom_machine::bpf::{self, Attached, SharedArray};
use ugeom_machine::cpu;

/// Where the kernel shows its BTF.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Programs that run.
pub struct Programs {
    rings: Rings,
    attached: Vec<Attached>,
    kinds: Vec<Kind>,
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
    let wanted = Wanted {
        array: descriptor,
        layout,
        devices: &wish.devices,
        connections: &wish.connections,
        tops: &wish.tops,
        functions: &wish.functions,
    };
    let (mut attached, mut kinds) = (Vec::new(), Vec::new());
    for kind in &wish.kinds {
        let typedef = format!("btf_trace_{}", kind.tracepoint().1);
        let program = program::program(*kind, &btf, &wanted);
        let one = program.and_then(|code| {
            let id = btf.typedef(&typedef).unwrap_or(0);
            let refused = |error| format!("{}: {}", kind.tracepoint().1, refused(&error));
            bpf::attach(&code, id).map_err(refused)
        });
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

    fn kinds(&self) -> &[Kind] {
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

    fn read(&mut self, events: &mut Vec<Event>) -> std::io::Result<()> {
        self.rings.read(events);
        Ok(())
    }

    fn lost(&self) -> u64 {
        let misses = self.attached.iter().filter_map(|one| one.misses().ok());
        self.rings.lost() + misses.sum::<u64>()
    }
}
