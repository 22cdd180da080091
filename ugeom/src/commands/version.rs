//! `ugeom version`: the facts for a bug report.

use crate::output;
use anyhow::Result;
use clap::Args;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  ugeom version           # three lines for a bug report
  ugeom version --json";

/// Print the version of ugeom, of the kernel, and the processor
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Version {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    /// Architecture and C library of this binary.
    build: String,
    kernel: String,
    processor: String,
}

impl Version {
    pub fn run(&self) -> Result<()> {
        let report = Report::of_this_machine();
        if self.json {
            return output::print_json(&report);
        }
        output::print(&format!(
            "ugeom {} ({})\nkernel {}\nprocessor {}\n",
            report.version, report.build, report.kernel, report.processor
        ))
    }
}

impl Report {
    fn of_this_machine() -> Self {
        let libc = match cfg!(target_env = "musl") {
            true => "musl, static",
            false => "glibc",
        };
        let host = ugeom_harness::host::Host::now();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            build: format!("{}, {libc}", std::env::consts::ARCH),
            kernel: host.kernel,
            processor: host.cpu_model,
        }
    }
}
