//! The user's half of a chain: where a device of the kernel stands on a file of a FUSE server of
//! ugeom, the server's layers stand below it, each with its counts and times.
//!
//! ```text
//!   loop0                     the kernel's half: diskstats, trace
//!   /mnt                      FUSE: wake-ups and copies between the two
//!   ugeom md:4m | nop (123)   the server: what it spends outside of its layers
//!   md0.nop, md0              the user's half: the server's own counts and times
//! ```

use super::rates::{Interval, ProviderRates, Rate};
use anyhow::Result;
use std::collections::BTreeMap;
use ugeom_serve::control::{Client, Figures, running};
use ugeom_trace::event::Dev;
use ugeom_trace::session::{fuse_dev, server_dev};
use ugeom_trace::tally::{Layer, Tally};

/// A server below the kernel's devices.
pub struct Half {
    connection: u32,
    name: String,
    client: Client,
    before: Figures,
}

/// The servers of this user that serve one of these FUSE connections.
pub fn halves(connections: &[u32]) -> Vec<Half> {
    let found = running().into_iter().filter_map(|found| {
        let connection = found.facts.ok()?.connection?;
        if !connections.contains(&connection) {
            return None;
        }
        let mut client = Client::connect(&found.path).ok()?;
        let before = client.figures(false).ok()?;
        let facts = client.facts();
        let name = format!("ugeom {} ({})", facts.target, facts.pid);
        Some(Half {
            connection,
            name,
            client,
            before,
        })
    });
    found.collect()
}

impl Half {
    /// Whether it serves this connection.
    pub fn serves(&self, connection: u32) -> bool {
        self.connection == connection
    }

    /// The server's providers from the medium up, and the server itself, since the last call.
    ///
    /// # Errors
    /// The server has ended.
    pub fn rows(
        &mut self,
        traced: &BTreeMap<Dev, Passed>,
        seconds: f64,
    ) -> Result<Vec<ProviderRates>> {
        let after = self.client.figures(false)?;
        let mut rows = Interval::between(&self.before, &after).rows;
        self.before = after;
        let depth = rows.iter().map(|row| row.depth + 1).max().unwrap_or(0);
        let passed = traced.get(&server_dev(self.connection));
        let mut server = row_of(passed, seconds);
        server.exclusive_ns = passed.map(|passed| outside(passed, &rows, seconds));
        let place = (depth, self.name.clone(), "SERVER".to_owned());
        (server.depth, server.name, server.class) = place;
        (server.id, server.rank) = (u64::from(server_dev(self.connection)), depth as u32 + 1);
        rows.push(server);
        Ok(rows)
    }
}

/// The time of a server's request outside of its layers, ns: each layer takes its own time of the
/// requests that it gets.
fn outside(passed: &Passed, rows: &[ProviderRates], seconds: f64) -> f64 {
    let layers = rows
        .iter()
        .filter_map(|row| Some(row.per_s * row.exclusive_ns?));
    let each = layers.sum::<f64>() * seconds / passed.count.max(1) as f64;
    (passed.inclusive_ns - each).max(0.0)
}

/// A trace's view of requests that passed a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Passed {
    /// Requests that passed the layer in the interval.
    pub count: u64,
    /// How many of them read.
    pub reads: u64,
    /// How many of them wrote.
    pub writes: u64,
    /// Mean of their time in it and below, ns.
    pub inclusive_ns: f64,
    /// Mean of their time in it, ns.
    pub exclusive_ns: f64,
}

/// Of each device, for requests on any path.
pub fn passed(tally: &Tally) -> BTreeMap<Dev, Passed> {
    let mut sums: BTreeMap<Dev, Vec<&Layer>> = BTreeMap::new();
    for layer in &tally.layers {
        sums.entry(layer.dev).or_default().push(layer);
    }
    let of = |(dev, layers): (Dev, Vec<&Layer>)| {
        let count: u64 = layers.iter().map(|layer| layer.exclusive.count()).sum();
        let mean = |sum: u128| sum as f64 / count.max(1) as f64;
        let passed = Passed {
            count,
            reads: layers.iter().map(|layer| layer.reads).sum(),
            writes: layers.iter().map(|layer| layer.writes).sum(),
            inclusive_ns: mean(layers.iter().map(|layer| layer.inclusive.sum()).sum()),
            exclusive_ns: mean(layers.iter().map(|layer| layer.exclusive.sum()).sum()),
        };
        (dev, passed)
    };
    let all = sums.into_iter().map(of);
    all.filter(|(_, passed)| passed.count > 0).collect()
}

/// The row of a FUSE connection, which diskstats does not have.
pub fn connection_row(
    connection: u32,
    (name, depth): (&str, usize),
    traced: &BTreeMap<Dev, Passed>,
    seconds: f64,
) -> ProviderRates {
    let passed = traced.get(&fuse_dev(connection));
    ProviderRates {
        id: u64::from(fuse_dev(connection)),
        name: name.to_owned(),
        class: "FUSE".to_owned(),
        rank: depth as u32 + 1,
        depth,
        exclusive_ns: passed.map(|passed| passed.exclusive_ns),
        ..row_of(passed, seconds)
    }
}

/// The row of what no device does: the wait of the threads of requests for a processor, after the
/// devices have completed them. None where no request had to wait.
pub fn wake_up_row(tally: &Tally, seconds: f64) -> Option<ProviderRates> {
    let (count, sum_ns) = (tally.wake_up.count(), tally.wake_up.sum());
    (count > 0).then(|| ProviderRates {
        // No device has this number.
        id: u64::MAX,
        name: "wake-up of the thread".to_owned(),
        class: "wait".to_owned(),
        rank: 1,
        per_s: count as f64 / seconds,
        exclusive_ns: Some(sum_ns as f64 / count as f64),
        samples: count,
        ..ProviderRates::default()
    })
}

/// A row without a name. The sizes of requests are not traced.
fn row_of(passed: Option<&Passed>, seconds: f64) -> ProviderRates {
    let passed = passed.copied().unwrap_or_default();
    let rate = |count: u64| Rate {
        per_s: count as f64 / seconds,
        ms_each: (count > 0).then_some(passed.inclusive_ns / 1e6),
        ..Rate::default()
    };
    ProviderRates {
        per_s: passed.count as f64 / seconds,
        read: rate(passed.reads),
        write: rate(passed.writes),
        other: rate(passed.count - passed.reads - passed.writes),
        samples: passed.count,
        ..ProviderRates::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_a_processor_have_a_row_without_a_device() {
        let mut tally = Tally::new(Vec::new());
        assert_eq!(wake_up_row(&tally, 2.0), None);
        [1000, 3000]
            .into_iter()
            .for_each(|ns| tally.wake_up.record(ns));
        let row = wake_up_row(&tally, 2.0).unwrap();
        assert_eq!((row.exclusive_ns, row.per_s), (Some(2000.0), 1.0));
        assert!(passed(&tally).is_empty());
    }
}
