//! Sockets that the parent process has opened for this one: socket activation, as systemd and
//! libnbd do it (sd_listen_fds(3)): `LISTEN_FDS` descriptors from number 3 on, for the process
//! `LISTEN_PID`, with names in `LISTEN_FDNAMES`.

use std::ffi::OsString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first descriptor that is passed (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// The most descriptors that are taken.
const COUNT_MAX: usize = 1024;

/// The variables; a child must not take them for its own.
pub const VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// A descriptor of the parent's.
#[derive(Debug)]
pub struct Inherited {
    /// The descriptor, closed on exec.
    pub fd: OwnedFd,
    /// Its name: `unknown` where the parent gives none.
    pub name: String,
}

/// The content of the environment.
#[derive(Debug, PartialEq, Eq)]
struct Announced {
    names: Vec<String>,
}

/// The descriptors that were passed to this process; none for every call but the first.
///
/// # Errors
/// The environment contradicts itself, or a descriptor is not open.
pub fn take() -> io::Result<Vec<Inherited>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let announced = announced(&|name| std::env::var_os(name), std::process::id())?;
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Ok(Vec::new());
    }
    let mut taken = Vec::with_capacity(announced.names.len());
    for (number, name) in (FIRST..).zip(announced.names) {
        // SAFETY: fcntl(2) with these commands takes no pointers; a number that is no descriptor
        // fails with EBADF.
        let set = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        if set < 0 {
            let error = io::Error::last_os_error();
            return Err(io::Error::new(
                error.kind(),
                format!("descriptor {number} of LISTEN_FDS: {error}"),
            ));
        }
        // SAFETY: the parent has opened it for this process alone, as LISTEN_PID says; it is open,
        // and `TAKEN` lets only one owner be made.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        taken.push(Inherited { fd, name });
    }
    Ok(taken)
}

fn announced(variable: &dyn Fn(&str) -> Option<OsString>, own: u32) -> io::Result<Announced> {
    let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
    let wrong = |problem: String| io::Error::new(io::ErrorKind::InvalidInput, problem);
    let none = Announced { names: Vec::new() };
    // Meant for another process, a parent's for example.
    let is_ours = |pid: String| pid.trim().parse() == Ok(own);
    if !text("LISTEN_PID").is_some_and(is_ours) {
        return Ok(none);
    }
    let Some(count) = text("LISTEN_FDS") else {
        return Ok(none);
    };
    let number = count.trim().parse::<usize>();
    let number = number.ok().filter(|number| *number <= COUNT_MAX);
    let number = number.ok_or_else(|| {
        wrong(format!(
            "LISTEN_FDS is `{count}`, not a number from 0 to {COUNT_MAX}"
        ))
    })?;
    let given = text("LISTEN_FDNAMES").unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    if !given.is_empty() {
        names = given.split(':').map(str::to_owned).collect();
        if names.len() != number {
            let problem = format!(
                "LISTEN_FDNAMES has {} names for {number} descriptors of LISTEN_FDS",
                names.len()
            );
            return Err(wrong(problem));
        }
    }
    names.resize(number, "unknown".to_owned());
    Ok(Announced { names })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pid: &str, count: &str, names: Option<&str>) -> Result<Vec<String>, String> {
        let variable = |name: &str| match name {
            "LISTEN_PID" => Some(pid.into()),
            "LISTEN_FDS" => Some(count.into()),
            _ => names.map(OsString::from),
        };
        announced(&variable, 42)
            .map(|announced| announced.names)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn descriptors_are_those_of_this_process_with_their_names() {
        assert_eq!(of("42", "2", Some("a:b")), Ok(vec!["a".into(), "b".into()]));
        assert_eq!(of("42", "1", None), Ok(vec!["unknown".into()]));
        assert_eq!(of("43", "1", None), Ok(Vec::new()));
        assert_eq!(of("x", "1", None), Ok(Vec::new()));
        assert_eq!(of("42", "0", None), Ok(Vec::new()));
        assert_eq!(announced(&|_| None, 42).expect("none").names.len(), 0);
    }

    #[test]
    fn contradictions_are_errors() {
        for count in ["", "-1", "two", "1025", "99999999999999999999"] {
            let error = of("42", count, None).unwrap_err();
            assert!(error.contains("LISTEN_FDS is `"), "{error}");
        }
        let error = of("42", "2", Some("a")).unwrap_err();
        assert!(error.contains("1 names for 2 descriptors"), "{error}");
    }
}
