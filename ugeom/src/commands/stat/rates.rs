//! From the sums of two moments to the rates between them: gstat's columns, and the exclusive time
//! of a request in a layer.
//!
//! Times are known of a sample only. With `n` requests of which `s` were timed, sums of times are
//! multiplied by `n / s`: the ratio estimator, which holds whatever the server's rate of sampling
//! was, also when it changed meanwhile.

use serde::Serialize;
use std::borrow::Cow;
use ugeom_serve::control::{Consumer, Counted, Figures, Layer, OperationTotals, Spread, Times};

/// The rates of one kind of request in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    /// IOPS of this kind.
    pub per_s: f64,
    /// Throughput of this kind, KiB/s.
    pub kib_per_s: f64,
    /// KiB a request; 0 without requests.
    pub kib_each: f64,
    /// Milliseconds a request took; none when no request of that kind was timed.
    pub ms_each: Option<f64>,
}

/// A provider or a consumer in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProviderRates {
    /// The provider's number; a consumer's own.
    pub id: u64,
    /// Its name; `CLASS GEOM -> PROVIDER` for a consumer, `DEV -> PROVIDER` for an opened handle.
    pub name: String,
    /// The name under which clients find it, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
    /// The class of its geom.
    pub class: String,
    pub consumer: bool,
    /// The geom's rank: 1 at the bottom. 0 for a consumer.
    pub rank: u32,
    /// How deep it stands in the tree, 0 at the bottom.
    pub depth: usize,
    /// Requests in flight at the end of the interval.
    pub in_flight: u64,
    /// Failed requests a second.
    pub errors_per_s: f64,
    /// All requests a second.
    pub per_s: f64,
    /// Rates of READ requests.
    pub read: Rate,
    /// Rates of WRITE requests.
    pub write: Rate,
    /// Rates of DELETE requests.
    pub delete: Rate,
    /// FLUSH, ZERO and all else.
    pub other: Rate,
    /// EXTENTS, which servers ask for themselves; they are not among the other rates.
    pub extents_per_s: f64,
    /// In how much of the time there was a request; none when that is not known.
    pub busy_percent: Option<f64>,
    /// The exclusive time of a request in this layer, ns, on average of those timed.
    pub exclusive_ns: Option<f64>,
    /// How many requests were timed.
    pub samples: u64,
}

impl ProviderRates {
    /// Its name, and in brackets that of its export if that is another one.
    pub fn shown_name(&self) -> Cow<'_, str> {
        match &self.export {
            Some(export) => Cow::Owned(format!("{} ({export})", self.name)),
            None => Cow::Borrowed(&self.name),
        }
    }
}

/// The rates between two looks at a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// How long it was.
    pub seconds: f64,
    /// Requests are counted at all.
    pub counts: bool,
    /// One request in this many was timed; 0 for none.
    pub timed_one_in: u32,
    /// The cost of a reading of the clock, ns.
    pub clock_ns: f64,
    /// How long the last look took the server, ns.
    pub look_ns: u64,
    /// Providers in the order of the tree, each followed by its consumers.
    pub rows: Vec<ProviderRates>,
}

/// Readings of the clock below which an exclusive time says more of the clock than of the layer:
/// two of them lie in each span.
const CLOCKS_THAT_SHOW: f64 = 5.0;

impl Interval {
    /// The rates between two looks. A new provider has all its counts in this interval.
    pub fn between(before: &Figures, after: &Figures) -> Self {
        let seconds = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let mut rows = Vec::new();
        for (depth, layer) in in_tree_order(&after.providers) {
            let known = before.providers.iter().find(|it| it.id == layer.id);
            rows.push(of_layer(known, layer, depth, seconds));
            for consumer in after.consumers.iter().filter(|it| it.provider == layer.id) {
                let known = before.consumers.iter().find(|it| it.id == consumer.id);
                rows.push(of_consumer(known, consumer, &layer.name, depth, seconds));
            }
        }
        Self {
            seconds,
            counts: after.timing.counts,
            // A look chooses the share for the interval that begins with it.
            timed_one_in: before.timing.one_in,
            clock_ns: after.timing.clock_ns,
            look_ns: after.timing.look_ns,
            rows,
        }
    }

    /// Whether an exclusive time is mostly the clock's own.
    pub fn is_mostly_clock(&self, exclusive_ns: f64) -> bool {
        exclusive_ns < CLOCKS_THAT_SHOW * self.clock_ns
    }
}

/// Each provider with its depth: below first, then those above it.
fn in_tree_order(layers: &[Layer]) -> Vec<(usize, &Layer)> {
    let is_root = |layer: &&Layer| {
        !layer
            .below
            .iter()
            .any(|id| layers.iter().any(|it| it.id == *id))
    };
    let mut order: Vec<(usize, &Layer)> = Vec::with_capacity(layers.len());
    let mut seen = std::collections::HashSet::new();
    let roots = layers.iter().filter(is_root);
    let mut waiting: Vec<(usize, &Layer)> = roots.rev().map(|layer| (0, layer)).collect();
    // A layer on itself has no root, and a hostile server could report one: it is shown last.
    let mut rest = layers.iter();
    loop {
        while let Some((depth, layer)) = waiting.pop() {
            if !seen.insert(layer.id) {
                continue;
            }
            order.push((depth, layer));
            let above = layers.iter().filter(|it| it.below.contains(&layer.id));
            waiting.extend(above.rev().map(|layer| (depth + 1, layer)));
        }
        match rest.find(|layer| !seen.contains(&layer.id)) {
            Some(layer) => waiting.push((0, layer)),
            None => return order,
        }
    }
}

fn of_layer(before: Option<&Layer>, after: &Layer, depth: usize, seconds: f64) -> ProviderRates {
    let zero = Layer::default();
    let before = before.unwrap_or(&zero);
    ProviderRates {
        id: after.id,
        name: after.name.clone(),
        export: after.export.clone(),
        class: after.class.clone(),
        rank: after.rank,
        depth,
        ..figures(
            (&before.counted, &after.counted),
            (&before.times, &after.times),
            seconds,
        )
    }
}

fn of_consumer(
    before: Option<&Consumer>,
    after: &Consumer,
    provider: &str,
    depth: usize,
    seconds: f64,
) -> ProviderRates {
    let zero = Consumer::default();
    let before = before.unwrap_or(&zero);
    ProviderRates {
        id: after.id,
        name: match after.class.as_str() {
            // Its geom is named after the provider.
            "DEV" => format!("DEV -> {provider}"),
            class => format!("{class} {} -> {provider}", after.geom),
        },
        class: after.class.clone(),
        consumer: true,
        depth: depth + 1,
        ..figures(
            (&before.counted, &after.counted),
            (&before.times, &after.times),
            seconds,
        )
    }
}

fn figures(counted: (&Counted, &Counted), times: (&Times, &Times), seconds: f64) -> ProviderRates {
    let (before, after) = counted;
    let rests = [
        (before.zero, after.zero),
        (before.flush, after.flush),
        (before.other, after.other),
    ];
    let rest = rests.map(|(before, after)| more(before, after));
    let rest = OperationTotals {
        operations: rest.iter().map(|kind| kind.operations).sum(),
        bytes: rest.iter().map(|kind| kind.bytes).sum(),
    };
    let kinds = [
        more(before.read, after.read),
        more(before.write, after.write),
        more(before.delete, after.delete),
        rest,
    ];
    let (earlier, later) = (times.0.kinds(), times.1.kinds());
    let taken: Vec<(u64, u64)> = earlier
        .iter()
        .zip(later)
        .map(|(before, after)| longer(before, after))
        .collect();
    let rate = |at: usize| rate(kinds[at], taken[at], seconds);
    let operations: u64 = kinds.iter().map(|kind| kind.operations).sum();
    // A server's own request is no request of a client; it is timed and busy all the same.
    let extents = more(before.extents, after.extents).operations;
    let all = operations + extents;
    let samples: u64 = taken.iter().map(|(samples, _)| samples).sum();
    let own_ns = times.1.exclusive_ns.saturating_sub(times.0.exclusive_ns);
    let busy_ns = times.1.busy_ns.saturating_sub(times.0.busy_ns);
    let busy_percent = match (all, samples) {
        (0, _) if after.in_flight == 0 => Some(0.0),
        (0, _) => Some(100.0),
        (_, 0) => None,
        _ => {
            let whole_ns = busy_ns as f64 * all as f64 / samples as f64;
            Some((100.0 * per(whole_ns, seconds * 1e9)).min(100.0))
        }
    };
    ProviderRates {
        in_flight: after.in_flight,
        errors_per_s: per(after.errors.saturating_sub(before.errors) as f64, seconds),
        per_s: per(operations as f64, seconds),
        read: rate(0),
        write: rate(1),
        delete: rate(2),
        other: rate(3),
        extents_per_s: per(extents as f64, seconds),
        busy_percent,
        exclusive_ns: (samples > 0).then(|| own_ns as f64 / samples as f64),
        samples,
        ..ProviderRates::default()
    }
}

fn more(before: OperationTotals, after: OperationTotals) -> OperationTotals {
    OperationTotals {
        operations: after.operations.saturating_sub(before.operations),
        bytes: after.bytes.saturating_sub(before.bytes),
    }
}

/// Samples, and the sum of their times, ns.
fn longer(before: &Spread, after: &Spread) -> (u64, u64) {
    (
        after.samples.saturating_sub(before.samples),
        after.sum_ns.saturating_sub(before.sum_ns),
    )
}

fn rate(kind: OperationTotals, (samples, sum_ns): (u64, u64), seconds: f64) -> Rate {
    let kib = kind.bytes as f64 / 1024.0;
    Rate {
        per_s: per(kind.operations as f64, seconds),
        kib_per_s: per(kib, seconds),
        kib_each: per(kib, kind.operations as f64),
        ms_each: (samples > 0).then(|| sum_ns as f64 / samples as f64 / 1e6),
    }
}

/// 0 of nothing is 0.
fn per(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

/// How the times of a layer are spread: bars of a factor of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bars {
    /// The smallest time of a bar in ns, a power of two (or 0), and how many requests fell into it;
    /// those in the middle may be empty.
    pub bars: Vec<(u64, u64)>,
    /// Samples in all buckets together.
    pub samples: u64,
    /// Half of them took no longer, ns: the lower end of the bucket that this falls into.
    pub median_ns: u64,
    /// 99 of 100 took no longer, ns.
    pub p99_ns: u64,
}

impl Bars {
    /// The times that were taken between two looks, of all kinds of requests.
    pub fn between(before: Option<&Times>, after: &Times) -> Self {
        let mut fine = std::collections::BTreeMap::<u64, u64>::new();
        for spread in after.kinds() {
            for (low, count) in &spread.buckets {
                *fine.entry(*low).or_default() += count;
            }
        }
        for spread in before.map(Times::kinds).into_iter().flatten() {
            for (low, count) in &spread.buckets {
                if let Some(sum) = fine.get_mut(low) {
                    *sum = sum.saturating_sub(*count);
                }
            }
        }
        fine.retain(|_, count| *count > 0);
        let samples = fine.values().fold(0_u64, |sum, it| sum.saturating_add(*it));
        let at = |percent: u64| {
            let rank = u128::from(samples) * u128::from(percent);
            let mut seen = 0_u128;
            let found = fine.iter().find(|(_, count)| {
                seen += u128::from(**count) * 100;
                seen >= rank
            });
            found.map_or(0, |(low, _)| *low)
        };
        let mut coarse = std::collections::BTreeMap::<u32, u64>::new();
        for (low, count) in &fine {
            *coarse
                .entry(low.checked_ilog2().map_or(0, |bit| bit + 1))
                .or_default() += count;
        }
        let ends = coarse.keys().next().zip(coarse.keys().next_back());
        let bars = ends.map_or_else(Vec::new, |(first, last)| {
            let bar = |bit: u32| {
                let low = bit.checked_sub(1).map_or(0, |bit| 1 << bit);
                (low, coarse.get(&bit).copied().unwrap_or(0))
            };
            (*first..=*last).map(bar).collect()
        });
        Self {
            bars,
            samples,
            median_ns: at(50),
            p99_ns: at(99),
        }
    }
}

#[cfg(test)]
mod tests;
