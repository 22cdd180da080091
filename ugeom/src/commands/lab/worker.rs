//! `ugeom lab worker`: one process of a measurement, started by the program itself. It reads what
//! to do from standard input and prints its document.

use super::servers::SERVERS;
use crate::{failure, output};
use anyhow::{Context, Result};
use clap::Args;
use std::io::Read;
use ugeom_harness::{Control, HarnessError, Machine};
use ugeom_machine::interrupt;

/// One process of a measurement
#[derive(Args)]
pub struct Worker {}

impl Worker {
    pub fn run(&self) -> Result<()> {
        // A worker without its parent would go on measuring in vain.
        let ends =
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        ends.context("setting the signal at the parent's end")?;
        let cancelled = interrupt::catch().context("listening for Ctrl-C")?;
        let mut request = String::new();
        std::io::stdin()
            .read_to_string(&mut request)
            .context("reading the request")?;
        let mut control = Control {
            cancelled,
            ..Control::silent()
        };
        let jobs = |options: &ugeom_ab::AbOptions| {
            let jobs = crate::commands::jobs::jobs(options, &|_| ());
            jobs.map_err(|error| HarnessError::Compare(failure::text(&error)))
        };
        let compared = ugeom_ab::worker(&request, &jobs, &Machine, &mut control)?;
        if let Some(document) = compared {
            return output::print(&document);
        }
        let document = ugeom_lab::registry::worker(&request, &SERVERS, &Machine, &mut control)?;
        output::print(&document)
    }
}
