//! `cargo bench -p ugeom-engine`: the cost of the engine `io_uring` beyond a ring. Reads of nothing
//! (from /dev/null), 32 at a time, of a registered file into registered memory: through the engine,
//! and the same entries through a ring without anything around it, in turn; the ratio with its 95 %
//! interval. Started as a test it measures as little as it can.

use std::error::Error;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, types};
use ugeom_engine::{Engine, Op, OpKind, UringEngine};
use ugeom_machine::buffer::Pool;
use ugeom_measure::ratio::log_ratio_paired;

const BATCH: usize = 32;
const BYTES: usize = 512;

/// Batches between two looks at the clock.
const BATCHES: usize = 64;

type Body = Box<dyn FnMut() -> Result<(), Box<dyn Error>>>;

fn engine() -> Result<Body, Box<dyn Error>> {
    let mut engine = UringEngine::open(BATCH as u32)?;
    let file = engine.register(Arc::new(File::open("/dev/null")?))?;
    let (pool, mut free) = Pool::new(BATCH, BYTES);
    if !engine.register_memory(&pool) {
        return Err("memory cannot be registered".into());
    }
    let op = Op {
        kind: OpKind::Read,
        file,
        offset: 0,
        length: BYTES as u64,
    };
    Ok(Box::new(move || {
        for memory in free.drain(..) {
            engine.submit(op, memory);
        }
        while engine.in_flight() > 0 {
            engine.reap(&mut |completion| {
                assert_eq!(completion.result, Ok(0));
                free.push(completion.memory);
            });
            engine.wait(None)?;
        }
        Ok(())
    }))
}

fn bare() -> Result<Body, Box<dyn Error>> {
    let mut ring: IoUring = IoUring::builder()
        .setup_coop_taskrun()
        .build(BATCH as u32)?;
    let file = File::open("/dev/null")?;
    let mut memory = vec![0_u8; BATCH * BYTES];
    let pieces = [libc::iovec {
        iov_base: memory.as_mut_ptr().cast(),
        iov_len: memory.len(),
    }];
    ring.submitter().register_files(&[file.as_raw_fd()])?;
    // SAFETY: the memory is kept by the closure, which drops the ring first.
    unsafe { ring.submitter().register_buffers(&pieces)? };
    Ok(Box::new(move || {
        for number in 0..BATCH {
            let place = memory[number * BYTES..].as_mut_ptr();
            let read = opcode::ReadFixed::new(types::Fixed(0), place, BYTES as u32, 0);
            // SAFETY: as above; no other code touches the memory.
            unsafe {
                ring.submission()
                    .push(&read.build().user_data(number as u64))?
            };
        }
        ring.submit_and_wait(BATCH)?;
        for completion in ring.completion() {
            assert_eq!(completion.result(), 0);
        }
        Ok(())
    }))
}

/// The time of a read, ns.
fn run(body: &mut Body, time: Duration) -> Result<f64, Box<dyn Error>> {
    let (start, mut reads) = (Instant::now(), 0);
    while reads == 0 || start.elapsed() < time {
        for _ in 0..BATCHES {
            body()?;
        }
        reads += BATCHES * BATCH;
    }
    Ok(start.elapsed().as_nanos() as f64 / reads as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rounds, time) = match ugeom_testkit::is_bench() {
        true => (40, Duration::from_millis(40)),
        false => (3, Duration::ZERO),
    };
    let (mut engine, mut bare) = match (engine(), bare()) {
        (Ok(engine), Ok(bare)) => (engine, bare),
        (Err(error), _) | (_, Err(error)) => {
            println!("SKIP: {error}");
            return Ok(());
        }
    };
    let (mut through, mut alone) = (Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=rounds {
        let pair = match round % 2 {
            0 => (run(&mut engine, time)?, run(&mut bare, time)?),
            _ => {
                let alone = run(&mut bare, time)?;
                (run(&mut engine, time)?, alone)
            }
        };
        if round > 0 {
            through.push(pair.0);
            alone.push(pair.1);
        }
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let ratio = log_ratio_paired(&through, &alone, 0.95)?.interval;
    println!(
        "a read of nothing, batch of {BATCH}: engine {:.1} ns, bare ring {:.1} ns, \
         {:.2} ({:.2} to {:.2}) times as long",
        mean(&through),
        mean(&alone),
        ratio.estimate,
        ratio.low,
        ratio.high
    );
    Ok(())
}
