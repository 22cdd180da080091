//! The load of devices and processors between two moments, in the columns of BSD's iostat and of
//! sysstat's `iostat -x`. Pure: the counters come from elsewhere.
//!
//! Sources: usr.sbin/iostat/iostat.c of FreeBSD for the first form, iostat(1) and rd_stats.c of
//! sysstat 12 for the second; the columns of the mail of 26 September 2004 are the first.

use serde::Serialize;
use ugeom_format::diskstats::{Requests, SECTOR_BYTES, Stat};
use ugeom_machine::cpu::SystemTimes;

/// The rates of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectionRates {
    /// IOPS of this direction.
    pub per_second: f64,
    /// Throughput of this direction, KiB/s.
    pub kib_per_second: f64,
    /// Requests a second that were merged into others.
    pub merged_per_second: f64,
    /// Those as a share of all that were asked for, per cent.
    pub merged_percent: f64,
    /// The time of a request on average, ms.
    pub await_ms: f64,
    /// The size of a request on average, KiB.
    pub request_kib: f64,
}

impl DirectionRates {
    fn of(before: &Requests, after: &Requests, seconds: f64) -> Self {
        let less = |of: fn(&Requests) -> u64| of(after).saturating_sub(of(before)) as f64;
        let (completed, merged) = (less(|one| one.completed), less(|one| one.merged));
        let kib = less(|one| one.sectors) * SECTOR_BYTES as f64 / 1024.0;
        Self {
            per_second: completed / seconds,
            kib_per_second: kib / seconds,
            merged_per_second: merged / seconds,
            merged_percent: ratio(100.0 * merged, completed + merged),
            await_ms: ratio(less(|one| one.time_ms), completed),
            request_kib: ratio(kib, completed),
        }
    }

    fn columns(&self) -> String {
        format!(
            " {:7.2} {:9.2} {:8.2} {:6.2} {:7.2} {:8.2}",
            self.per_second,
            self.kib_per_second,
            self.merged_per_second,
            self.merged_percent,
            self.await_ms,
            self.request_kib,
        )
    }
}

fn ratio(above: f64, below: f64) -> f64 {
    if below > 0.0 { above / below } else { 0.0 }
}

/// The load of a device in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Device {
    /// Name of the device in /proc/diskstats.
    pub name: String,
    /// Rates of read requests.
    pub reads: DirectionRates,
    /// Rates of write requests.
    pub writes: DirectionRates,
    /// Rates of discard requests.
    pub discards: DirectionRates,
    /// Flush requests a second.
    pub flushes_per_second: f64,
    /// The time of a flush on average, ms.
    pub flush_await_ms: f64,
    /// The mean number of requests in flight.
    pub queue_length: f64,
    /// The share of the time with requests in flight, per cent.
    pub busy_percent: f64,
}

impl Device {
    /// The load between two readings, `seconds` apart.
    pub fn between(name: &str, before: &Stat, after: &Stat, seconds: f64) -> Self {
        let seconds = seconds.max(1e-9);
        let less = |of: fn(&Stat) -> u64| of(after).saturating_sub(of(before)) as f64;
        let flushes = |stat: &Stat| stat.flushes.unwrap_or_default();
        let (earlier, later) = (flushes(before), flushes(after));
        let flushed = later.completed.saturating_sub(earlier.completed) as f64;
        let flush_ms = later.time_ms.saturating_sub(earlier.time_ms) as f64;
        let discards = |stat: &Stat| stat.discards.unwrap_or_default();
        Self {
            name: name.to_owned(),
            reads: DirectionRates::of(&before.reads, &after.reads, seconds),
            writes: DirectionRates::of(&before.writes, &after.writes, seconds),
            discards: DirectionRates::of(&discards(before), &discards(after), seconds),
            flushes_per_second: flushed / seconds,
            flush_await_ms: ratio(flush_ms, flushed),
            queue_length: less(|stat| stat.queue_ms) / 1000.0 / seconds,
            busy_percent: less(|stat| stat.busy_ms) / 10.0 / seconds,
        }
    }

    /// Reads, writes and discards a second, which is what BSD counts as transfers.
    pub fn transfers_per_second(&self) -> f64 {
        self.reads.per_second + self.writes.per_second + self.discards.per_second
    }

    fn kib_per_second(&self) -> f64 {
        let kinds = [&self.reads, &self.writes, &self.discards];
        kinds.iter().map(|kind| kind.kib_per_second).sum()
    }
}

/// The load of the processors in an interval, per cent of all cores' time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Processors {
    /// CPU time in user space, percent.
    pub user_percent: f64,
    /// In user space at lowered priority.
    pub nice_percent: f64,
    /// CPU time in the kernel, percent.
    pub system_percent: f64,
    /// CPU time in interrupt handlers, percent.
    pub interrupt_percent: f64,
    /// Time without work, percent.
    pub idle_percent: f64,
}

impl Processors {
    /// The load between two readings.
    pub fn between(before: &SystemTimes, after: &SystemTimes) -> Self {
        let spent = after.since(before);
        let interrupt_ns = spent.irq_ns + spent.softirq_ns;
        let idle_ns = spent.idle_ns + spent.iowait_ns;
        let all = [
            spent.user_ns,
            spent.nice_ns,
            spent.system_ns,
            interrupt_ns,
            idle_ns,
        ];
        let total: u64 = all.iter().sum();
        let [user, nice, system, interrupt, idle] =
            all.map(|ns| ratio(100.0 * ns as f64, total as f64));
        Self {
            user_percent: user,
            nice_percent: nice,
            system_percent: system,
            interrupt_percent: interrupt,
            idle_percent: idle,
        }
    }
}

/// The two lines above the figures in BSD's form.
pub fn bsd_head(devices: &[Device]) -> String {
    let names = devices
        .iter()
        .map(|device| format!("{:>16.15} ", device.name));
    let names: String = names.collect();
    let columns = "  KB/t tps  MB/s ".repeat(devices.len());
    format!("      tty{names}            cpu\n tin tout{columns} us ni sy in id\n")
}

/// A line of figures in BSD's form. Linux does not count the characters of terminals: 0.
pub fn bsd_line(devices: &[Device], processors: &Processors) -> String {
    let columns = devices.iter().map(|device| {
        let (transfers, kib) = (device.transfers_per_second(), device.kib_per_second());
        let each = ratio(kib, transfers);
        format!(" {each:5.2} {transfers:3.0} {:5.2} ", kib / 1024.0)
    });
    let columns: String = columns.collect();
    let Processors {
        user_percent,
        nice_percent,
        system_percent,
        interrupt_percent,
        idle_percent,
    } = processors;
    format!(
        "   0    0{columns}{user_percent:3.0}{nice_percent:3.0}{system_percent:3.0}\
         {interrupt_percent:3.0}{idle_percent:3.0}\n"
    )
}

/// The line above the figures in sysstat's extended form.
pub const EXTENDED_HEAD: &str = "\
Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     \
w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     \
d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     \
f/s f_await  aqu-sz  %util\n";

/// A line of figures in sysstat's extended form.
pub fn extended_line(device: &Device) -> String {
    format!(
        "{:<13}{}{}{} {:7.2} {:7.2} {:7.2} {:6.2}\n",
        device.name,
        device.reads.columns(),
        device.writes.columns(),
        device.discards.columns(),
        device.flushes_per_second,
        device.flush_await_ms,
        device.queue_length,
        device.busy_percent,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_format::diskstats::parse_stat;

    fn between(before: &str, after: &str, seconds: f64) -> Device {
        let [before, after] = [before, after].map(|text| parse_stat(text).unwrap());
        Device::between("vda", &before, &after, seconds)
    }

    const NOTHING: &str = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn the_line_of_2004_comes_out_of_its_counters() {
        // 14,629 reads of 512 bytes in a second, 39 % of the time in the kernel.
        let disk = between(
            "7 0 9 0 0 0 0 0 0 0 0",
            "14636 0 14638 0 0 0 0 0 0 0 0",
            1.0,
        );
        let disk = Device {
            name: "ad0".to_owned(),
            ..disk
        };
        let processors = Processors {
            system_percent: 39.0,
            idle_percent: 61.0,
            ..Processors::default()
        };
        let text = bsd_head(std::slice::from_ref(&disk)) + &bsd_line(&[disk], &processors);
        assert_eq!(
            text,
            "      tty             ad0             cpu\n\
             \x20tin tout  KB/t tps  MB/s  us ni sy in id\n\
             \x20  0    0  0.50 14629  7.14   0  0 39  0 61\n"
        );
    }

    #[test]
    fn every_extended_column_is_computed_as_sysstat_does() {
        let after = "200 50 6400 300 100 300 8000 500 1 900 850 10 0 4096 20 4 2";
        let device = between(NOTHING, after, 2.0);
        assert_eq!(
            extended_line(&device),
            "vda            100.00   1600.00    25.00  20.00    1.50    16.00   50.00   2000.00   \
             150.00  75.00    5.00    40.00    5.00   1024.00     0.00   0.00    2.00   204.80    \
             2.00    0.50    0.42  45.00\n"
        );
        let names = EXTENDED_HEAD.split_whitespace().count();
        assert_eq!(extended_line(&device).split_whitespace().count(), names);
        let idle = extended_line(&between(after, after, 1.0));
        assert!(
            idle.split_whitespace()
                .skip(1)
                .all(|column| column == "0.00"),
            "{idle}"
        );
        // A device that was replaced counts from 0 again: nothing, and no wrap-around.
        assert_eq!(
            between(after, NOTHING, 1.0).reads,
            DirectionRates::default()
        );
    }

    #[test]
    fn the_shares_of_the_processors_add_up() {
        let after = SystemTimes {
            user_ns: 50,
            system_ns: 20,
            irq_ns: 4,
            softirq_ns: 6,
            idle_ns: 15,
            iowait_ns: 5,
            steal_ns: 1000,
            ..SystemTimes::default()
        };
        let shares = Processors::between(&SystemTimes::default(), &after);
        assert_eq!((shares.user_percent, shares.system_percent), (50.0, 20.0));
        assert_eq!(
            (shares.interrupt_percent, shares.idle_percent),
            (10.0, 20.0)
        );
        let none = Processors::between(&after, &after);
        assert_eq!(none, Processors::default());
    }
}
