//! `delayed`: completes every request later, out of order, and on another thread.
//!
//! ```text
//!            caller                 home thread walks on from here
//!              |  READ                   ^
//!         md0.delayed                    | Bio::complete, or Bio::resume when it failed
//!              |                         |
//!              |  forward(0)        thread `delayed`: lets go all that are held, shuffled
//!              v                         ^
//!             md0 ---- done() ---- park -+
//! ```
//!
//! It is for tests of the layers above: code that relies on the order of completions, or on the
//! thread that they come from, fails on it. The data has been moved when a request is held, so a
//! completed write can be read at once. The order is chosen by a generator with a seed; which
//! requests it has to choose from depends on the clock. GEOM has no counterpart.

mod start;
mod state;
#[cfg(test)]
mod tests;

use crate::build::{BuildContext, BuildError, provider_over};
use crate::entry::{Build, ClassEntry, Role};
use crate::set_field;
use crate::spec::OptionDefault::Value;
use crate::spec::{LayerArguments, OptionTable, option, values};
use state::{HeldRequests, Order};
use std::sync::Arc;
use ugeom_measure::units;
use ugeom_stack::{BioId, Cx, Fact, Geom, Next, Plan, ProviderView, Request};

pub(crate) const ENTRY: ClassEntry = ClassEntry {
    name: "delayed",
    class: "DELAYED",
    about: "requests complete later, out of order, on another thread",
    role: Role::Layer,
    positional: &[],
    options: &OPTIONS,
    build: Build::Layer(build),
    taste: None,
};

/// The most that can be asked for.
const DEPTH_MAX: u64 = 1 << 20;
#[rustfmt::skip]
const OPTIONS: OptionTable<Order> = OptionTable(&[
    option("seed", "N", Value("0"), "seed of the random order",
        set_field!(seed = units::whole_number)),
    option("depth", "N", Value("8"), "number of requests to hold before all are released",
        set_field!(it, text => depth = values::number_in(1..=DEPTH_MAX, text)? as usize)),
    option("delay", "TIME", Value("100us"),
        "time that a request waits for others before all are released",
        set_field!(delay_ns = values::duration_ns)),
]);

/// The geom: the order in which held requests go on, and those that are held.
pub struct Delayed {
    order: Order,
    held: HeldRequests,
}

impl Delayed {
    const fn new(order: Order, held: HeldRequests) -> Self {
        Self { order, held }
    }
}

impl Geom for Delayed {
    fn position(&self, _port: u16) -> Option<u64> {
        Some(0)
    }

    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::down(request)
    }

    fn wants_done(&self) -> bool {
        true
    }

    fn done(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        start::up(&self.held, request)
    }

    fn cancel(&self, id: BioId) {
        self.held.cancel(id);
    }

    /// It keeps no data, so a writer below does not make it wrong.
    fn survives_spoil(&self) -> bool {
        true
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        Some(vec![(mediasize_bytes, None)])
    }

    fn config(&self) -> Vec<Fact> {
        vec![
            ("Seed", self.order.seed.to_string()),
            ("Depth", self.order.depth.to_string()),
            ("DelayNs", self.order.delay_ns.to_string()),
        ]
    }
}

fn build(
    _context: &mut BuildContext<'_>,
    arguments: LayerArguments<'_>,
    below: &ProviderView,
) -> Result<Plan, BuildError> {
    let order = arguments.read(&OPTIONS, Order::default())?;
    let held =
        HeldRequests::start(order).map_err(BuildError::system("delayed", "starting a thread"))?;
    let name = format!("{}.delayed", below.name);
    let provider = provider_over(name, below);
    Ok(Plan::of(provider, Arc::new(Delayed::new(order, held))))
}
