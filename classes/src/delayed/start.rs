//! The data path of `delayed`: down at once, up through the thread.

use super::state::{Held, Order};
use ugeom_stack::{BioId, Cx, Geom, Next, Request};

/// The geom.
pub struct Delayed {
    order: Order,
    held: Held,
}

impl Delayed {
    pub(super) const fn new(order: Order, held: Held) -> Self {
        Self { order, held }
    }
}

impl Geom for Delayed {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.forward(0)
    }

    fn wants_done(&self) -> bool {
        true
    }

    fn done(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        let result = request.result();
        let (bio, next) = request.park();
        self.held.add(bio, result.ok());
        next
    }

    // `resume` is the standard one: a request that failed goes on as the layer below left it,
    // with that layer's explanation.

    fn cancel(&self, id: BioId) {
        self.held.cancel(id);
    }

    /// It keeps nothing of what passes, so a writer below does not make it wrong.
    fn survives_spoil(&self) -> bool {
        true
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        Some(vec![(mediasize_bytes, None)])
    }

    fn config(&self) -> Vec<(String, String)> {
        vec![
            ("Seed".into(), self.order.seed.to_string()),
            ("Depth".into(), self.order.depth.to_string()),
            ("DelayNs".into(), self.order.delay_ns.to_string()),
        ]
    }
}
