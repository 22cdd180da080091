//! How long a benchmark may take.

use std::num::ParseIntError;

/// Whether cargo started this program as a benchmark and not as a test.
pub fn is_bench() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The time that `UGEOM_BENCH_SECONDS` allows, s; none when it is not set.
pub fn bench_seconds() -> Result<Option<u64>, ParseIntError> {
    let seconds = std::env::var("UGEOM_BENCH_SECONDS").ok();
    seconds.map(|text| text.parse()).transpose()
}

/// The budget of an experiment, ns: as little as it can take when `shortest`, else what
/// `UGEOM_BENCH_SECONDS` allows, else none.
pub fn bench_budget_ns(shortest: bool) -> Result<Option<u64>, ParseIntError> {
    let allowed = bench_seconds()?.map(|seconds| seconds.saturating_mul(1_000_000_000));
    Ok(if shortest { Some(1) } else { allowed })
}
