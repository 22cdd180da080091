//! GEOM itself: class, geom, provider, consumer, bio; topology, access, dispatch, statistics.
//!
//! This crate knows no class, no file and no engine. Read [`class`] for what a class is, [`bio`]
//! for a request, `drive.rs` for the loop that moves it, [`stack`] for what users and classes can
//! change, [`channel`] for how a thread uses it. `ARCHITECTURE.md` tells why it is so.

mod access;
pub mod bio;
pub mod channel;
pub mod class;
pub mod conf;
mod cx;
mod devices;
mod drive;
pub mod error;
mod generations;
mod home;
mod look;
mod losses;
mod lower;
mod opened;
mod options;
mod park;
mod queue;
mod shift;
mod snapshot;
pub mod stack;
mod statistics;
mod strategy;
pub mod taste;
mod timers;
pub mod topology;
pub mod unaligned;

pub use access::{Counts, Delta};
pub use bio::MAX_DEPTH;
pub use bio::{
    AttributeValue, Bio, BioId, Carrier, Command, Draft, Extent, ExtentKind, FanOut, Finished,
    Flags, Next, Request,
};
pub use channel::Channel;
pub use class::{AccessChange, Class, Geom, Plan, ProviderPlan, TasteError, ThreadState};
pub use cx::{Completions, Cx, LocalKey};
pub use error::{Errno, IoError, StackError};
pub use look::{ConsumerFigures, Look};
pub use losses::{Losses, LostAtTheEnd, Unsaved};
pub use lower::Lower;
pub use opened::Opened;
pub use options::{Dispatch, Pools, Registry, Slicers, StackKnobs};
pub use stack::Stack;
pub use statistics::{Statistics, TimeTotals, Totals};
pub use taste::Taster;
pub use topology::{ConsumerId, ConsumerView, GeomId, GeomView, ProviderId, ProviderView, Tree};
pub use unaligned::{Claim, RangeLock, Share, Unaligned};
