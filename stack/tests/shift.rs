//! Layers that say that they only move requests: it makes no visible difference whether the stack
//! asks them each time or makes their step itself.

mod common;

use common::{Memory, plan};
use std::sync::Arc;
use ugeom_stack::{
    Channel, Command, Cx, Delta, Dispatch, Errno, Geom, Next, Opened, ProviderId, Request, Slicers,
    Stack, StackKnobs, Statistics,
};

const SIZE: u64 = 256 * 512;

/// Moves requests by `base` bytes, and says so if it is `told`.
struct Mover {
    base: u64,
    told: bool,
}

impl Geom for Mover {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let offset = request.offset() + self.base;
        request.set_offset(offset);
        request.forward(0)
    }

    fn shift(&self, _port: u16) -> Option<u64> {
        self.told.then_some(self.base)
    }
}

/// Passes on what does not touch a bad sector, and delays what begins in an odd one.
struct Moody {
    bad: u64,
}

impl Geom for Moody {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        let (start, end) = (request.offset(), request.offset() + request.length());
        if request.length() > 0 && (start..end).contains(&self.bad) {
            return request.fail(Errno::IO, "a bad sector");
        }
        if start / 512 % 2 == 1 {
            return request.delay(1);
        }
        request.forward(0)
    }

    fn resume(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.forward(0)
    }
}

/// The layers of a stack, the same for both.
struct Layers {
    /// Base and size of each, from the bottom up, bytes.
    moves: Vec<(u64, u64)>,
    /// The place among them of the one that fails and delays, and its bad sector.
    moody: Option<(usize, u64)>,
}

impl Layers {
    fn random(random: &mut fastrand::Rng) -> Self {
        let mut size = SIZE;
        let mut moves = Vec::new();
        for _ in 0..random.usize(1..7) {
            let base = random.u64(0..=size / 512 / 4) * 512;
            let mut own = (random.u64(1..=(size - base) / 512)) * 512;
            if random.u8(0..6) == 0 {
                // A table that says more than there is.
                own += 4096;
            }
            moves.push((base, own));
            size = own;
        }
        let place = random.usize(0..moves.len() * 2);
        let bad = random.u64(0..SIZE / 512) * 512;
        let moody = (place < moves.len()).then_some((place, bad));
        Self { moves, moody }
    }

    fn build(&self, options: StackKnobs, told: bool) -> (Stack, Vec<ProviderId>) {
        let stack = Stack::new(options, Vec::new()).expect("a stack");
        let bottom = plan("mem", SIZE, Memory::new(SIZE as usize));
        let mut top = stack.create("MEM", bottom, &[]).expect("memory")[0];
        let (mut all, mut size) = (vec![top], SIZE);
        for (place, &(base, own)) in self.moves.iter().enumerate() {
            if let Some((at, bad)) = self.moody
                && at == place
            {
                let moody = plan("moody", size, Arc::new(Moody { bad }));
                top = stack.create("MOODY", moody, &[top]).expect("a layer")[0];
                all.push(top);
            }
            let mover = Arc::new(Mover { base, told });
            let layer = plan(&format!("layer{place}"), own, mover);
            top = stack.create("MOVE", layer, &[top]).expect("a layer")[0];
            all.push(top);
            size = own;
        }
        (stack, all)
    }
}

/// The result of a request: the bytes done, or the whole error; and the data.
fn ask(
    channel: &mut Channel,
    opened: &Opened,
    (command, offset, length): (Command, u64, usize),
    seed: u8,
) -> (Result<usize, String>, Vec<u8>) {
    let mut data = vec![seed; length];
    let done = match command {
        Command::Read => channel.read(opened, offset, &mut data),
        Command::Write => channel.write(opened, offset, &data),
        Command::Flush => channel.flush(opened).map(|()| 0),
        other => channel.discard(opened, other, offset, length as u64),
    };
    (done.map_err(|error| error.to_string()), data)
}

/// Operations and bytes by command, errors, and what is in flight.
type Figures = (Vec<u64>, Vec<u64>, u64, u64);

fn counts(stack: &Stack, all: &[ProviderId]) -> Vec<Figures> {
    // There are none when they are off.
    let totals = all.iter().filter_map(|&id| stack.statistics(id).ok());
    let figures = totals.map(|it| {
        let (operations, bytes) = (it.operations.to_vec(), it.bytes.to_vec());
        (operations, bytes, it.errors, it.in_flight())
    });
    figures.collect()
}

fn compare(options: StackKnobs, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let layers = Layers::random(&mut random);
    let (told, told_all) = layers.build(options, true);
    let (asked, asked_all) = layers.build(options, false);
    // Any of them may be opened, and for reading only.
    let place = random.usize(0..told_all.len());
    let delta = [Delta::READ, Delta::READ_WRITE, Delta::READ_WRITE][random.usize(0..3)];
    let end = 2 * told
        .open(told_all[place], delta)
        .expect("open")
        .view()
        .expect("a view")
        .mediasize_bytes;
    let opened = told.open(told_all[place], delta).expect("open");
    let other = asked.open(asked_all[place], delta).expect("open");
    let mut one = told.channel(4).expect("a channel");
    let mut two = asked.channel(4).expect("a channel");
    for round in 0..60 {
        let commands = [
            Command::Read,
            Command::Read,
            Command::Write,
            Command::Write,
            Command::Zero,
            Command::Delete,
            Command::Flush,
        ];
        let command = commands[random.usize(0..commands.len())];
        let odd = u64::from(random.u8(0..20) == 0);
        let request = (
            command,
            random.u64(0..=end / 512 / 2 + 2) * 512 + odd,
            random.usize(0..16) * 512,
        );
        let seen = ask(&mut one, &opened, request, round);
        let expected = ask(&mut two, &other, request, round);
        assert_eq!(seen, expected, "seed {seed}, {request:?}, {options:?}");
    }
    assert_eq!(
        counts(&told, &told_all),
        counts(&asked, &asked_all),
        "seed {seed}"
    );
    assert_eq!((told.defects(), asked.defects()), (0, 0));
}

#[test]
fn a_step_that_the_stack_makes_itself_is_the_step_of_the_layer() {
    let rounds = if cfg!(miri) { 2 } else { 150 };
    let levels = [
        Statistics::Off,
        Statistics::Counts,
        Statistics::Time { one_in: 2 },
    ];
    for seed in 0..rounds {
        for statistics in levels {
            for dispatch in [Dispatch::Direct, Dispatch::Queued { spin_ns: 0 }] {
                // Threads are slow to start.
                if dispatch != Dispatch::Direct && seed % 50 != 0 {
                    continue;
                }
                let options = StackKnobs {
                    dispatch,
                    statistics,
                    ..StackKnobs::default()
                };
                compare(options, seed);
            }
        }
    }
}

/// A mover whose start fails, which shows whether it is asked.
struct Asked;

impl Geom for Asked {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> Next {
        request.fail(Errno::IO, "it was asked")
    }

    fn shift(&self, _port: u16) -> Option<u64> {
        Some(512)
    }
}

#[test]
fn a_layer_that_only_moves_is_not_asked_unless_that_is_wanted() {
    let memory = Memory::new(SIZE as usize);
    let open = |slicers| {
        let options = StackKnobs {
            slicers,
            ..StackKnobs::default()
        };
        let stack = Stack::new(options, Vec::new()).expect("a stack");
        let bottom = plan("mem", SIZE, Arc::clone(&memory) as Arc<dyn Geom>);
        let bottom = stack.create("MEM", bottom, &[]).expect("memory")[0];
        let layer = plan("layer", SIZE - 512, Arc::new(Asked));
        let top = stack.create("LAYER", layer, &[bottom]);
        let top = top.expect("a layer")[0];
        let opened = stack.open(top, Delta::READ_WRITE).expect("open");
        (stack.channel(1).expect("a channel"), opened)
    };
    let (mut channel, opened) = open(Slicers::Fused);
    assert_eq!(
        channel.write(&opened, 512, &[3; 512]).expect("written"),
        512
    );
    assert_eq!(memory.0.lock().expect("memory")[1023..1025], [0, 3]);
    // A FLUSH names no range, and goes from layer to layer.
    let refused = channel.flush(&opened).expect_err("asked");
    assert!(refused.to_string().contains("it was asked"), "{refused}");
    let (mut channel, opened) = open(Slicers::Called);
    let refused = channel.write(&opened, 512, &[4; 512]).expect_err("asked");
    assert!(refused.to_string().contains("it was asked"), "{refused}");
}

/// Opens, asks, closes and changes how much is counted, in an order of the seed's; what each
/// provider has counted after each step.
fn history(told: bool, seed: u64) -> Vec<Vec<Figures>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let layers = Layers::random(&mut random);
    let (stack, all) = layers.build(StackKnobs::default(), told);
    let mut channels: Vec<Channel> = (0..2).map(|_| stack.channel(4).expect("one")).collect();
    let mut opened: Vec<Opened> = Vec::new();
    let mut seen = Vec::new();
    for _ in 0..80 {
        match random.u8(0..8) {
            0 | 1 if opened.len() < 5 => {
                let delta = [Delta::READ, Delta::READ_WRITE][usize::from(random.u8(0..6) == 0)];
                let place = random.usize(0..all.len());
                // A writer below ends what stands on the provider: then there is no such handle.
                opened.extend(stack.open(all[place], delta).ok());
            }
            2 if !opened.is_empty() => {
                opened.swap_remove(random.usize(0..opened.len()));
            }
            3 => {
                let time = Statistics::Time { one_in: 3 };
                let levels = [Statistics::Counts, time, time, Statistics::Counts];
                stack.set_statistics(levels[random.usize(0..levels.len())]);
            }
            4 => {
                // The counts of a channel stay when it is dropped.
                channels.swap_remove(0);
                channels.push(stack.channel(4).expect("a channel"));
            }
            _ => {}
        }
        for opened in &opened {
            let which = random.usize(0..channels.len());
            let request = (
                [Command::Read, Command::Write][random.usize(0..2)],
                random.u64(0..SIZE / 512) * 512,
                random.usize(0..9) * 512,
            );
            let _ = ask(&mut channels[which], opened, request, 1);
        }
        seen.push(counts(&stack, &all));
    }
    seen
}

#[test]
fn what_was_counted_of_a_run_outlives_its_consumers_and_its_threads() {
    let rounds = if cfg!(miri) { 1 } else { 25 };
    for seed in 0..rounds {
        assert_eq!(history(true, seed), history(false, seed), "seed {seed}");
    }
}
