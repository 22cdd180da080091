//! `cargo bench -p ugeom --bench clients [-- PART...]`: the NBD server with clients that are not
//! this project's, in some five minutes.
//!
//! - `flood`: IOPS of a pipelining client in C (shared/tools/floors/nbdflood.c), beside nbdkit's
//!   memory plugin and canned replies (nbdnull.c).
//! - `unread`: how long nbdcopy takes beside 12 and 64 clients that send READs and receive nothing.
//! - `silent`: how soon a new client is served beside 1,100 silent ones.
//! - `tls`: throughput of nbdcopy and of the class `nbd` over TLS, beside nbdkit with TLS.
//! - `images`: reads of a qcow2 image, and copies out of images, beside qemu's programs.
//!
//! Every round starts new servers, and measures all of them one after the other. Programs that are
//! missing are named as `SKIP`. `UGEOM_BENCH_OTHER` names another build of ugeom, which `flood`
//! measures in the same rounds. Started as a test it does one short round of each part.

mod flood;
mod images;
#[path = "../shared/reads.rs"]
mod reads;
#[path = "../shared/mod.rs"]
mod shared;
mod silent;
mod table;
mod tls;
mod unread;

use shared::Failure;
use std::time::Duration;

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub rounds: usize,
    /// Of one measurement, where a time is to be set.
    pub run: Duration,
    /// Bytes of exports that hold data.
    pub bytes: u64,
    /// Whether servers of others are measured, too.
    pub others: bool,
}

type Part = fn(Plan) -> Result<(), Failure>;

const PARTS: [(&str, Part); 5] = [
    ("flood", flood::measure),
    ("unread", unread::measure),
    ("silent", silent::measure),
    ("tls", tls::measure),
    ("images", images::measure),
];

fn main() -> Result<(), Failure> {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let as_bench = wanted.iter().any(|word| word == "--bench");
    wanted.retain(|word| !word.starts_with("--"));
    let known = |word: &String| PARTS.iter().any(|(name, _)| name == word);
    if let Some(word) = wanted.iter().find(|word| !known(word)) {
        let names = PARTS.map(|(name, _)| name).join(", ");
        return Err(format!("there is no part {word}; there are {names}").into());
    }
    let plan = if as_bench {
        Plan {
            rounds: 7,
            run: Duration::from_millis(500),
            bytes: 1 << 30,
            others: true,
        }
    } else {
        Plan {
            rounds: 1,
            run: Duration::from_millis(10),
            bytes: 16 << 20,
            others: false,
        }
    };
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            measure(plan)?;
        }
    }
    Ok(())
}
