//! A cache over a disk whose FLUSHes fail and whose power is cut: the surviving data.
//!
//! A write that a FLUSH covered has to be on the media after the cut. A FLUSH that fails excuses
//! what was written before it, until it is written again: the disk may forget it, and the writer
//! knows. A write-back cache that still has all of its blocks writes them again, and is excused of
//! nothing.

use std::collections::HashMap;
use ugeom_classes::target::{TargetOptions, open_target};
use ugeom_stack::{Channel, Delta, Opened};

const BLOCK_BYTES: u64 = 4096;
const BLOCKS: u64 = 64;
const OPERATIONS: u32 = 200;
const SEEDS: u64 = 150;

/// The writes to a block, oldest first, and the first one that must survive.
#[derive(Default)]
struct Written {
    stamps: Vec<u32>,
    /// The first of the stamps of which one has to be found, counted from 1; 0: none.
    needed: usize,
}

#[derive(Default)]
struct Model {
    blocks: HashMap<u64, Written>,
}

impl Model {
    fn write(&mut self, block: u64, stamp: u32) {
        self.blocks.entry(block).or_default().stamps.push(stamp);
    }

    fn flushed(&mut self) {
        for written in self.blocks.values_mut() {
            written.needed = written.stamps.len();
        }
    }

    /// The found stamp has to be the needed one or a later one; 0 is a block that was never there.
    fn allows(&self, block: u64, found: u32) -> bool {
        let Some(written) = self.blocks.get(&block) else {
            return found == 0;
        };
        let at = match found {
            0 => 0,
            stamp => match written.stamps.iter().position(|it| *it == stamp) {
                Some(at) => at + 1,
                None => return false,
            },
        };
        at >= written.needed
    }
}

fn stamped(stamp: u32) -> Vec<u8> {
    stamp.to_le_bytes().repeat(BLOCK_BYTES as usize / 4)
}

/// Runs until the power is cut, or for all operations.
fn run(
    (channel, opened): (&mut Channel, &Opened),
    random: &mut fastrand::Rng,
    excused: bool,
) -> Model {
    let mut model = Model::default();
    // Blocks whose last write a failed FLUSH should have covered.
    let mut failed: HashMap<u64, usize> = HashMap::new();
    for stamp in 1..=OPERATIONS {
        if random.u8(0..5) > 0 {
            let block = random.u64(0..BLOCKS);
            // A write that fails may be there or not.
            model.write(block, stamp);
            if channel
                .write(opened, block * BLOCK_BYTES, &stamped(stamp))
                .is_err()
            {
                break;
            }
            continue;
        }
        let before: HashMap<u64, usize> = needed_now(&model);
        if channel.flush(opened).is_ok() {
            model.flushed();
            for (block, count) in &failed {
                let written = model.blocks.get_mut(block).expect("written");
                if written.stamps.len() == *count {
                    written.needed = before[block];
                }
            }
        } else if excused {
            let counts = model.blocks.iter();
            failed.extend(counts.map(|(block, written)| (*block, written.stamps.len())));
        }
    }
    model
}

fn needed_now(model: &Model) -> HashMap<u64, usize> {
    let blocks = model.blocks.iter();
    blocks.map(|(block, it)| (*block, it.needed)).collect()
}

fn survives(layer: &str, excused: bool) {
    for seed in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(seed);
        let (bytes, cut) = (BLOCKS * BLOCK_BYTES, random.u32(1..OPERATIONS));
        let target = format!("md:{bytes} | crash:seed={seed},flushfail=20%,cut=op{cut} | {layer}");
        let options = TargetOptions::untasted();
        let target = open_target(&target, &options).expect("a stack");
        let stack = target.stack;
        let mut channel = stack.channel(8).expect("a channel");
        let opened = stack.open(target.top, Delta::READ_WRITE).expect("opens");
        let model = run((&mut channel, &opened), &mut random, excused);
        // Some of it is lost when the power is off, which the cache says.
        let _ = opened.close();
        let media = stack.find("md0.crash").expect("the disk");
        let mut opened = stack.open(media, Delta::READ_WRITE).expect("opens");
        let mut found = vec![0; BLOCK_BYTES as usize];
        for block in 0..BLOCKS {
            if channel
                .read(&opened, block * BLOCK_BYTES, &mut found)
                .is_err()
            {
                // Too few requests had come for the cut until now.
                opened.close().expect("closes");
                opened = stack.open(media, Delta::READ_WRITE).expect("opens");
                let read = channel.read(&opened, block * BLOCK_BYTES, &mut found);
                read.expect("the power is on");
            }
            let stamp = u32::from_le_bytes([found[0], found[1], found[2], found[3]]);
            assert!(
                model.allows(block, stamp) && found == stamped(stamp),
                "{layer}, seed {seed}: block {block} has stamp {stamp}"
            );
        }
    }
}

#[test]
fn a_write_back_cache_writes_again_what_a_failed_flush_should_have_covered() {
    survives("cache:1m,write=back", false);
    survives("cache:1m,write=back,block=4k", false);
}

#[test]
fn what_a_small_cache_flushed_survives() {
    survives("cache:64k,write=back,block=4k", true);
}

#[test]
fn what_went_through_and_was_flushed_survives() {
    survives("cache:1m", true);
    survives("nop", true);
}
