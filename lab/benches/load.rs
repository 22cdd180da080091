//! `cargo bench -p ugeom-lab --bench load`: the load generator beside fio's null engine, in the
//! same rounds, in about 20 seconds.
//!
//! `UGEOM_BENCH_SECONDS` sets the time: as many rounds as fit, up to 50. Started as a test it
//! measures as little as it can, and does not start fio.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use ugeom_harness::{Control, Machine};
use ugeom_lab::load::{LoadOptions, goals_page, run_goals};
use ugeom_testkit::{bench_budget_ns, is_bench};

fn main() -> Result<(), Box<dyn Error>> {
    let as_bench = is_bench();
    let budget_ns = bench_budget_ns(!as_bench)?;
    let options = LoadOptions {
        budget_ns,
        seed: None,
        fio: as_bench.then(fio).flatten(),
    };
    let mut control = Control::silent();
    let document = run_goals(&options, &Machine, &mut control)?;
    let report = goals_page(&document).to_text(100);
    std::io::stdout().write_all(report.as_bytes())?;
    Ok(())
}

/// Where fio is, if it is installed.
fn fio() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).map(|folder| folder.join("fio"));
    places.into_iter().find(|place| place.is_file())
}
