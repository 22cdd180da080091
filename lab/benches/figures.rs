//! `cargo bench -p ugeom-lab`: the figures that were to be reached, each with its interval, in
//! about 15 seconds. `ugeom lab layers` explains them and measures much more.
//!
//! `UGEOM_BENCH_SECONDS` sets the time. Started as a test it measures as little as it can.

use std::error::Error;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use ugeom_experiment::Common;
use ugeom_harness::{Control, Machine, Progress};
use ugeom_lab::layers::{self, LayersOptions};
use ugeom_report::Page;

fn main() -> Result<(), Box<dyn Error>> {
    let as_bench = std::env::args().any(|argument| argument == "--bench");
    let seconds = std::env::var("UGEOM_BENCH_SECONDS").ok();
    let seconds: Option<u64> = seconds.map(|text| text.parse()).transpose()?;
    let budget_ns = match seconds {
        _ if !as_bench => Some(1),
        Some(seconds) => Some(seconds.saturating_mul(1_000_000_000)),
        None => None,
    };
    let options = LayersOptions {
        common: Common {
            budget_ns,
            ..Common::default()
        },
        ..LayersOptions::default()
    };
    let cancelled = AtomicBool::new(false);
    let mut progress = |_: &Progress<'_>| {};
    let mut control = Control {
        progress: &mut progress,
        cancelled: &cancelled,
    };
    let document = layers::run_goals(&options, &Machine, &mut control)?;
    let report = Page::of_goals(layers::EXPERIMENT, &document.figures).to_text(100);
    std::io::stdout().write_all(report.as_bytes())?;
    Ok(())
}
