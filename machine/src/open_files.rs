//! The limit of open files of the process (`RLIMIT_NOFILE`): the soft limit that most systems start
//! a process with, 1024, is for programs that call select(2).

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use std::process::Child;

/// The limit before it was raised.
pub struct Before(Rlimit);

/// Lets the process have as many files open as it may.
pub fn raise() -> Before {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    // Where it may not, opening a file says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    Before(limit)
}

impl Before {
    /// Gives a program that this process has started the limit that it would have had.
    pub fn give_to(self, child: &Child) {
        // One that has ended needs none.
        let _ = prlimit(Some(Pid::from_child(child)), Resource::Nofile, self.0);
    }
}
