//! Making a ring, and saying in plain words why it cannot be had.
//!
//! Sources: io_uring_setup(2), io_uring_register(2), the sysctl kernel.io_uring_disabled.

use std::fs;
use std::io;

use io_uring::{IoUring, Probe, opcode};

use crate::open::EngineError;

/// Most entries of a submission ring: IORING_MAX_ENTRIES of Linux.
pub(super) const ENTRIES_MAX: u32 = 32_768;

/// Size of the table of registered files.
pub(super) const FILES_MAX: u32 = 64;

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

/// A ring that can do all that the engine needs, and whether it has a table of files.
pub(super) fn ring(entries: u32) -> Result<(IoUring, bool), EngineError> {
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
    // Linux 5.19; without the table the kernel looks the descriptor up for each operation.
    let table = ring.submitter().register_files_sparse(FILES_MAX).is_ok();
    Ok((ring, table))
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
    let reason = match source.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no io_uring, or a seccomp filter hides it".into(),
        Some(libc::EPERM | libc::EACCES) => {
            let sysctl = fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
            match sysctl.as_deref().map(str::trim) {
                Ok(level @ ("1" | "2")) => {
                    format!("the system forbids it (sysctl kernel.io_uring_disabled = {level})")
                }
                _ => "it is forbidden here, as by a container's seccomp filter".into(),
            }
        }
        Some(libc::ENOMEM) => {
            "no memory for the rings (on old kernels: raise the limit of locked memory)".into()
        }
        Some(libc::EMFILE | libc::ENFILE) => "too many open files".into(),
        _ => format!("io_uring_setup: {source}"),
    };
    EngineError::Refused {
        engine: "io_uring",
        reason,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_own_explanation() {
        let reasons = [
            libc::ENOSYS,
            libc::EPERM,
            libc::ENOMEM,
            libc::EMFILE,
            libc::EFAULT,
        ]
        .map(|code| refused(io::Error::from_raw_os_error(code)).to_string());
        for (i, reason) in reasons.iter().enumerate() {
            assert!(reason.starts_with("io_uring cannot be used: "), "{reason}");
            assert!(reasons[..i].iter().all(|other| other != reason), "{reason}");
        }
    }
}
