//! Why the kernel gives us no io_uring, in plain words.
//!
//! Sources: io_uring_setup(2), the sysctl kernel.io_uring_disabled.

use std::fs;
use std::io;

/// The reason of a failed io_uring_setup(2).
pub fn why_refused(error: &io::Error) -> String {
    match error.raw_os_error() {
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
        _ => format!("io_uring_setup: {error}"),
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
        .map(|code| why_refused(&io::Error::from_raw_os_error(code)));
        for (i, reason) in reasons.iter().enumerate() {
            assert!(reasons[..i].iter().all(|other| other != reason), "{reason}");
        }
    }
}
