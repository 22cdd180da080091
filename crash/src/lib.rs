//! Every crash of a disk, tried: a run is recorded once, and each state that a power cut could have
//! left is built from the log and checked.
//!
//! ```text
//!   Recording    a disk whose writes and barriers go into a log          record.rs
//!   Tracker      volatile changes after each record                      tracker.rs
//!   Plan         which states to try: cuts, subsets, tears, by a seed    plan.rs
//!   CrashState   one of them, as a text that names it exactly            state.rs
//!   Lane         builds a state: durable image + copy-on-write blocks    lane.rs, disk.rs
//!   Check        the user's question to a state: a closure or a command  check.rs, command.rs
//!   judge        durability, atomicity and order as promised             promise.rs
//!   campaign     all of it, in parallel; shrink the smallest failure     campaign.rs, campaign/
//!   CrashResult  the findings, saved, and their page                     report.rs
//! ```
//!
//! ```
//! use ugeom_crash::{CampaignSettings, Disk, Recording, answer, campaign};
//!
//! let folder = tempfile::tempdir()?;
//! let log = folder.path().join("log");
//! let recording = Recording::start(&log, 1 << 20)?;
//! let disk = recording.disk();
//! recording.begin();
//! disk.write(0, &[7; 512])?;
//! disk.flush()?;
//! recording.promise("seven");
//! recording.finish()?;
//!
//! let seven = |disk: &Disk| {
//!     let mut sector = [0; 512];
//!     disk.read(0, &mut sector).map_err(|error| error.to_string())?;
//!     Ok(if sector == [7; 512] { vec!["seven".to_owned()] } else { Vec::new() })
//! };
//! let outcome = campaign(&log, &CampaignSettings::default(), &answer(seven))?;
//! assert_eq!(outcome.failed, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod campaign;
mod check;
pub mod command;
mod disk;
mod error;
mod lane;
mod log;
mod plan;
mod promise;
mod record;
pub mod report;
mod state;
mod tracker;

pub use campaign::{
    CampaignSettings, FailedState, Fate, Outcome, Replayed, Smallest, TimelineRecord, campaign,
    replay,
};
pub use check::{Check, answer};
pub use disk::Disk;
pub use error::CrashError;
pub use plan::Points;
pub use promise::{Judgement, Verdict};
pub use record::Recording;
pub use state::{CrashState, NamedState, Tear};
