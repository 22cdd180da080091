//! `crash`: a disk with a volatile cache, that loses, tears, misdirects and rots by a seed, and a
//! log of everything that it was written.
//!
//! ```text
//!            caller                                   home thread walks on from here
//!              |  WRITE 4096 at 8192                        ^
//!         md0.crash   with log= alone: the record           |
//!              |      goes into the log, then forward(0)    |
//!              |                                            |
//!              |  any other option: parked           thread `crash`
//!              v                                       volatile cache, faults, power
//!             md0  <------- what a FLUSH, FUA or a full cache writes -------
//! ```
//!
//! Two geoms, so that a recording costs no more than a copy of the written data: [`Recording`]
//! writes the log and passes on; [`Crashing`] has a thread that serves requests one at a time, so
//! that the n-th request has the same fate in every run. GEOM's gnop(8) fails and delays requests;
//! it has no cache.

mod faults;
mod model;
mod options;
mod recorder;
mod start;
mod state;
#[cfg(test)]
mod tests;
mod volatile;
mod writer;

pub use recorder::{LogError, Promises, Recorder};

use crate::build::{BuildContext, BuildError, provider_over};
use crate::entry::{Build, ClassEntry, Role};
use crate::spec::LayerArguments;
use options::Settings;
use state::Worker;
use std::sync::Arc;
use ugeom_format::crash_log::Header;
use ugeom_stack::{BioId, Cx, Fact, Geom, IoError, Lower, Next, Plan, ProviderView, Request};

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "crash",
    class: "CRASH",
    about: "a volatile cache, power cuts and faults by a seed, and a log of all writes",
    role: Role::Layer,
    positional: &[],
    options: &options::OPTIONS,
    build: Build::Layer(build),
    taste: None,
};

/// The geom that records requests.
pub struct Recording {
    recorder: Arc<Recorder>,
}

impl Geom for Recording {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::record(&self.recorder, request)
    }

    fn wants_done(&self) -> bool {
        true
    }

    fn done(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::recorded(&self.recorder, request)
    }

    /// A writer below is not in the log, but that was there before it.
    fn survives_spoil(&self) -> bool {
        true
    }

    fn settle(&self) -> Result<(), IoError> {
        // An error of the log reaches the writers, and is no error of the device below.
        let _ = self.recorder.write_out();
        Ok(())
    }

    fn config(&self) -> Vec<Fact> {
        vec![("Records", self.recorder.records().to_string())]
    }
}

/// The geom that crashes.
pub struct Crashing {
    settings: Settings,
    worker: Worker,
}

impl Geom for Crashing {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::park(&self.worker, request)
    }

    fn attribute(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.forward(0)
    }

    fn cancel(&self, id: BioId) {
        self.worker.cancel(id);
    }

    fn does_own_io(&self) -> bool {
        true
    }

    fn attached(&self, lower: Lower) {
        self.worker.attached(lower);
    }

    /// The last writer leaves: the volatile cache goes to the media, and a device whose
    /// power was cut is switched on again.
    fn settle(&self) -> Result<(), IoError> {
        self.worker.settle();
        Ok(())
    }

    fn survives_spoil(&self) -> bool {
        true
    }

    fn config(&self) -> Vec<Fact> {
        self.settings.config()
    }
}

/// The plan of a geom that records what the provider `below` is written, for programs that hold
/// the recorder themselves.
pub fn recording(below: &ProviderView, recorder: Arc<Recorder>) -> Plan {
    plan(below, Arc::new(Recording { recorder }))
}

fn plan(below: &ProviderView, geom: Arc<dyn Geom>) -> Plan {
    let name = format!("{}.crash", below.name);
    let provider = provider_over(name, below);
    Plan::of(provider, geom)
}

fn build(
    _context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
    below: &ProviderView,
) -> Result<Plan, BuildError> {
    let (settings, log) = Settings::read(&arguments, below)?;
    let recorder = match log {
        None => None,
        Some(path) => Some(create_log(&path, below)?),
    };
    let geom: Arc<dyn Geom> = match recorder {
        Some(recorder) if !settings.given => Arc::new(Recording { recorder }),
        recorder => {
            let worker = Worker::start(&settings, recorder);
            let worker = worker.map_err(BuildError::system("crash", "starting a thread"))?;
            Arc::new(Crashing { settings, worker })
        }
    };
    Ok(plan(below, geom))
}

fn create_log(path: &str, below: &ProviderView) -> Result<Arc<Recorder>, BuildError> {
    let header = Header {
        media_bytes: below.mediasize_bytes,
        sector_bytes: below.sectorsize_bytes,
    };
    let created = Recorder::create(&crate::path::path_of(path), header);
    let recorder = created.map_err(|error| BuildError::open(path)(error.into_io()))?;
    Ok(Arc::new(recorder))
}
