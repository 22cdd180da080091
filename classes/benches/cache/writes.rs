//! Writes of 4 KiB through and back, and how many of those below the flusher makes of them.

use super::rounds::{Work, measure, writable};
use ugeom_classes::Target;
use ugeom_stack::Delta;

const SIZE: usize = 4096;
const BYTES: u64 = 64 << 20;
const COUNT: u64 = BYTES / SIZE as u64;

fn fact(target: &Target, key: &str) -> u64 {
    let tree = target.stack.tree();
    let fact = tree.geoms.iter().find_map(|geom| geom.fact(key));
    fact.map_or(0, |value| value.parse().expect("a number"))
}

/// Work that writes one block after the other in an order, and flushes in the end.
fn writer<'a>(target: &Target, order: &'a [u64]) -> Work<'a> {
    let opened = target.open(Delta::READ_WRITE);
    let opened = opened.expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let (bytes, mut at) = (vec![5; SIZE], 0);
    Box::new(move |count| {
        for _ in 0..count {
            let offset = order[at] * SIZE as u64;
            channel.write(&opened, offset, &bytes).expect("writes");
            at = (at + 1) % order.len();
        }
        channel.flush(&opened).expect("flushes");
    })
}

pub fn run() {
    let sequential: Vec<u64> = (0..COUNT).collect();
    let mut random = sequential.clone();
    fastrand::Rng::with_seed(9).shuffle(&mut random);
    for (name, order) in [("in sequence", &sequential), ("at random", &random)] {
        let through = writable("md:64m | cache:64m");
        let back = writable("md:64m | cache:64m,write=back,dirty=100%");
        let bare = writable("md:64m");
        println!("\nwrites of {SIZE} {name}, a FLUSH every {COUNT}");
        let measured = measure(
            vec![
                ("md alone", writer(&bare, order)),
                ("write=through", writer(&through, order)),
                ("write=back", writer(&back, order)),
            ],
            COUNT,
        );
        measured.print();
        measured.ratio("write=through", "write=back", "none");
        let (writes, below) = (fact(&back, "writes"), fact(&back, "writes_below"));
        println!(
            "{writes} writes became {below} below: {:.1} in one",
            writes as f64 / below as f64
        );
    }
}
