//! How a stack works: the user's choices. Each choice is a type or a function that is put into the
//! snapshot or the channel when that is made (`strategy.rs`, `bio/pool.rs`).

use crate::statistics::Statistics;

/// The threads that move bios from layer to layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    /// The caller's thread, all the way down and back.
    #[default]
    Direct,
    /// GEOM's `g_down` and `g_up` threads, one hop at a time.
    Queued {
        /// How long an idle thread spins before it parks, ns.
        spin_ns: u64,
    },
}

/// How a request finds its device, and keeps it meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registry {
    /// In the channel's own snapshot, which the requests in flight keep alive: nothing is shared.
    #[default]
    LockFree,
    /// Beside that, each request takes a reference on its device when it enters and gives it back
    /// when it has completed, both under one lock of the whole stack, as FreeBSD's `dev_refthread`
    /// does under `devmtx`. There to be measured.
    Locked,
}

/// Where bios come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pools {
    /// Each channel has a pool of its own, which no other thread touches.
    #[default]
    PerCore,
    /// All channels of the stack take from one pool under one lock, as all of FreeBSD's physical
    /// buffers came from one list under `pbuf_mtx`. There to be measured.
    Shared,
}

/// The treatment of layers that only move requests to another offset ([`crate::Geom::shift`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slicers {
    /// The stack makes the step of all that follow each other in one.
    #[default]
    Fused,
    /// Each is asked about each request, as every other layer is. There to be measured: it is what
    /// a layer costs.
    Called,
}

/// How a stack works: all that a user can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackKnobs {
    /// Let classes taste new providers.
    pub taste: bool,
    /// The threads that move bios from layer to layer.
    pub dispatch: Dispatch,
    /// Whether requests are counted, and whether some of them are timed.
    pub statistics: Statistics,
    /// How a request finds its device.
    pub registry: Registry,
    /// Where bios come from.
    pub pools: Pools,
    /// The treatment of layers that only move requests.
    pub slicers: Slicers,
}

impl Default for StackKnobs {
    fn default() -> Self {
        Self {
            taste: true,
            dispatch: Dispatch::default(),
            statistics: Statistics::default(),
            registry: Registry::default(),
            pools: Pools::default(),
            slicers: Slicers::default(),
        }
    }
}
