//! Time stamps that cost a few nanoseconds, and the nanoseconds that they stand for.
//!
//! On x86_64 with an invariant time stamp counter (Intel SDM volume 3, 17.17.1; CPUID
//! 8000_0007H, EDX bit 8) a tick is one count of it; elsewhere a tick is a nanosecond of
//! CLOCK_MONOTONIC. The scale is calibrated once, against CLOCK_MONOTONIC.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long the calibration watches both clocks. Each pairing is off by some 50 ns, so that 20 ms
/// put the scale within a few parts per million.
const CALIBRATION_NS: u64 = 20_000_000;

/// Nanoseconds per tick, and ticks per nanosecond, both times 2^32; 0 while not calibrated.
static NS_PER_TICK: AtomicU64 = AtomicU64::new(0);
static TICKS_PER_NS: AtomicU64 = AtomicU64::new(0);

const SHIFT: u32 = 32;

/// The time in ticks, counted from an unknown origin. Not ordered with the instructions around
/// it: the processor may move it by some tens of instructions.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if tsc::usable() {
        return tsc::read();
    }
    now_ns()
}

/// The duration of `ticks` in nanoseconds. The first use calibrates, which takes 20 ms.
#[inline]
pub fn ticks_to_ns(ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(loaded(&NS_PER_TICK))) >> SHIFT) as u64
}

/// The number of ticks in `ns` nanoseconds, `u64::MAX` where there are more: a limit that is never
/// reached stays one. The first use calibrates, which takes 20 ms.
#[inline]
pub fn ns_to_ticks(ns: u64) -> u64 {
    let ticks = (u128::from(ns) * u128::from(loaded(&TICKS_PER_NS))) >> SHIFT;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// CLOCK_MONOTONIC in nanoseconds: exact and comparable between processes, at the price of
/// two `ticks`.
#[inline]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of ours. The call cannot fail: the clock exists on
    // every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether a tick is a count of the processor's time stamp counter, for the header of a report.
pub fn ticks_are_tsc() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return tsc::usable();
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

#[inline]
fn loaded(factor: &AtomicU64) -> u64 {
    match factor.load(Ordering::Relaxed) {
        0 => calibrated(factor),
        known => known,
    }
}

#[cold]
fn calibrated(factor: &AtomicU64) -> u64 {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let one = 1u64 << SHIFT;
        let (ns_per_tick, ticks_per_ns) = if ticks_are_tsc() {
            measured_scale()
        } else {
            (one, one)
        };
        NS_PER_TICK.store(ns_per_tick, Ordering::Relaxed);
        TICKS_PER_NS.store(ticks_per_ns, Ordering::Relaxed);
    });
    factor.load(Ordering::Relaxed)
}

/// A time as ctime(3) writes it, in the zone of the system: `Sun Nov 22 06:04:21 2026`.
pub fn local_time_text(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    // time_t of every 64-bit Linux; the libc crate deprecates its name on musl.
    let time = i64::try_from(unix_s).unwrap_or(i64::MAX);
    // SAFETY: a tm of zeroes is a valid one.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values of ours.
    if unsafe { libc::localtime_r(&raw const time, &raw mut parts) }.is_null() {
        return format!("{unix_s} s since 1970");
    }
    let named = |names: &[&'static str], index: libc::c_int| {
        let index = usize::try_from(index).unwrap_or(0);
        names.get(index).copied().unwrap_or("")
    };
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        named(&DAYS, parts.tm_wday),
        named(&MONTHS, parts.tm_mon),
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
        1900 + i64::from(parts.tm_year)
    )
}

fn measured_scale() -> (u64, u64) {
    let (first_ticks, first_ns) = pairing();
    while now_ns() - first_ns < CALIBRATION_NS {
        std::hint::spin_loop();
    }
    let (last_ticks, last_ns) = pairing();
    let elapsed_ticks = u128::from((last_ticks - first_ticks).max(1));
    let elapsed_ns = u128::from((last_ns - first_ns).max(1));
    let ns_per_tick = ((elapsed_ns << SHIFT) / elapsed_ticks) as u64;
    let ticks_per_ns = ((elapsed_ticks << SHIFT) / elapsed_ns) as u64;
    (ns_per_tick.max(1), ticks_per_ns.max(1))
}

/// Both clocks at one moment: the narrowest of several attempts, so that an interruption between
/// the two readings does not count.
fn pairing() -> (u64, u64) {
    let attempt = |_| {
        let before = ticks();
        let ns = now_ns();
        let after = ticks();
        (
            after.wrapping_sub(before),
            before.wrapping_add(after.wrapping_sub(before) / 2),
            ns,
        )
    };
    let (_, ticks, ns) = (0..32)
        .map(attempt)
        .min_by_key(|(width, ..)| *width)
        .unwrap_or_default();
    (ticks, ns)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod tsc {
    use std::arch::x86_64::{__cpuid, _rdtsc};
    use std::sync::atomic::{AtomicU8, Ordering};

    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;

    #[inline]
    pub fn usable() -> bool {
        match STATE.load(Ordering::Relaxed) {
            UNKNOWN => probe(),
            state => state == YES,
        }
    }

    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86_64 processor has the instruction; a kernel that forbids it to user
        // space (prctl PR_SET_TSC) is one that the process would have asked for itself.
        unsafe { _rdtsc() }
    }

    #[cold]
    fn probe() -> bool {
        const EXTENDED: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        let invariant = __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0;
        STATE.store(if invariant { YES } else { NO }, Ordering::Relaxed);
        invariant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_do_not_run_backwards() {
        let mut last = ticks();
        for _ in 0..1000 {
            let now = ticks();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn ticks_agree_with_the_system_clock() {
        use std::time::{Duration, Instant};
        ticks_to_ns(1);
        let (start, start_ticks) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(50));
        let (end_ticks, elapsed) = (ticks(), start.elapsed());
        let measured_ns = ticks_to_ns(end_ticks - start_ticks) as f64;
        // The ticks were read inside the interval, but the thread may be descheduled in between.
        assert!(measured_ns <= elapsed.as_nanos() as f64 * 1.001);
        assert!(
            measured_ns >= 50e6 * 0.999,
            "{measured_ns} ns for a sleep of 50 ms"
        );
    }

    #[test]
    fn conversion_there_and_back_loses_at_most_a_few_parts_per_million() {
        for ns in [1_000u64, 1_000_000, 1_000_000_000, 86_400_000_000_000] {
            let back = ticks_to_ns(ns_to_ticks(ns));
            assert!(
                back.abs_diff(ns) <= 2 + ns / 1_000_000,
                "{ns} ns came back as {back}"
            );
        }
    }

    #[test]
    fn a_longer_time_has_no_fewer_ticks() {
        for shift in 1..16 {
            let (longer, shorter) = (u64::MAX >> (shift - 1), u64::MAX >> shift);
            assert!(
                ns_to_ticks(longer) >= ns_to_ticks(shorter),
                "{longer}, {shorter}"
            );
        }
    }

    #[test]
    fn the_monotonic_clock_advances() {
        let start = now_ns();
        while now_ns() == start {}
        assert!(now_ns() > start);
    }
}
