//! Every engine against the conformance suite, while a Unix signal arrives every half millisecond
//! and interrupts whatever call is being made (EINTR).
//!
//! A test binary of its own, as the signal is that of the process.

mod common;

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::makers;
use ugeom_engine::Choice;
use ugeom_testkit::engine::conform;

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_signal: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// From now on SIGALRM arrives every 500 us, without SA_RESTART.
fn start_signals() {
    let handler: extern "C" fn(libc::c_int) = count;
    let interval = libc::timeval {
        tv_sec: 0,
        tv_usec: 500,
    };
    let timer = libc::itimerval {
        it_interval: interval,
        it_value: interval,
    };
    // SAFETY: a sigaction of zeroes is a valid one; the handler only adds to an atomic.
    let results = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as libc::sighandler_t;
        [
            libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut()),
            libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()),
        ]
    };
    assert_eq!(results, [0, 0]);
}

#[test]
#[cfg_attr(tsan, ignore = "the sanitizer keeps signals back")]
fn signals_disturb_no_engine() {
    start_signals();
    for choice in Choice::ALL {
        eprintln!("engine {choice}");
        if let Some(make) = makers(choice) {
            conform(&make);
        }
    }
    assert!(SIGNALS.load(Ordering::Relaxed) > 100);
}
