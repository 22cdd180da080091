//! `ugeom iostat`: the load of devices and processors, interval after interval.

mod figures;

use self::figures::{self as iostat, Processors};
pub(super) use self::figures::{Device, DirectionRates};
use crate::failure::Usage;
use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueHint};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ugeom_classes::path_of;
use ugeom_devices::sweep::is_path;
use ugeom_format::diskstats::{Stat, parse_stat};
use ugeom_machine::block_device::{self, BlockDevice};
use ugeom_machine::cpu::SystemTimes;
use ugeom_machine::{clock, interrupt};
use ugeom_measure::units::{self, TimeUnit};

const LONG_ABOUT: &str = "\
Prints the load of block devices and processors: first since boot, then, with an INTERVAL (2, \
500ms, 5m; a bare number counts seconds), of each interval, COUNT times or until Ctrl-C.

The columns are those of BSD's iostat: KB/t is the size of a transfer, tps transfers a second, and \
us ni sy in id the shares of all cores' time in % (in is interrupts). With -x they are those of \
sysstat's iostat -x.

A TARGET is a device (vda, /dev/vda) or a file, which stands for the disk below it, through \
partitions. The default is every device that has completed a request.";

const EXAMPLES: &str = "\
Examples:
  ugeom iostat vda 1          # once a second
  ugeom iostat -x . 2 5       # this folder's disk, sysstat's columns
  ugeom iostat --json vda     # one line of JSON per report";

/// Print the load of devices and processors, as iostat does
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Iostat {
    /// A device or a path on it, then the interval (2, 500ms, 5m), then the number of reports
    #[arg(value_name = "TARGET INTERVAL COUNT", num_args = 0..=3, value_hint = ValueHint::FilePath,
          value_parser = crate::opening::word())]
    words: Vec<String>,

    /// Print sysstat's extended columns
    #[arg(short = 'x')]
    extended: bool,

    /// Print each report as a line of JSON
    #[arg(long)]
    json: bool,
}

/// The arguments as values.
#[derive(Debug, PartialEq)]
struct Asked {
    target: Option<String>,
    interval: Option<Duration>,
    /// Number of reports; none for reports until Ctrl-C.
    count: Option<u64>,
}

/// A report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    seconds: f64,
    devices: &'a [Device],
    processors: &'a Processors,
}

/// The counters at one moment.
struct Reading {
    at_ns: u64,
    stats: Vec<Stat>,
    processors: SystemTimes,
}

/// The heading is repeated after so many reports, as BSD does on a terminal of 24 lines.
const HEADING_EVERY: u64 = 20;

/// Longer intervals are a mistake: a day.
const INTERVAL_MAX: Duration = Duration::from_secs(86_400);

/// How often a wait looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

impl Iostat {
    pub fn run(&self) -> Result<()> {
        let asked = Asked::of(&self.words)?;
        let devices = devices(asked.target.as_deref())?;
        let stop = interrupt::catch().context("listening for Ctrl-C")?;
        let mut before = Reading {
            at_ns: clock::now_ns().saturating_sub(uptime_ns()?),
            stats: vec![Stat::default(); devices.len()],
            processors: SystemTimes::default(),
        };
        let mut done = 0;
        loop {
            let after = Reading::now(&devices)?;
            self.print(&devices, &before, &after, done)?;
            before = after;
            done += 1;
            let Some(interval) = asked.interval else { return Ok(()) };
            if asked.count.is_some_and(|count| done >= count) || !wait(interval, stop) {
                return Ok(());
            }
        }
    }

    fn print(
        &self,
        names: &[BlockDevice],
        before: &Reading,
        after: &Reading,
        done: u64,
    ) -> Result<()> {
        let seconds = after.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let stats = before.stats.iter().zip(&after.stats).zip(names);
        let devices: Vec<Device> = stats
            .map(|((before, after), device)| Device::between(&device.name, before, after, seconds))
            .collect();
        let processors = Processors::between(&before.processors, &after.processors);
        if self.json {
            let report = Report {
                seconds,
                devices: &devices,
                processors: &processors,
            };
            return output::print_json_line(&report);
        }
        if self.extended {
            let lines: String = devices.iter().map(iostat::extended_line).collect();
            return output::print(&format!("{}{lines}\n", iostat::EXTENDED_HEAD));
        }
        let head = match done % HEADING_EVERY {
            0 => iostat::bsd_head(&devices),
            _ => String::new(),
        };
        output::print(&(head + &iostat::bsd_line(&devices, &processors)))
    }
}

impl Asked {
    fn of(words: &[String]) -> Result<Self> {
        let mut words = words.iter().map(String::as_str).peekable();
        let is_time = |word: &str| word.parse::<f64>().is_ok() || seconds(word).is_some();
        let target = words.next_if(|word| !is_time(word)).map(str::to_owned);
        let interval = words.next().map(interval).transpose()?;
        let count = words.next().map(count).transpose()?;
        match words.next() {
            Some(word) => {
                let what = format!("`{word}` is one word too many: TARGET INTERVAL COUNT");
                Err(Usage(what).into())
            }
            None => Ok(Self {
                target,
                interval,
                count,
            }),
        }
    }
}

/// A time in the program's grammar; a bare number counts seconds.
fn seconds(word: &str) -> Option<Duration> {
    let ns = units::duration_ns(word, TimeUnit::Seconds).ok()?;
    Some(Duration::from_nanos(ns))
}

fn interval(word: &str) -> Result<Duration> {
    let possible = seconds(word).filter(|time| !time.is_zero() && *time <= INTERVAL_MAX);
    let wrong = || {
        Usage(format!(
            "`{word}` is not an interval: write a time above 0, at most 24h, such as 2, 500ms or 5m"
        ))
    };
    Ok(possible.ok_or_else(wrong)?)
}

fn count(word: &str) -> Result<u64> {
    let count = word.parse::<u64>().ok().filter(|count| *count > 0);
    let wrong = || {
        Usage(format!(
            "`{word}` is no count: write a whole number, 1 or more"
        ))
    };
    Ok(count.ok_or_else(wrong)?)
}

/// Waits; false when a stop was asked for.
pub(super) fn wait(interval: Duration, stop: &AtomicBool) -> bool {
    let end_ns = clock::now_ns() + u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    loop {
        let left_ns = end_ns.saturating_sub(clock::now_ns());
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        if left_ns == 0 {
            return true;
        }
        std::thread::sleep(LOOK.min(Duration::from_nanos(left_ns)));
    }
}

/// The device that was asked for, or all that were ever used.
fn devices(target: Option<&str>) -> Result<Vec<BlockDevice>> {
    let Some(text) = target else {
        let used = |device: &BlockDevice| {
            stat(device).is_ok_and(|stat| stat.reads.completed + stat.writes.completed > 0)
        };
        let devices: Vec<BlockDevice> = block_device::all().into_iter().filter(used).collect();
        if devices.is_empty() {
            bail!("no block device has completed a request");
        }
        return Ok(devices);
    };
    if let Some(device) = block_device::named(text) {
        return Ok(vec![device]);
    }
    if !path_of(text).exists() && is_path(text).is_none() {
        bail!(
            "{text} is a stack, which exists only in its process; ugeom stat watches a served one, \
             and ugeom lab sweep prints its counters"
        );
    }
    let below = block_device::below(&path_of(text)).with_context(|| text.to_owned())?;
    let device = below.into_iter().next();
    let device =
        device.ok_or_else(|| anyhow!("{text}: the kernel has no block device below it"))?;
    Ok(vec![device])
}

fn stat(device: &BlockDevice) -> Result<Stat> {
    let place = || format!("the counters of {}", device.name);
    let text = device.stat().with_context(place)?;
    parse_stat(&text).with_context(place)
}

impl Reading {
    fn now(devices: &[BlockDevice]) -> Result<Self> {
        Ok(Self {
            at_ns: clock::now_ns(),
            stats: devices.iter().map(stat).collect::<Result<_>>()?,
            processors: SystemTimes::now().context("/proc/stat")?,
        })
    }
}

/// How long the machine has been up, ns: proc(5).
fn uptime_ns() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/uptime").context("/proc/uptime")?;
    let seconds = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    let seconds = seconds.ok_or_else(|| anyhow!("/proc/uptime does not begin with a number"))?;
    Ok((seconds * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<Asked> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Asked::of(&words)
    }

    #[test]
    fn target_interval_and_count_may_each_be_left_out() {
        let of = |target: Option<&str>, seconds: Option<u64>, count| Asked {
            target: target.map(str::to_owned),
            interval: seconds.map(Duration::from_secs),
            count,
        };
        assert_eq!(asked("").unwrap(), of(None, None, None));
        assert_eq!(asked("vda").unwrap(), of(Some("vda"), None, None));
        assert_eq!(asked("vda 1").unwrap(), of(Some("vda"), Some(1), None));
        assert_eq!(asked("2 5").unwrap(), of(None, Some(2), Some(5)));
        assert_eq!(asked("./3 2 5").unwrap(), of(Some("./3"), Some(2), Some(5)));
        assert_eq!(asked("vda 5m").unwrap(), of(Some("vda"), Some(300), None));
        assert_eq!(asked("24h 3").unwrap(), of(None, Some(86_400), Some(3)));
    }

    #[test]
    fn what_is_no_interval_or_count_is_named() {
        for (text, word) in [
            ("vda 0", "`0` is not an interval"),
            ("vda -1", "`-1` is not an interval"),
            ("vda x", "`x` is not an interval"),
            ("vda 1e9", "`1e9` is not an interval"),
            ("vda 25h", "`25h` is not an interval"),
            ("vda nan", "`nan` is not an interval"),
            ("vda 1 0", "`0` is no count"),
            ("1 2 3", "`3` is one word too many"),
        ] {
            let error = asked(text).unwrap_err().to_string();
            assert!(error.starts_with(word), "{text}: {error}");
        }
    }
}
