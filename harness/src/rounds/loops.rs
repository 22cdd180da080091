//! The reference loop: work in registers alone, done right before and right after every run, on
//! the cores of the run, on all of them at once. Its time is that of these cores and of nothing
//! else, so it shows the phases in which one is slower (another thread on the same core, a lower
//! clock, time that the hypervisor took), which neither CPU time nor steal time show.
//!
//! The loop fills the core: a single chain of dependent steps leaves most of it idle and takes as
//! long where two hardware threads share the core, while code that fills it takes twice as long.

use crate::crew;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use ugeom_machine::{clock, cpu};

/// Steps of the loop: about 60 us, long beside an interrupt and short beside a run.
const STEPS: u32 = if cfg!(debug_assertions) { 500 } else { 20_000 };

/// Chains side by side, as many as fit into registers.
pub const CHAINS: usize = 6;

/// Whether cores were once so busy that the loop on several of them took longer than this, ns. Then
/// it is left out from there on: it would take most of the time of the measurement.
static CROWDED: AtomicBool = AtomicBool::new(false);
/// Waiting longer than this for threads on the cores is a sign of a busy machine, ns.
pub const CROWDED_NS: u64 = 5_000_000;

/// Runs the loop once on each of these cores at the same time, on the current one where none is
/// named; returns the longest time, ns. None on several cores of a machine that is too busy.
pub(super) fn now_ns(cores: &[usize]) -> Option<u64> {
    match cores {
        [] => Some(turn_ns()),
        [_] => Some(together_ns(cores)),
        _ if CROWDED.load(Ordering::Relaxed) => None,
        _ => {
            let began_ns = clock::now_ns();
            let longest_ns = together_ns(cores);
            let whole_ns = clock::now_ns().saturating_sub(began_ns);
            CROWDED.fetch_or(whole_ns > CROWDED_NS, Ordering::Relaxed);
            Some(longest_ns)
        }
    }
}

fn together_ns(cores: &[usize]) -> u64 {
    let arrived = AtomicUsize::new(0);
    let on = |core: usize| {
        let before = cpu::pin(&[core]).ok();
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < cores.len() {
            std::hint::spin_loop();
        }
        let ns = turn_ns();
        // A thread that cannot be put back stays where it is: no figure is wrong for that.
        let _ = before.map(|before| before.apply());
        ns
    };
    let on = &on;
    std::thread::scope(|scope| {
        // Where threads cannot be started, the case itself reports it.
        let Ok(others) = crew::start(scope, cores[1..].iter().copied(), on) else {
            return turn_ns();
        };
        let own_ns = on(cores[0]);
        let others = others.join().into_iter().flatten();
        others.fold(own_ns, u64::max)
    })
}

/// One step of all chains, which fills a core.
#[inline(always)]
pub fn fill_core(states: &mut [u64; CHAINS]) {
    for state in states {
        *state = state.rotate_left(13).wrapping_add(0x7f4a_7c15);
    }
}

fn turn_ns() -> u64 {
    let start_ns = clock::now_ns();
    let mut states: [u64; CHAINS] = black_box(std::array::from_fn(|chain| chain as u64));
    for _ in 0..STEPS {
        fill_core(&mut states);
    }
    black_box(states);
    clock::now_ns().saturating_sub(start_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_takes_time_on_every_core_and_leaves_threads_where_they_were() {
        let before = cpu::Affinity::current().unwrap().cores();
        let takes = |cores: &[usize]| now_ns(cores).is_none_or(|ns| ns > 100);
        assert!(takes(&[]) && takes(&before[..1]) && takes(&before));
        assert_eq!(cpu::Affinity::current().unwrap().cores(), before);
    }
}
