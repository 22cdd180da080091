//! The I/O priority of a thread (ioprio_set(2)), which schedulers such as BFQ and mq-deadline heed.

use crate::call::done;
use std::io;

/// The class "best effort".
const BEST_EFFORT: u8 = 2;

/// Class and level as one number, as ioprio_set(2) and requests have it. A level without a class is
/// one of best effort.
#[must_use]
pub fn io_priority(class: u8, level: u8) -> u16 {
    let class = if class == 0 { BEST_EFFORT } else { class };
    u16::from(class) << 13 | u16::from(level)
}

/// Whether a priority is of the real-time class.
#[must_use]
pub fn is_real_time(priority: u16) -> bool {
    priority >> 13 == 1
}

/// Gives the calling thread an I/O priority.
///
/// # Errors
/// EPERM: the real-time class needs CAP_SYS_ADMIN or CAP_SYS_NICE.
pub fn set_io_priority(priority: u16) -> io::Result<()> {
    // IOPRIO_WHO_PROCESS, of linux/ioprio.h; 0 is the calling thread.
    let (who, thread) = (1, 0);
    // SAFETY: three numbers, and no memory.
    done(unsafe { libc::syscall(libc::SYS_ioprio_set, who, thread, i32::from(priority)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no ioprio_set(2)")]
    fn a_thread_has_the_priority_that_it_was_given() {
        let found = std::thread::spawn(|| {
            set_io_priority(io_priority(3, 0)).expect("the idle class is allowed");
            // SAFETY: two numbers, and no memory.
            unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) }
        });
        assert_eq!(found.join().expect("the thread"), 3 << 13);
    }

    #[test]
    fn a_level_alone_is_one_of_best_effort() {
        assert_eq!(io_priority(0, 3), 0x4003);
        assert_eq!(io_priority(1, 0), 0x2000);
        assert!(is_real_time(0x2007) && !is_real_time(0x4007));
    }
}
