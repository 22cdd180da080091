//! GEOM itself: class, geom, provider, consumer, bio; topology, access, dispatch, statistics.
//!
//! This crate knows no class, no file and no engine. Read [`class`] for what a class is, [`bio`]
//! for a request, `drive.rs` for the loop that moves it, [`stack`] for what users and classes can
//! change, [`channel`] for how a thread uses it. `ARCHITECTURE.md` tells why it is so.
//!
//! A class of one's own is one type with one method. This layer moves requests by 4 KiB;
//! `examples/own_class.rs` is a whole program:
//!
//! ```
//! use std::sync::Arc;
//! use ugeom_stack::{Cx, Geom, Next, Plan, ProviderId, ProviderPlan, Request, Stack, StackError};
//!
//! struct Shifted;
//!
//! impl Geom for Shifted {
//!     fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
//!         let offset = request.offset() + 4096;
//!         request.set_offset(offset);
//!         request.forward(0)
//!     }
//! }
//!
//! /// Puts the layer on a provider of 1 MiB, and returns the provider of the layer.
//! fn shifted(stack: &Stack, below: ProviderId) -> Result<ProviderId, StackError> {
//!     let provider = ProviderPlan::new("shifted", (1 << 20) - 4096, 512);
//!     let plan = Plan::of(provider, Arc::new(Shifted));
//!     Ok(stack.create("SHIFTED", plan, &[below])?[0])
//! }
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

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
pub use class::{AccessChange, Class, Fact, Geom, Plan, ProviderPlan, TasteError, ThreadState};
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
