//! What a second thread brings: to the cache, and to bare copies.

use super::hits::{BYTES, order};
use super::rounds::{Work, measure};
use std::thread;
use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_machine::slab::Slab;
use ugeom_stack::{Channel, Delta, Opened};

const SIZE: usize = 4096;
/// The blocks of the hot set: 16 MiB, more than the cores' own caches.
const HOT: usize = 4096;

/// Work that `works` divide among them, a thread each.
fn together<'a>(mut works: Vec<Box<dyn FnMut(u64) + Send + 'a>>) -> Work<'a> {
    Box::new(move |count| {
        let each = count / works.len() as u64;
        thread::scope(|scope| {
            for work in &mut works {
                scope.spawn(move || work(each));
            }
        });
    })
}

fn reads<'a>(target: &'a Target, order: &'a [u32]) -> Box<dyn FnMut(u64) + Send + 'a> {
    let opened: Opened = target.stack.open(target.top, Delta::READ).expect("opens");
    let mut channel: Channel = target.stack.channel(1).expect("a channel");
    let (mut buffer, mut at) = (vec![1; SIZE], 0);
    Box::new(move |count| {
        for _ in 0..count {
            let offset = u64::from(order[at]) * SIZE as u64;
            channel.read(&opened, offset, &mut buffer).expect("reads");
            std::hint::black_box(&buffer);
            at = (at + 1) % order.len();
        }
    })
}

fn copies<'a>(slab: &'a Slab, order: &'a [u32]) -> Box<dyn FnMut(u64) + Send + 'a> {
    let (mut buffer, mut at) = (vec![1; SIZE], 0);
    Box::new(move |count| {
        for _ in 0..count {
            slab.copy_out(order[at], 0, &mut buffer);
            std::hint::black_box(&buffer);
            at = (at + 1) % order.len();
        }
    })
}

pub fn run() {
    let text = "zero | nop:size=1g | cache:1g,block=4k";
    let target = open_target(text, &TargetOptions::default()).expect("a cache");
    let slab = Slab::new((BYTES / SIZE as u64) as u32, SIZE).expect("memory");
    for block in 0..slab.blocks() {
        assert!(slab.copy_in(block, 0, &[3; SIZE]));
    }
    let all = order(BYTES / SIZE as u64, 3);
    reads(&target, &all)(all.len() as u64);
    let (left, right) = all.split_at(all.len() / 2);
    let hot = &all[..HOT];
    let turned: Vec<u32> = hot.iter().rev().copied().collect();
    for (name, one, two) in [
        ("disjoint", left, right),
        ("the same hot set", hot, &turned),
    ] {
        let measured = measure(
            vec![
                ("cache, one thread", together(vec![reads(&target, one)])),
                (
                    "cache, two threads",
                    together(vec![reads(&target, one), reads(&target, two)]),
                ),
                ("memcpy, one thread", together(vec![copies(&slab, one)])),
                (
                    "memcpy, two threads",
                    together(vec![copies(&slab, one), copies(&slab, two)]),
                ),
            ],
            1 << 17,
        );
        println!("\nrandom reads of {SIZE}, {name}");
        measured.print();
        measured.gain(
            ["cache, one thread", "cache, two threads"],
            ["memcpy, one thread", "memcpy, two threads"],
            "at least 0.95",
        );
    }
}
