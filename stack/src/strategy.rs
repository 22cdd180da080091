//! From [`StackKnobs`] to the two functions of a snapshot: how a request starts, and how it goes
//! on.
//!
//! Every combination is a copy of the code of its own, made by the compiler from type parameters:
//! a stack that does not count, queue or lock has no branch for it.

use crate::devices::Referenced;
use crate::drive;
use crate::options::{Dispatch, Registry, Slicers, StackKnobs};
use crate::queue;
use crate::snapshot::Drive;
use crate::statistics::{Counts, Level, Off, Statistics, Time};
use std::marker::PhantomData;

/// A way to move bios.
pub(crate) trait Mover {
    /// How a caller's request starts.
    const ENTER: Drive;
    /// How a request goes on after it waited somewhere.
    const GO_ON: Drive;
}

/// The whole loop in the caller's thread.
struct Direct<L, const RUNS: bool>(PhantomData<L>);

impl<L: Level, const RUNS: bool> Mover for Direct<L, RUNS> {
    const ENTER: Drive = drive::begin::<L, RUNS>;
    const GO_ON: Drive = drive::drive::<L, RUNS>;
}

/// One hop a turn, in `g_down` and `g_up`.
struct Queued<L>(PhantomData<L>);

impl<L: Level> Mover for Queued<L> {
    const ENTER: Drive = queue::submit;
    const GO_ON: Drive = queue::turn::<L>;
}

/// How a snapshot moves bios.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub enter: Drive,
    pub go_on: Drive,
}

/// The settings of a stack.
#[derive(Clone, Copy)]
pub(crate) struct Strategy {
    plain: Way,
    runs: Way,
    passes: bool,
    pub sample_one_in: u32,
}

impl Strategy {
    /// The strategy that a stack was made with.
    pub(crate) fn of(options: &StackKnobs) -> Self {
        match options.statistics {
            Statistics::Off => Self::counting::<Off>(options, 0),
            Statistics::Counts => Self::counting::<Counts>(options, 0),
            Statistics::Time { one_in } => Self::counting::<Time>(options, one_in.max(1)),
        }
    }

    /// True when layers that only move requests are passed at once.
    pub(crate) fn passes(&self) -> bool {
        self.passes
    }

    /// The way of a snapshot, which has runs of layers that only move requests, or none.
    pub(crate) fn way(&self, runs: bool) -> Way {
        if runs { self.runs } else { self.plain }
    }

    fn counting<L: Level>(options: &StackKnobs, sample_one_in: u32) -> Self {
        let passes = options.dispatch == Dispatch::Direct && options.slicers == Slicers::Fused;
        let (plain, runs) = match options.dispatch {
            Dispatch::Direct => {
                let asked = Way::of::<Direct<L, false>>(options);
                match options.slicers {
                    Slicers::Fused => (asked, Way::of::<Direct<L, true>>(options)),
                    Slicers::Called => (asked, asked),
                }
            }
            // Queued dispatch gives each layer a separate turn.
            Dispatch::Queued { .. } => {
                let queued = Way::of::<Queued<L>>(options);
                (queued, queued)
            }
        };
        Self {
            plain,
            runs,
            passes,
            sample_one_in,
        }
    }
}

impl Way {
    fn of<M: Mover>(options: &StackKnobs) -> Self {
        let (enter, go_on) = match options.registry {
            Registry::LockFree => (M::ENTER, M::GO_ON),
            Registry::Locked => (Referenced::<M>::ENTER, Referenced::<M>::GO_ON),
        };
        Self { enter, go_on }
    }
}
