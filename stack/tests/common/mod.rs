//! Small geoms for the tests of the stack: a memory, a slicer, layers that watch, wait, or fail.
#![allow(dead_code, reason = "each test binary uses some of them")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ugeom_stack::{
    AccessChange, Bio, BioId, Channel, Command, Cx, Delta, Errno, Geom, Next, Opened, Plan,
    ProviderId, ProviderPlan, Request, Stack, StackKnobs,
};

/// A plan with one provider.
pub fn plan(name: &str, mediasize_bytes: u64, geom: Arc<dyn Geom>) -> Plan {
    let provider = ProviderPlan::new(name, mediasize_bytes, 512);
    Plan::of(provider, geom)
}

/// A stack without classes.
pub fn stack(options: StackKnobs) -> Stack {
    Stack::new(options, Vec::new()).expect("a stack")
}

/// A provider that is open, and a channel for so many requests in flight.
pub fn user(
    stack: &Stack,
    provider: ProviderId,
    delta: Delta,
    requests: usize,
) -> (Opened, Channel) {
    let opened = stack.open(provider, delta).expect("open");
    (opened, stack.channel(requests).expect("a channel"))
}

/// Bytes of a provider, read by a user of its own.
pub fn bytes_of(stack: &Stack, provider: ProviderId, offset: u64, length: usize) -> Vec<u8> {
    let (opened, mut channel) = user(stack, provider, Delta::READ, 1);
    let mut bytes = vec![0; length];
    channel.read(&opened, offset, &mut bytes).expect("read");
    bytes
}

pub struct Memory(pub Mutex<Vec<u8>>);

impl Memory {
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![0; bytes])))
    }
}

impl Geom for Memory {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let mut memory = self.0.lock().expect("memory");
        let start = request.offset() as usize;
        match request.command() {
            Command::Read => request.fill(|at, piece| {
                let from = start + at as usize;
                piece.copy_from_slice(&memory[from..from + piece.len()]);
            }),
            Command::Write => request.each(|at, piece| {
                let to = start + at as usize;
                memory[to..to + piece.len()].copy_from_slice(piece);
            }),
            Command::Zero | Command::Delete => {
                memory[start..start + request.length() as usize].fill(0);
            }
            Command::Flush => {}
            Command::GetAttr | Command::Extents => {
                return request.done(Err(Errno::OPNOTSUPP));
            }
        }
        request.done_in_full()
    }
}

/// A geom that completes requests and touches no data.
pub struct Nothing;

impl Geom for Nothing {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.done_in_full()
    }
}

/// Moves requests by `base` bytes.
pub struct Slicer {
    pub base: u64,
    pub hook: bool,
    pub seen: AtomicU64,
}

impl Slicer {
    pub fn new(base: u64) -> Arc<Self> {
        Arc::new(Self {
            base,
            hook: false,
            seen: AtomicU64::new(0),
        })
    }

    pub fn hooked(base: u64) -> Arc<Self> {
        Arc::new(Self {
            base,
            hook: true,
            seen: AtomicU64::new(0),
        })
    }
}

impl Geom for Slicer {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let offset = request.offset() + self.base;
        request.set_offset(offset);
        request.forward(0)
    }

    fn wants_done(&self) -> bool {
        self.hook
    }

    fn done(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        // One writer at a time in these tests.
        self.seen
            .store(self.seen.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        request.finish()
    }

    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        Ok(change.exclusive_while_open())
    }
}

/// Keeps every bio until the test lets it go.
#[derive(Default)]
pub struct Parker {
    pub held: Mutex<Vec<Bio>>,
}

impl Geom for Parker {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        let (bio, next) = request.park();
        self.held.lock().expect("held").push(bio);
        next
    }

    fn cancel(&self, id: BioId) {
        let mut held = self.held.lock().expect("held");
        if let Some(at) = held.iter().position(|bio| bio.id() == id) {
            held.swap_remove(at).complete(Err(Errno::CANCELED));
        }
    }
}

/// A pile of slicers on `bottom`, each one sector in; returns the top provider.
pub fn pile(stack: &Stack, bottom: ProviderId, size: u64, layers: usize, hook: bool) -> ProviderId {
    let mut top = bottom;
    for layer in 0..layers {
        let slicer = if hook {
            Slicer::hooked(0)
        } else {
            Slicer::new(0)
        };
        let plan = plan(&format!("layer{bottom:?}{layer}{hook}"), size, slicer);
        top = stack.create("SLICE", plan, &[top]).expect("a layer")[0];
    }
    top
}

/// A stack of each kind, with its options.
pub fn all_stacks() -> impl Iterator<Item = (StackKnobs, Stack)> {
    let all = all_options().into_iter();
    all.map(|options| (options, stack(options)))
}

/// Every kind of dispatch with every level of statistics, and each with locks where there need be
/// none.
pub fn all_options() -> Vec<StackKnobs> {
    use ugeom_stack::{Dispatch, Pools, Registry, Statistics};
    let dispatches = [
        Dispatch::Direct,
        Dispatch::Queued { spin_ns: 0 },
        Dispatch::Queued { spin_ns: 20_000 },
    ];
    let levels = [
        Statistics::Off,
        Statistics::Counts,
        Statistics::Time { one_in: 1 },
    ];
    let pairs = dispatches
        .iter()
        .flat_map(|dispatch| levels.map(|level| (*dispatch, level)));
    // Miri is some thousand times slower: only the first and the last.
    let step = if cfg!(miri) { 8 } else { 1 };
    let mut all: Vec<StackKnobs> = pairs
        .step_by(step)
        .map(|(dispatch, statistics)| StackKnobs {
            dispatch,
            statistics,
            ..StackKnobs::default()
        })
        .collect();
    let locked = [
        (Dispatch::Direct, Registry::Locked, Pools::Shared),
        (Dispatch::Direct, Registry::LockFree, Pools::Shared),
        (
            Dispatch::Queued { spin_ns: 0 },
            Registry::Locked,
            Pools::Shared,
        ),
        (
            Dispatch::Queued { spin_ns: 20_000 },
            Registry::Locked,
            Pools::PerCore,
        ),
    ];
    let step = if cfg!(miri) { 2 } else { 1 };
    let locked = locked.into_iter().step_by(step);
    all.push(StackKnobs {
        slicers: ugeom_stack::Slicers::Called,
        ..StackKnobs::default()
    });
    all.extend(locked.map(|(dispatch, registry, pools)| StackKnobs {
        dispatch,
        registry,
        pools,
        ..StackKnobs::default()
    }));
    all
}

/// Mirrors writes to two consumers and splits reads between them.
pub struct Mirror;

impl Geom for Mirror {
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        let (offset, length, command) = (request.offset(), request.length(), request.command());
        let mut fan = request.fan_out(cx);
        let added = if command == Command::Read {
            let half = (length / 2).next_multiple_of(512).min(length);
            let first = fan.child(0, offset, 0, half);
            if half < length {
                first.and_then(|()| fan.child(1, offset + half, half, length - half))
            } else {
                first
            }
        } else {
            // Both get all of it; the bytes done are counted twice and put right in `done`.
            fan.child(0, offset, 0, length)
                .and_then(|()| fan.child(1, offset, 0, length))
        };
        assert_eq!(added, Ok(()));
        fan.finish()
    }

    fn wants_done(&self) -> bool {
        true
    }

    fn done(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        match request.result() {
            Ok(_) => request.done_in_full(),
            Err(errno) => request.fail(errno, "a half of the mirror failed"),
        }
    }

    fn widest_fan_out(&self) -> usize {
        2
    }
}
