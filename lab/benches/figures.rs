//! `cargo bench -p ugeom-lab`: the figures that were to be reached, each with its interval, in
//! about 15 seconds. `ugeom lab layers` explains them and measures much more.
//!
//! `UGEOM_BENCH_SECONDS` sets the time. Started as a test it measures as little as it can.

use std::error::Error;
use std::io::Write;
use ugeom_experiment::Common;
use ugeom_harness::{Control, Machine};
use ugeom_lab::layers::{self, LayersOptions};
use ugeom_report::Page;
use ugeom_testkit::{bench_budget_ns, is_bench};

fn main() -> Result<(), Box<dyn Error>> {
    let budget_ns = bench_budget_ns(!is_bench())?;
    let options = LayersOptions {
        common: Common {
            budget_ns,
            ..Common::default()
        },
        ..LayersOptions::default()
    };
    let mut control = Control::silent();
    let document = layers::run_goals(&options, &Machine, &mut control)?;
    let report = Page::of_goals(layers::EXPERIMENT, &document.figures).to_text(100);
    std::io::stdout().write_all(report.as_bytes())?;
    Ok(())
}
