//! The data path of `nop`: [`Pass`] translates, [`Faulty`] fails and delays as well.

use super::Window;
use super::state::{Decider, Decision, Faults};
use ugeom_stack::{Cx, Geom, Next, Request};

/// Moves requests by an offset and forwards them.
pub struct Pass {
    offset_bytes: u64,
    hook: bool,
    window: Window,
}

impl Pass {
    /// Shows a part of the provider below. With `hook` it also asks to see requests come back,
    /// and does nothing then: what a completion hook costs.
    #[must_use]
    pub const fn new(window: Window, hook: bool) -> Self {
        Self {
            offset_bytes: window.offset_bytes,
            hook,
            window,
        }
    }
}

impl Geom for Pass {
    #[inline]
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        request.set_offset(request.offset() + self.offset_bytes);
        request.forward(0)
    }

    fn wants_done(&self) -> bool {
        self.hook
    }

    /// It keeps nothing of what it passes on, so a writer below does not make it wrong. gnop has
    /// no `spoiled` method either.
    fn survives_spoil(&self) -> bool {
        true
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        self.window.resized(mediasize_bytes)
    }

    fn config(&self) -> Vec<(String, String)> {
        vec![("Offset".into(), self.window.offset_bytes.to_string())]
    }
}

/// Decides about each read and write whether it fails, is delayed, or passes.
pub struct Faulty {
    pass: Pass,
    decider: Decider,
}

impl Faulty {
    /// As [`Pass::new`], with faults.
    #[must_use]
    pub const fn new(window: Window, hook: bool, faults: Faults) -> Self {
        Self {
            pass: Pass::new(window, hook),
            decider: Decider::new(faults),
        }
    }
}

impl Geom for Faulty {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        match self.decider.decide(request.command()) {
            Decision::Pass => self.pass.start(request, cx),
            Decision::Fail(errno) => request.fail(errno, "nop was told to fail it"),
            Decision::Delay(delay_ns) => request.delay(delay_ns),
        }
    }

    /// The delay is over.
    fn resume(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        self.pass.start(request, cx)
    }

    fn wants_done(&self) -> bool {
        self.pass.wants_done()
    }

    fn survives_spoil(&self) -> bool {
        self.pass.survives_spoil()
    }

    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        self.pass.resize(mediasize_bytes)
    }

    fn config(&self) -> Vec<(String, String)> {
        let mut config = self.pass.config();
        config.extend(self.decider.config());
        config
    }
}
