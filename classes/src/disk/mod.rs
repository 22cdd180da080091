//! `disk`: a simulated drive with known limits.
//!
//! ```text
//!            caller
//!              |  READ 512 at 0                        ^  at the modelled time
//!            disk0      start: Queue::arrive -> due ---+  resume: Queue::poll
//!              |
//!   Drive      overhead  seek   rotation  transfer
//!              |--------|------|---------|=========|        a read elsewhere: the sum
//!              |--------|
//!                  |=========|                              a read of what follows: the longer
//!              one at a time; with queue=N the drive chooses the nearest of N
//! ```
//!
//! A request finishes when a drive of these parameters would finish it: it is put among the timers
//! of its thread and moves data when it is due. [`Drive`] holds the formulas and [`Queue`] the
//! order; both know no clock. `docs/classes/disk.md` has them in full. GEOM's class of the same
//! name stands on real drives.

mod drive;
mod options;
mod start;
mod state;
#[cfg(test)]
mod tests;

pub use drive::{Drive, Parameters, Work};
pub use state::{Poll, Queue};

use crate::build::{BuildContext, BuildError};
use crate::entry::{Build, ClassEntry, Role};
use crate::spec::LayerArguments;
use options::Settings;
use start::Simulation;
use std::sync::Arc;
use ugeom_machine::mutex::Mutex;
use ugeom_machine::region::Region;
use ugeom_stack::{BioId, Cx, Fact, Geom, Next, Plan, ProviderPlan, Request};

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "disk",
    class: "DISK",
    about: "a simulated drive with known limits",
    role: Role::Bottom,
    positional: &["size"],
    options: &options::OPTIONS,
    build: Build::Bottom(build),
    taste: None,
};

/// The geom of a simulated drive.
pub struct Disk {
    parameters: Parameters,
    region: Option<Region>,
    simulation: Mutex<Simulation>,
}

impl Disk {
    /// A drive with its data in `region`, or without data: it reads as zeroes.
    pub const fn new(parameters: Parameters, region: Option<Region>) -> Self {
        Self {
            parameters,
            region,
            simulation: Mutex::new(Simulation::new(parameters)),
        }
    }
}

impl Geom for Disk {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        self.submit(request)
    }

    fn resume(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        self.look(request)
    }

    fn cancel(&self, id: BioId) {
        self.simulation.lock().cancel(id);
    }

    fn config(&self) -> Vec<Fact> {
        let Parameters {
            size_bytes: _,
            overhead_ns,
            rate_bytes_per_second,
            seek_ns,
            seek_track_ns,
            revolutions_per_minute,
            buffer_bytes,
            queue,
        } = self.parameters;
        vec![
            ("OverheadNs", overhead_ns.to_string()),
            ("RateBytesPerSecond", rate_bytes_per_second.to_string()),
            ("SeekNs", seek_ns.to_string()),
            ("SeekTrackNs", seek_track_ns.to_string()),
            ("RevolutionsPerMinute", revolutions_per_minute.to_string()),
            ("BufferBytes", buffer_bytes.to_string()),
            ("Queue", queue.to_string()),
            ("Data", u8::from(self.region.is_some()).to_string()),
        ]
    }
}

fn build(
    context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
) -> Result<Plan, BuildError> {
    let settings = Settings::read(&arguments)?;
    let parameters = settings.parameters;
    let region = settings.data.then(|| Region::new(parameters.size_bytes));
    let region = region
        .transpose()
        .map_err(BuildError::system("disk", "mapping memory"))?;
    let name = context.next_name("disk");
    let provider = ProviderPlan::new(name, parameters.size_bytes, settings.sector_bytes as u32);
    let geom = Arc::new(Disk::new(parameters, region));
    Ok(Plan::of(provider, geom))
}
