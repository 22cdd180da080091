//! Making a ring that several threads may use.
//!
//! Sources: io_uring_setup(2), io_uring_register(2).

use std::io;

use io_uring::{IoUring, Probe, opcode};
use ugeom_machine::uring::why_refused;

/// Most entries of the submission ring; a longer batch is handed over in parts.
const ENTRIES_MAX: u32 = 1024;

/// The operations that a ring must support.
const REQUIRED: [(u8, &str); 2] = [
    (opcode::AsyncCancel::CODE, "cancel"),
    (opcode::Nop::CODE, "no-op"),
];

/// Why there is no ring: in plain words, and the kernel's error.
pub(super) type Refusal = (String, io::Error);

/// What completions are to do to the thread that submitted them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Interrupt it, since another thread may be the one that waits for them.
    Interrupt,
    /// Wait until it enters the kernel, where the kernel can.
    Quiet,
}

/// A ring for `depth` requests at a time, whether it is quiet, and which operations it knows.
pub(super) fn ring(depth: u32, wish: Wish) -> Result<(IoUring, bool, Probe), Refusal> {
    let entries = depth.min(ENTRIES_MAX).next_power_of_two();
    let built = build(entries, depth, wish == Wish::Quiet);
    let (ring, is_quiet) = built.map_err(|error| (why_refused(&error), error))?;
    let params = ring.params();
    let stable = params.is_feature_nodrop() && params.is_feature_submit_stable();
    if !stable || !params.is_feature_ext_arg() || !params.is_feature_rw_cur_pos() {
        return Err(too_old("wait with a timeout"));
    }
    let mut probe = Probe::new();
    if ring.submitter().register_probe(&mut probe).is_err() {
        return Err(too_old("list of operations"));
    }
    if let Some((_, name)) = REQUIRED.iter().find(|(code, _)| !probe.is_supported(*code)) {
        return Err(too_old(name));
    }
    Ok((ring, is_quiet, probe))
}

fn too_old(what: &str) -> Refusal {
    let reason = format!("this kernel's io_uring is too old (no {what}; Linux 5.11 has all)");
    (reason, io::ErrorKind::Unsupported.into())
}

/// One bad entry is not to hold up the rest of its batch (Linux 5.18), and in a quiet ring
/// completions are posted when the submitter enters the kernel (5.19); older kernels do without.
fn build(entries: u32, depth: u32, wishes_quiet: bool) -> io::Result<(IoUring, bool)> {
    let mut builder = IoUring::builder();
    builder
        .dontfork()
        .setup_cqsize(2 * depth.next_power_of_two());
    let mut modern = builder.clone();
    modern.setup_submit_all();
    if wishes_quiet {
        modern.setup_coop_taskrun().setup_taskrun_flag();
    }
    match modern.build(entries) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok((builder.build(entries)?, false))
        }
        built => Ok((built?, wishes_quiet)),
    }
}
