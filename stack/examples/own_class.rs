//! A class of one's own: memory that reads as the letter `u`, and a layer that shows its second
//! half.
//!
//! `cargo run -p ugeom-stack --example own_class`

use std::sync::Arc;
use ugeom_stack::{
    Command, Cx, Delta, Errno, Geom, Next, Plan, ProviderPlan, Request, Stack, StackError,
    StackKnobs,
};

/// The bottom: has no consumer, answers by itself.
struct Letters;

impl Geom for Letters {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        if request.command() != Command::Read {
            return request.done(Err(Errno::OPNOTSUPP));
        }
        request.fill(|_, piece| piece.fill(b'u'));
        request.done_in_full()
    }
}

/// The layer: translates the offset and forwards to consumer 0. It sees no data.
struct Half {
    base_bytes: u64,
}

impl Geom for Half {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let offset = request.offset() + self.base_bytes;
        request.set_offset(offset);
        request.forward(0)
    }
}

fn plan(name: &str, mediasize_bytes: u64, geom: Arc<dyn Geom>) -> Plan {
    let provider = ProviderPlan::new(name, mediasize_bytes, 512);
    Plan::of(provider, geom)
}

fn main() -> Result<(), StackError> {
    let stack = Stack::new(StackKnobs::default(), Vec::new())?;
    let bottom = stack.create("LETTERS", plan("l0", 1 << 20, Arc::new(Letters)), &[])?;
    let geom = Arc::new(Half {
        base_bytes: 1 << 19,
    });
    let top = stack.create("HALF", plan("l0.half", 1 << 19, geom), &bottom)?;

    let opened = stack.open(top[0], Delta::READ)?;
    let mut sector = [0; 512];
    match stack.channel(1)?.read(&opened, 0, &mut sector) {
        Ok(bytes) => println!("{bytes} bytes of {:?}", char::from(sector[0])),
        Err(error) => println!("reading failed: {error}"),
    }
    Ok(())
}
