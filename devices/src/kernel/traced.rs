//! The sum of exclusive times beside the differences: reads of the uppermost layer, traced.
//!
//! A difference holds what a layer changes below it, as on which processor a worker wakes; an
//! exclusive time is spent in the layer itself.

use super::chain::Chain;
use super::reading::Reader;
use serde::{Deserialize, Serialize};
use std::io;
use ugeom_trace::session::{Scope, Session};
use ugeom_trace::source::Choice;
use ugeom_trace::tally::Tally;
use ugeom_trace::workers::{WorkerFigures, Workers};

/// Reads that are traced, at most, in pieces whose events fit into the ring of a processor.
const READS_MAX: usize = 1000;
const PIECE: usize = 50;

/// A layer of a traced read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedLayer {
    /// Name of the layer's device.
    pub name: String,
    /// Its exclusive time, ns of each read of the uppermost layer.
    pub exclusive_ns: f64,
}

/// Reads of the uppermost layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedReads {
    /// How many were traced.
    pub reads: u64,
    /// The time of one read in the kernel, ns.
    pub kernel_ns: f64,
    /// The time of one read for its caller, with the system call, ns.
    pub caller_ns: f64,
    /// The layers from the top; their times and the wake-up add up to `kernel_ns`.
    pub layers: Vec<TracedLayer>,
    /// The wait of the caller's thread for a processor after the last layer has ended, ns of each
    /// read.
    #[serde(default)]
    pub wake_up_ns: f64,
    /// Where the workers of loop devices ran.
    pub workers: Vec<WorkerFigures>,
    /// Events that were lost.
    pub lost: u64,
}

/// Traces reads of the uppermost layer at queue depth 1, for about that time.
///
/// # Errors
/// In words: no right to trace, or a read that fails.
pub fn trace(
    chain: &Chain,
    scope: &Scope,
    (bytes, budget_ns): (u64, u64),
    random: &mut fastrand::Rng,
) -> Result<TracedReads, String> {
    let top = chain.rows.first().ok_or("no layer")?;
    let failed = |error: io::Error| error.to_string();
    let mut reader = Reader::new(top, bytes, 1).map_err(failed)?;
    let mut session = Session::start(scope.clone(), &Choice::ALL)?;
    let (mut tally, mut workers) = (Tally::new(scope.tops.clone()), Workers::default());
    let blocks = (chain.region_bytes / bytes).max(1);
    let (mut caller_ns, mut done) = (0.0, 0);
    while done == 0 || (done < READS_MAX && caller_ns < budget_ns as f64) {
        done += PIECE;
        let piece: Vec<u64> = (0..PIECE).map(|_| random.u64(..blocks)).collect();
        caller_ns += reader.slice(&piece).map_err(failed)?.wall_ns * PIECE as f64;
        let trees = session.poll(&mut |event| workers.event(event, &scope.topology));
        for tree in trees.map_err(failed)? {
            tally.add(&tree);
        }
    }
    let ended = session.finish(&mut |event| workers.event(event, &scope.topology));
    let ended = ended.map_err(failed)?;
    for tree in &ended.trees {
        tally.add(tree);
    }
    let reads = tally.whole.count();
    if reads == 0 {
        return Err("no read was seen below the uppermost layer".to_owned());
    }
    let of_all = |ns: u128| ns as f64 / reads as f64;
    let layers = tally.in_order().into_iter().map(|at| TracedLayer {
        name: scope.name(tally.layers[at].dev),
        exclusive_ns: of_all(tally.layers[at].exclusive.sum()),
    });
    let wake_up_ns = of_all(tally.wake_up.sum());
    Ok(TracedReads {
        reads,
        kernel_ns: of_all(tally.whole.sum()),
        caller_ns: caller_ns / done as f64,
        layers: layers.collect(),
        wake_up_ns,
        workers: workers.figures(&|dev| scope.name(dev)),
        lost: ended.lost,
    })
}
