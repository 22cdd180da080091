//! From a look at the stack to a message.

use super::message::{Consumer, Counted, Figures, Layer, OperationTotals, Spread, Times, Timing};
use crate::shown::Shown;
use ugeom_measure::histogram::Histogram;
use ugeom_stack::{Command, ConsumerFigures, GeomView, Look, ProviderView, TimeTotals, Totals};

/// The figures of a look that was taken at `at_ns`.
pub fn of(look: &Look, shown: &Shown, at_ns: u64, timing: Timing, consumers: bool) -> Figures {
    let geoms = &look.tree.geoms;
    let layers = geoms
        .iter()
        .flat_map(|geom| geom.providers.iter().map(move |it| layer(look, geom, it)));
    let mut figures = Figures {
        at_ns,
        timing,
        providers: layers.collect(),
        consumers: Vec::new(),
    };
    for layer in &mut figures.providers {
        layer.export = shown.given_name(&layer.name).map(str::to_owned);
    }
    if consumers {
        let all = geoms
            .iter()
            .flat_map(|geom| geom.consumers.iter().map(move |it| (geom, it)));
        for (geom, view) in all {
            let (Some(provider), Some(seen)) = (view.provider, look.consumers.get(&view.id)) else {
                continue;
            };
            figures.consumers.push(Consumer {
                id: view.id.number(),
                geom: geom.name.clone(),
                class: geom.class.to_owned(),
                provider: provider.number(),
                mode: view.mode.to_string(),
                counted: counted(&seen.totals),
                times: sums(seen),
            });
        }
    }
    figures
}

/// The most requests that any provider has ended: the load, as far as sampling is concerned.
pub fn most_ended(look: &Look) -> u64 {
    look.providers
        .values()
        .map(Totals::ended)
        .max()
        .unwrap_or(0)
}

fn layer(look: &Look, geom: &GeomView, view: &ProviderView) -> Layer {
    let below = geom.consumers.iter().filter_map(|it| it.provider);
    let totals = look.providers.get(&view.id);
    let time = totals.and_then(|totals| totals.time.as_deref());
    Layer {
        id: view.id.number(),
        name: view.name.clone(),
        export: None,
        class: geom.class.to_owned(),
        rank: geom.rank,
        below: below.map(|id| id.number()).collect(),
        mode: view.mode.to_string(),
        media_bytes: view.mediasize_bytes,
        error: view.error.map(|error| error.to_string()),
        counted: totals.map(counted).unwrap_or_default(),
        times: time.map(times).unwrap_or_default(),
    }
}

fn counted(totals: &Totals) -> Counted {
    let kind = |command: Command| OperationTotals {
        operations: totals.operations[command as usize],
        bytes: totals.bytes[command as usize],
    };
    Counted {
        in_flight: totals.in_flight(),
        errors: totals.errors,
        read: kind(Command::Read),
        write: kind(Command::Write),
        delete: kind(Command::Delete),
        zero: kind(Command::Zero),
        flush: kind(Command::Flush),
        extents: kind(Command::Extents),
        other: kind(Command::GetAttr),
    }
}

fn times(time: &TimeTotals) -> Times {
    Times {
        read: spread(&time.read),
        write: spread(&time.write),
        delete: spread(&time.delete),
        other: spread(&time.other),
        exclusive_ns: time.exclusive_ns,
        busy_ns: time.busy_ns,
    }
}

fn spread(histogram: &Histogram) -> Spread {
    Spread {
        samples: histogram.count(),
        sum_ns: narrow(histogram.sum()),
        buckets: histogram
            .buckets()
            .map(|bucket| (bucket.low, bucket.count))
            .collect(),
    }
}

fn sums(seen: &ConsumerFigures) -> Times {
    let [read, write, delete, other] = seen.times.map(|(samples, sum_ns)| Spread {
        samples,
        sum_ns: narrow(sum_ns),
        buckets: Vec::new(),
    });
    Times {
        read,
        write,
        delete,
        other,
        exclusive_ns: seen.exclusive_ns,
        busy_ns: seen.busy_ns,
    }
}

/// 2^64 ns are 584 years of waiting.
fn narrow(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}
