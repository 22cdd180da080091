//! The diagnosis in words: the limit, its range of block sizes, and the other findings.
//!
//! Each rule has its threshold as a constant with its reason.

use super::findings::{Limited, Sums, WayFindings};
use super::subject::{CacheMode, Subject, SweepTarget};
use ugeom_harness::figure::{Unit, amount, value};
use ugeom_harness::total;
use ugeom_measure::Interval;
use ugeom_measure::limits::Fitted;
use ugeom_measure::units::grouped;

/// A model that misses by more than this is no description: at the knee the sum and the maximum of
/// two times, the ends of the model, differ by a factor of two.
const POOR_RMS: f64 = 0.10;

/// An interval whose ends differ by more than this factor gives no limit: a device of that limit
/// could be of any kind.
const WIDE: f64 = 10.0;

/// A rate that rises by less than this with several blocks in flight has not risen: the overhead
/// of a block may shrink by as much when its neighbours are submitted with it.
const RISE: f64 = 1.2;

/// A core that works for this share of the time has none left.
const SATURATED: f64 = 0.95;

/// The supervisor's time for a byte falls "markedly" when it falls by this factor. In the mail of
/// 2004 it falls by 200.
const MARKED: f64 = 4.0;

/// Below this share of the bytes asked for, the rest came from a cache.
const CACHED: f64 = 0.5;

/// A tenth more or less transfers than were asked for may be another program's.
const OTHERS: f64 = 0.1;

/// How the blocks of one step reached the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// One transfer per block.
    OneByOne,
    /// Not all of them: a cache answered.
    Cached,
    /// The kernel merged blocks into larger transfers.
    Merged,
    /// The kernel split blocks into smaller transfers.
    Split,
    /// Another program used the device, too.
    Shared,
}

impl Reached {
    /// How the device served the requests of a step; none without counters.
    pub fn of(sums: &Sums) -> Option<Self> {
        let device = sums.device.as_ref()?;
        let asked = sums.transactions as f64;
        let (transfers, bytes) = (device.transfers() as f64, device.bytes() as f64);
        Some(if bytes < CACHED * sums.bytes as f64 {
            Self::Cached
        } else if transfers < (1.0 - OTHERS) * asked {
            Self::Merged
        } else if bytes > (1.0 + OTHERS) * sums.bytes as f64 {
            Self::Shared
        } else if transfers > (1.0 + OTHERS) * asked {
            Self::Split
        } else {
            Self::OneByOne
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::OneByOne => "none",
            Self::Cached => "cached",
            Self::Merged => "merged",
            Self::Split => "split",
            Self::Shared => "other users",
        }
    }
}

/// Everything there is to say about one way to one target.
pub(super) fn of(subject: &Subject, part: &SweepTarget, found: &WayFindings) -> Vec<String> {
    let mut said = vec![limits(found)];
    said.extend(set(part, found));
    said.extend(depth(found));
    said.extend(processor(found));
    said.extend(transfers(part, found));
    said.extend(supervisor(subject, found));
    said
}

/// The limits that a sweep has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitsReached {
    /// The smallest blocks are bound by the number of transactions.
    pub transactions: bool,
    /// The largest blocks are bound by the bandwidth.
    pub bandwidth: bool,
}

/// The limits that were reached; none where the model does not fit the measurement, or where
/// processes disagree about a limit.
pub(super) fn seen(found: &WayFindings) -> Option<LimitsReached> {
    let seen = by_fit(found)?;
    disagreement(found, seen).is_none().then_some(seen)
}

/// A limit that was reached, and whose spread is too wide to be one.
fn disagreement(found: &WayFindings, seen: LimitsReached) -> Option<String> {
    let Limited::Processes(limits) = &found.limits else { return None };
    let rate = seen.transactions.then(|| limits.transaction_rate());
    let bandwidth = seen.bandwidth.then(|| limits.bandwidth());
    let wide = |limit: &Interval| limit.high > limit.low.max(f64::MIN_POSITIVE) * WIDE;
    let ends = |limit: Interval, unit| {
        let (low, high) = (value(limit.low, unit), value(limit.high, unit));
        format!("the limit of {low} to {high} is too uncertain; a larger --budget narrows it")
    };
    let rate = rate.filter(wide).map(|it| ends(it, Unit::PerSecond));
    rate.or_else(|| {
        bandwidth
            .filter(wide)
            .map(|it| ends(it, Unit::BytesPerSecond))
    })
}

/// The same by the typical times of all processes.
fn by_fit(found: &WayFindings) -> Option<LimitsReached> {
    let fitted = found.limits.fitted()?;
    if fitted.rms > POOR_RMS {
        return None;
    }
    let share = |step: Option<&(u64, Sums)>| {
        step.map_or(0.5, |(block, _)| {
            fitted.limits.transaction_share(*block as f64)
        })
    };
    Some(LimitsReached {
        transactions: share(found.steps.first()) >= 0.5,
        bandwidth: share(found.steps.last()) <= 0.5,
    })
}

/// The limits in a few words; where the model does not fit, the rates at both ends.
pub(super) fn short(found: &WayFindings) -> String {
    let ends = found.steps.first().zip(found.steps.last());
    let (Some(fitted), Some(seen), Some((first, last))) =
        (found.limits.fitted(), seen(found), ends)
    else {
        return unfitted(found).unwrap_or_else(|| limits(found));
    };
    let mut said = Vec::new();
    if seen.transactions {
        said.push(transaction_rate(&found.limits, fitted));
    }
    if seen.bandwidth {
        said.push(bandwidth(&found.limits, fitted));
    }
    if seen.transactions && seen.bandwidth {
        let knee = knee(&found.limits, fitted);
        said.push(format!("crossover at {knee}"));
    }
    match said.is_empty() {
        true => format!(
            "no limit reached between blocks of {} and {}.",
            value(first.0 as f64, Unit::Bytes),
            value(last.0 as f64, Unit::Bytes)
        ),
        false => format!("at most {}.", said.join(", ")),
    }
}

/// The rates at both ends where the model does not describe what was measured: those of the table,
/// of the typical transaction.
fn unfitted(found: &WayFindings) -> Option<String> {
    found.limits.fitted()?;
    let mut each_ns = found
        .steps
        .iter()
        .zip(&found.times)
        .map(|((block, sums), time)| {
            let mean = sums.wall_ns as f64 / sums.transactions.max(1) as f64;
            (
                *block as f64,
                time.as_ref().map_or(mean, |time| time.estimate),
            )
        });
    let first = each_ns.next()?;
    let last = each_ns.next_back()?;
    Some(format!(
        "{} IOPS at {}, {} at {} (no limits fit).",
        whole(1e9 / first.1),
        value(first.0, Unit::Bytes),
        value(last.0 * 1e9 / last.1, Unit::BytesPerSecond),
        value(last.0, Unit::Bytes),
    ))
}

/// The observation of 2004: the system asked the device for fewer and larger transfers than the
/// program asked for, because it reads ahead. Only where that is so.
pub(super) fn read_ahead(found: &WayFindings) -> Option<String> {
    if found.way != CacheMode::Buffered {
        return None;
    }
    let merged = |step: &&(u64, Sums)| Reached::of(&step.1) == Some(Reached::Merged);
    let (block, sums) = found.steps.iter().find(merged)?;
    let done = sums.device?.transfers();
    Some(format!(
        "Read-ahead: {} requests of {} became {} transfers.",
        grouped(sums.transactions),
        value(*block as f64, Unit::Bytes),
        grouped(done)
    ))
}

/// The sentence about the limits alone.
pub(super) fn limits(found: &WayFindings) -> String {
    let Some(fitted) = found.limits.fitted() else {
        let reason = match &found.limits {
            Limited::Unknown(reason) => reason.as_str(),
            _ => "",
        };
        return format!("No verdict about limits: {reason}.");
    };
    let residuals = format!(
        "the model misses measured times by {} (root mean square), {} at most",
        value(fitted.rms * 100.0, Unit::Percent),
        value(fitted.worst() * 100.0, Unit::Percent),
    );
    let Some(seen) = seen(found) else {
        let wide = by_fit(found).and_then(|seen| disagreement(found, seen));
        let reason = wide.unwrap_or(residuals);
        return format!("No verdict about limits: {reason}.");
    };
    let mut said = Vec::new();
    if seen.transactions {
        said.push(format!(
            "small blocks: at most {}",
            transaction_rate(&found.limits, fitted)
        ));
    } else {
        said.push("small blocks: no limit of IOPS was reached".to_owned());
    }
    if seen.bandwidth {
        said.push(format!(
            "large blocks: at most {}",
            bandwidth(&found.limits, fitted)
        ));
    } else {
        said.push("large blocks: no limit of bandwidth was reached".to_owned());
    }
    if seen.transactions && seen.bandwidth {
        let knee = knee(&found.limits, fitted);
        said.push(format!("crossover at {knee}"));
    }
    let once = match &found.limits {
        Limited::Once(_) => " (from too few rounds for intervals)",
        _ => "",
    };
    format!(
        "{}{once}; {residuals}, with p = {:.1}.",
        sentence(&said.join("; ")),
        sharpness(fitted)
    )
}

fn sharpness(fitted: &Fitted) -> f64 {
    fitted.limits.sharpness
}

fn transaction_rate(limits: &Limited, fitted: &Fitted) -> String {
    if let Limited::Processes(limits) = limits {
        let rate = limits.transaction_rate();
        let [estimate, low, high] = [rate.estimate, rate.low, rate.high].map(whole);
        return format!("{estimate} IOPS {}", rate.ends(low, high));
    }
    format!("{} IOPS", whole(fitted.limits.transaction_rate() * 1e9))
}

fn bandwidth(limits: &Limited, fitted: &Fitted) -> String {
    match limits {
        Limited::Processes(limits) => amount(&limits.bandwidth(), Unit::BytesPerSecond),
        _ => value(fitted.limits.bandwidth() * 1e9, Unit::BytesPerSecond),
    }
}

fn knee(limits: &Limited, fitted: &Fitted) -> String {
    match limits {
        Limited::Processes(limits) => amount(&limits.knee(), Unit::Bytes),
        _ => value(fitted.limits.knee(), Unit::Bytes),
    }
}

/// A whole number, its digits in groups of three.
fn whole(number: f64) -> String {
    grouped(number.max(0.0).round() as u64)
}

/// The configured limits of a simulated disk, beside the measured ones.
fn set(part: &SweepTarget, found: &WayFindings) -> Option<String> {
    let (set, limits) = (part.set?, found.limits.fitted()?.limits);
    seen(found)?;
    let rate = 1e9 / set.transaction_ns.max(1) as f64;
    let off = |found: f64, set: f64| value((found / set - 1.0) * 100.0, Unit::Percent);
    Some(format!(
        "This disk simulates {} IOPS and {}: the measured limits differ by {} (IOPS) and {} \
         (bandwidth).",
        whole(rate),
        value(set.bytes_per_second as f64, Unit::BytesPerSecond),
        off(limits.transaction_rate() * 1e9, rate),
        off(limits.bandwidth() * 1e9, set.bytes_per_second as f64),
    ))
}

/// Latency or transaction rate?
pub(super) fn depth(found: &WayFindings) -> Option<String> {
    let ratio = |(depth, ratio): &(u64, ugeom_measure::Interval)| {
        format!("{} at {depth}", amount(ratio, Unit::Times))
    };
    let ratios: Vec<String> = found.depths.iter().map(ratio).collect();
    let block = value(found.steps.first()?.0 as f64, Unit::Bytes);
    let rose = found.depths.iter().any(|(_, ratio)| ratio.low > RISE);
    let flat = found.depths.iter().all(|(_, ratio)| ratio.high < RISE);
    // Where the bandwidth limits the smallest blocks already, their number does not.
    let by_number = seen(found).is_none_or(|seen| seen.transactions);
    let verdict = match (found.depths.is_empty(), rose, flat) {
        (true, ..) => return None,
        (_, true, _) => "Small blocks are limited by latency at queue depth 1",
        (_, _, true) if by_number => "Small blocks are limited by IOPS",
        (_, _, true) => "Small blocks are no faster at higher queue depth",
        _ => "Whether latency limits small blocks is undecided",
    };
    let mut said = format!(
        "{verdict}: relative to queue depth 1, the throughput of blocks of {block} is {}.",
        ratios.join(", ")
    );
    if rose && uses_a_core(&found.steps.first()?.1) {
        said += " But this program used a whole core at queue depth 1, too: the gain may be a \
                 lower CPU cost of each block.";
    }
    Some(said)
}

/// True when this program had a core for itself.
fn uses_a_core(sums: &Sums) -> bool {
    sums.cpu_share() >= SATURATED
}

/// Is a core the limit?
fn processor(found: &WayFindings) -> Option<String> {
    let busiest = |sums: &Sums| sums.busiest_core_ns as f64 / sums.wall_ns.max(1) as f64;
    let own = uses_a_core;
    let foreign = |sums: &Sums| !own(sums) && busiest(sums) >= SATURATED;
    let blocks = |full: &dyn Fn(&Sums) -> bool| {
        let full = found.steps.iter().filter(|(_, sums)| full(sums));
        let sizes: Vec<String> = full
            .map(|(block, _)| value(*block as f64, Unit::Bytes))
            .collect();
        match &sizes[..] {
            [] => None,
            all if all.len() == found.steps.len() => Some("all blocks".to_owned()),
            some => Some(format!("blocks of {}", some.join(", "))),
        }
    };
    let used = |sums: &Sums| value(sums.cpu_share() * 100.0, Unit::Percent);
    let most = found.steps.iter().map(|(_, sums)| sums);
    let most = used(most.max_by(|a, b| a.cpu_share().total_cmp(&b.cpu_share()))?);
    let mut said = match blocks(&own) {
        Some(blocks) => {
            format!("The processor is the limit with {blocks}: this program used a whole core.")
        }
        None => format!("This program used {most} of a core at most."),
    };
    match blocks(&foreign) {
        Some(blocks) => {
            said += &format!(
                " But with {blocks} a core was fully used, by the kernel or by other programs. If \
                 by the kernel, the processor is the limit."
            )
        }
        None if blocks(&own).is_none() => said += " No core is the limit.",
        None => {}
    }
    Some(said)
}

/// Asked for X transfers, the device did Y.
fn transfers(part: &SweepTarget, found: &WayFindings) -> Option<String> {
    let device = part.device.as_ref()?;
    let mut groups: Vec<(Reached, Vec<&(u64, Sums)>)> = Vec::new();
    for step in &found.steps {
        let reached = Reached::of(&step.1)?;
        match groups.last_mut() {
            Some((same, steps)) if *same == reached => steps.push(step),
            _ => groups.push((reached, vec![step])),
        }
    }
    let words = groups.iter().map(|(reached, steps)| group(*reached, steps));
    let words: Vec<String> = words.collect();
    Some(format!(
        "{device}, by the kernel's counters: {}.",
        words.join("; ")
    ))
}

fn group(reached: Reached, steps: &[&(u64, Sums)]) -> String {
    let size = |bytes: u64| value(bytes as f64, Unit::Bytes);
    let (first, last) = (
        steps.first().map_or(0, |one| one.0),
        steps.last().map_or(0, |one| one.0),
    );
    let blocks = match first == last {
        true => format!("blocks of {}", size(first)),
        false => format!("blocks of {} to {}", size(first), size(last)),
    };
    let sum = |of: fn(&Sums) -> u64| total(steps.iter().map(|one| of(&one.1)));
    let asked = sum(|sums| sums.transactions);
    let transfers = sum(|sums| sums.device.unwrap_or_default().transfers());
    let bytes = sum(|sums| sums.device.unwrap_or_default().bytes());
    let asked_bytes = sum(|sums| sums.bytes);
    let counts = format!(
        "{} requests, {} transfers",
        grouped(asked),
        grouped(transfers)
    );
    let each = size(bytes / transfers.max(1));
    let meaning = match reached {
        Reached::OneByOne => "one transfer per request".to_owned(),
        Reached::Cached => {
            let share = 100.0 - 100.0 * bytes as f64 / asked_bytes.max(1) as f64;
            format!(
                "{} of the bytes came from a cache",
                value(share, Unit::Percent)
            )
        }
        Reached::Merged => format!("{each} each: read ahead, written behind or merged"),
        Reached::Split => format!("split into {each} each"),
        Reached::Shared => format!(
            "but {} were transferred for {} of requests: another process used the device",
            size(bytes),
            size(asked_bytes)
        ),
    };
    format!("{blocks}: {counts}, {meaning}")
}

/// Dillon's own rule: the supervisor's time falls markedly with the block size only when the
/// device is raw.
fn supervisor(subject: &Subject, found: &WayFindings) -> Option<String> {
    let (first, last) = (found.steps.first()?, found.steps.last()?);
    if found.way == CacheMode::Stack || subject.random || first.0 == last.0 {
        return None;
    }
    let (small, large) = (first.1.system_ns_per_mib(), last.1.system_ns_per_mib());
    if small <= 0.0 || large <= 0.0 {
        return Some("The system time was too short to be counted.".to_owned());
    }
    let says_raw = small / large >= MARKED;
    let is_raw = found.way == CacheMode::Direct;
    let verdict = match says_raw == is_raw {
        true => "which is correct",
        false => {
            "which is wrong here: each call costs system time, cached or not. The device's \
             counters decide"
        }
    };
    Some(format!(
        "The rule of 2004 (system time falls markedly with the block size only on raw devices): {} \
         to {} per MiB, {}, so the target is {}, {verdict}.",
        value(small, Unit::Ns),
        value(large, Unit::Ns),
        value(small / large, Unit::Times),
        if says_raw { "raw" } else { "buffered" },
    ))
}

/// The first letter in upper case.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_harness::DeviceCounts;

    fn asked(transactions: u64, block: u64, transfers: u64, bytes: u64) -> Option<Reached> {
        let device = DeviceCounts {
            reads: transfers,
            read_bytes: bytes,
            ..Default::default()
        };
        Reached::of(&Sums {
            transactions,
            bytes: transactions * block,
            device: Some(device),
            ..Sums::default()
        })
    }

    #[test]
    fn what_the_device_did_tells_cached_merged_and_split_apart() {
        assert_eq!(asked(1000, 512, 1003, 513_536), Some(Reached::OneByOne));
        assert_eq!(asked(1000, 512, 2, 1024), Some(Reached::Cached));
        assert_eq!(asked(1000, 512, 4, 524_288), Some(Reached::Merged));
        assert_eq!(asked(10, 1 << 20, 40, 10 << 20), Some(Reached::Split));
        assert_eq!(asked(10, 1 << 20, 40, 30 << 20), Some(Reached::Shared));
        assert_eq!(Reached::of(&Sums::default()), None, "no counters");
    }
}
