//! Making a ring.
//!
//! Sources: io_uring_setup(2), io_uring_register(2).

use std::io;

use io_uring::{IoUring, Probe, opcode};

use crate::choice::EngineError;

/// Most entries of a submission ring: IORING_MAX_ENTRIES of Linux.
pub(super) const ENTRIES_MAX: u32 = 32_768;

/// Size of the table of registered files.
pub(super) const FILES_MAX: u32 = 64;

/// Size of the table of registered memory.
pub(super) const POOLS_MAX: u32 = 16;

/// The kernel's memory of a ring.
#[derive(Clone, Copy)]
pub(super) struct Tables {
    /// Whether the kernel has a table for registered files.
    pub files: bool,
    /// Whether the kernel has a table for registered memory.
    pub memory: bool,
}

/// The operations that the engine uses.
const REQUIRED: [(u8, &str); 7] = [
    (opcode::Read::CODE, "read"),
    (opcode::Write::CODE, "write"),
    (opcode::Readv::CODE, "readv"),
    (opcode::Writev::CODE, "writev"),
    (opcode::Fsync::CODE, "fsync"),
    (opcode::Fallocate::CODE, "fallocate"),
    (opcode::AsyncCancel::CODE, "cancel"),
];

/// A ring for polls only, as the reactor waits with.
pub(crate) fn poll_ring(entries: u32) -> Result<IoUring, EngineError> {
    let ring = build(entries).map_err(refused)?;
    let parameters = ring.params();
    // Linux 5.13 has polls that stay; the nearest thing that a kernel says of itself is this.
    if parameters.is_feature_ext_arg()
        && parameters.is_feature_nodrop()
        && parameters.is_feature_skip_cqe_on_success()
    {
        return Ok(ring);
    }
    Err(EngineError::Refused {
        engine: "io_uring",
        reason: "this kernel's io_uring is too old to wait with (Linux 5.17 has all)".into(),
        source: io::ErrorKind::Unsupported.into(),
    })
}

/// A ring that can do all that the engine needs, and which tables it has.
pub(super) fn ring(entries: u32) -> Result<(IoUring, Tables), EngineError> {
    let ring = build(entries).map_err(refused)?;
    let lacking = |what: &str| EngineError::Refused {
        engine: "io_uring",
        reason: format!("this kernel's io_uring is too old (no {what}; Linux 5.11 has all)"),
        source: io::ErrorKind::Unsupported.into(),
    };
    if !ring.params().is_feature_nodrop() || !ring.params().is_feature_submit_stable() {
        return Err(lacking("stable submission"));
    }
    if !ring.params().is_feature_ext_arg() {
        return Err(lacking("wait with a timeout"));
    }
    let mut probe = Probe::new();
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(|_| lacking("list of operations"))?;
    if let Some((_, name)) = REQUIRED.iter().find(|(code, _)| !probe.is_supported(*code)) {
        return Err(lacking(name));
    }
    // Linux 5.19; without the tables the kernel looks descriptor and pages up for each operation.
    let fixed = [opcode::ReadFixed::CODE, opcode::WriteFixed::CODE];
    let tables = Tables {
        files: ring.submitter().register_files_sparse(FILES_MAX).is_ok(),
        memory: fixed.iter().all(|&code| probe.is_supported(code))
            && ring.submitter().register_buffers_sparse(POOLS_MAX).is_ok(),
    };
    Ok((ring, tables))
}

/// Completions are to be delivered when this thread next enters the kernel, not by interrupting
/// it, and one bad entry is not to hold up the rest of its batch (Linux 5.19); older kernels do
/// without.
fn build(entries: u32) -> io::Result<IoUring> {
    let modern = IoUring::builder()
        .dontfork()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .build(entries);
    match modern {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().dontfork().build(entries)
        }
        other => other,
    }
}

fn refused(source: io::Error) -> EngineError {
    EngineError::Refused {
        engine: "io_uring",
        reason: ugeom_machine::uring::why_refused(&source),
        source,
    }
}
