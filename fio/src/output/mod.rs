//! The results in fio's formats: text for people, JSON and terse lines for programs.

mod json;
mod lines;
mod normal;
mod number;
mod terse;
#[cfg(test)]
mod tests;

pub use json::json;
pub use lines::{progress_line, started, title};
pub use normal::normal;
pub use terse::{TERSE_VERSION, terse};

/// The version of fio whose output this is.
pub const FIO_VERSION: &str = "fio-3.33";

/// The upper ends of the latency buckets, in their unit, and the ends of the first one that lies
/// above them: fio's io_u_lat_n, io_u_lat_u and io_u_lat_m.
const BUCKET_ENDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// The shares of latencies in percent: in ns, in us, in ms (with 2000 ms, and more).
struct LatencyShares {
    ns: [f64; 10],
    us: [f64; 10],
    ms: [f64; 12],
}

/// Puts the latencies of all kinds into fio's buckets. A bucket of the histogram that lies across
/// an end counts where its middle is: less than 0.8 % away.
fn latency_shares(tally: &super::tally::Tally) -> LatencyShares {
    let mut shares = LatencyShares {
        ns: [0.0; 10],
        us: [0.0; 10],
        ms: [0.0; 12],
    };
    let mut all = 0_u64;
    for side in &tally.sides {
        all += side.clat.count();
        for bucket in side.clat.buckets() {
            let (value, count) = (bucket.middle(), bucket.count as f64);
            let place = |value: u64| BUCKET_ENDS.iter().position(|end| value < *end);
            if let Some(index) = place(value) {
                shares.ns[index] += count;
            } else if let Some(index) = place(value / 1_000) {
                shares.us[index] += count;
            } else if let Some(index) = place(value / 1_000_000) {
                shares.ms[index] += count;
            } else {
                shares.ms[if value < 2_000_000_000 { 10 } else { 11 }] += count;
            }
        }
    }
    let whole = (all.max(1)) as f64;
    let each = shares
        .ns
        .iter_mut()
        .chain(&mut shares.us)
        .chain(&mut shares.ms);
    each.for_each(|share| *share *= 100.0 / whole);
    shares
}

/// A request that begins longer after its time in the trace is late, ns: what a thread that sleeps
/// may take to wake up.
const LATE_NS: u64 = 100_000;

/// How many requests of a trace began late.
fn late(lateness: &ugeom_measure::Histogram) -> u64 {
    let late = lateness
        .buckets()
        .filter(|bucket| bucket.middle() > LATE_NS);
    late.map(|bucket| bucket.count).sum()
}

/// The shares of counts, in percent.
fn percents<const N: usize>(counts: [u64; N]) -> [f64; N] {
    let whole = counts.iter().sum::<u64>().max(1) as f64;
    counts.map(|count| 100.0 * count as f64 / whole)
}
