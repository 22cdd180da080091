//! The gain of a second thread: for the cache, and for bare copies.

use super::hits::{BYTES, Warm, order};
use super::rounds::{Work, measure_often};
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use ugeom_classes::cache::index::hash::Hash;
use ugeom_machine::cpu::{self, Affinity};
use ugeom_machine::slab::Slab;

const SIZE: usize = 4096;
/// The blocks of the hot set: 16 MiB, more than the cores' own caches.
const HOT: usize = 4096;
/// Many short rounds: what else the machine does changes from one moment to the next, and the cases
/// of a round are to see the same of it.
const ROUNDS: usize = 511;
const READS: u64 = 1 << 15;

/// Work that `works` divide among them, a thread each, each on a core of its own where there are
/// enough: left to itself, the system lets two new threads share a core for some milliseconds.
fn together<'a>(mut works: Vec<Box<dyn FnMut(u64) + Send + 'a>>) -> Work<'a> {
    let cores = Affinity::current().map(|all| all.cores());
    let cores = cores.unwrap_or_default();
    Box::new(move |count| {
        let each = count / works.len() as u64;
        let begin = Barrier::new(works.len());
        thread::scope(|scope| {
            for (index, work) in works.iter_mut().enumerate() {
                let (begin, core) = (&begin, cores.get(index));
                scope.spawn(move || {
                    // Without it the system chooses.
                    let _ = core.map(|core| cpu::pin(&[*core]));
                    begin.wait();
                    work(each);
                });
            }
        });
    })
}

/// Work in registers: what a second thread brings when neither memory nor anything else is shared
/// but the processor itself.
fn arithmetic() -> Box<dyn FnMut(u64) + Send> {
    let mut sums = [1_u64, 2, 3, 4];
    Box::new(move |count| {
        for turn in 0..count * 64 {
            for sum in &mut sums {
                *sum = black_box(sum.wrapping_add(turn)) ^ turn;
            }
        }
    })
}

fn reads<'a>(warm: &Warm<Hash>, order: &'a [u32]) -> Box<dyn FnMut(u64) + Send + 'a> {
    let (mut channel, opened) = warm.open();
    let (mut buffer, mut at) = (vec![1; SIZE], 0);
    Box::new(move |count| {
        for _ in 0..count {
            let offset = u64::from(order[at]) * SIZE as u64;
            channel.read(&opened, offset, &mut buffer).expect("reads");
            black_box(&buffer);
            at = (at + 1) % order.len();
        }
    })
}

fn copies<'a>(slab: &'a Slab, pages: &'a [(u32, usize)]) -> Box<dyn FnMut(u64) + Send + 'a> {
    let (mut buffer, mut at) = (vec![1; SIZE], 0);
    Box::new(move |count| {
        for _ in 0..count {
            slab.copy_out_plain(pages[at].0, 0, &mut buffer);
            black_box(&buffer);
            at = (at + 1) % pages.len();
        }
    })
}

pub fn run() {
    let warm = Warm::<Hash>::new(SIZE as u32);
    let slab = warm.cache.store().slab();
    let all = order(BYTES / SIZE as u64, 3);
    let (left, right) = all.split_at(all.len() / 2);
    let hot = &all[..HOT];
    let turned: Vec<u32> = hot.iter().rev().copied().collect();
    for (name, one, two) in [
        ("disjoint", left, right),
        ("the same hot set", hot, &turned),
    ] {
        let pages = [one, two].map(|order| warm.pages(SIZE, order));
        let measured = measure_often(
            vec![
                ("cache, one thread", together(vec![reads(&warm, one)])),
                (
                    "cache, two threads",
                    together(vec![reads(&warm, one), reads(&warm, two)]),
                ),
                (
                    "memcpy, one thread",
                    together(vec![copies(slab, &pages[0])]),
                ),
                (
                    "memcpy, two threads",
                    together(vec![copies(slab, &pages[0]), copies(slab, &pages[1])]),
                ),
                ("registers, one thread", together(vec![arithmetic()])),
                (
                    "registers, two threads",
                    together(vec![arithmetic(), arithmetic()]),
                ),
            ],
            READS,
            ROUNDS,
        );
        println!("\nrandom reads of {SIZE}, {name}");
        measured.print();
        measured.gain(
            ["cache, one thread", "cache, two threads"],
            ["memcpy, one thread", "memcpy, two threads"],
            "at least 0.95",
        );
        measured.ratio("cache, one thread", "cache, two threads", "none");
        measured.ratio("memcpy, one thread", "memcpy, two threads", "none");
        measured.ratio(
            "registers, one thread",
            "registers, two threads",
            "none; 2 on cores that share nothing",
        );
    }
}
