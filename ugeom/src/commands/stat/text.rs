//! An interval as text, in gstat's columns, and as lines of CSV.
//!
//! Source of the columns, their widths and the names in CSV: gstat(8) of FreeBSD 14. The column of
//! ugeom stands at the end of a line: the exclusive time.

use super::rates::{Interval, ProviderRates, Rate};
use crate::output::printable;
use std::fmt::Write;

/// The columns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    /// Whether the columns of DELETE are shown.
    pub deletes: bool,
    /// FLUSH and the rest, too.
    pub others: bool,
    /// The size of a request, too.
    pub sizes: bool,
}

impl Columns {
    /// The kinds of requests of which size and time are shown.
    fn kinds(self, row: &ProviderRates) -> impl Iterator<Item = &Rate> {
        let delete = self.deletes.then_some(&row.delete);
        [&row.read, &row.write].into_iter().chain(delete)
    }

    pub fn heading(self) -> String {
        let mut line = String::from(" L(q)  ops/s  ");
        for (kind, shown) in [('r', true), ('w', true), ('d', self.deletes)] {
            if shown {
                let size = if self.sizes { "     kB" } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(line, "  {kind}/s{size}   kBps   ms/{kind}  ");
            }
        }
        if self.others {
            line.push_str("  o/s   ms/o  ");
        }
        line.push_str("%busy   excl ns  Name");
        line
    }

    /// A row under the headings; the name may be indented.
    pub fn row(self, interval: &Interval, row: &ProviderRates, indented: bool) -> String {
        let mut line = format!("{:5} {:6.0}", row.in_flight, row.per_s);
        for rate in self.kinds(row) {
            let _ = write!(line, " {:6.0}", rate.per_s);
            if self.sizes {
                let _ = write!(line, " {:6.0}", rate.kib_each);
            }
            let _ = write!(line, " {:6.0} {:>6}", rate.kib_per_s, ms(rate));
        }
        if self.others {
            let _ = write!(line, " {:6.0} {:>6}", row.other.per_s, ms(&row.other));
        }
        let busy = row
            .busy_percent
            .map_or("-".to_owned(), |it| format!("{it:.1}"));
        let own = row.exclusive_ns.map_or("-".to_owned(), |ns| {
            let sign = if interval.is_mostly_clock(ns) {
                "~"
            } else {
                ""
            };
            format!("{sign}{ns:.0}")
        });
        let indent = if indented { 2 * row.depth } else { 0 };
        let name = printable(&row.shown_name());
        let _ = write!(line, "  {busy:>5}  {own:>8}  {:indent$}{name}", "");
        line
    }

    /// The headings of CSV.
    pub fn csv_heading(self) -> String {
        let mut line = String::from("timestamp,name,q-depth,total_ops/s");
        for (kind, shown) in [("read", true), ("write", true), ("delete", self.deletes)] {
            if shown {
                let joint = if kind == "delete" { "-" } else { "_" };
                let size = if self.sizes {
                    format!(",{kind}{joint}sz-KiB")
                } else {
                    String::new()
                };
                let _ = write!(line, ",{kind}/s{size},{kind}-KiB/s,ms/{kind}");
            }
        }
        if self.others {
            line.push_str(",other/s,ms/other");
        }
        line.push_str(",%busy,exclusive-ns,seconds\n");
        line
    }

    /// A row of CSV (RFC 4180); `at` is the end of the interval in seconds since 1970. Unknown
    /// values are empty.
    pub fn csv_row(self, interval: &Interval, row: &ProviderRates, at: f64) -> String {
        let mut line = format!(
            "{at:.3},{},{},{:.3}",
            quoted(&row.shown_name()),
            row.in_flight,
            row.per_s
        );
        let known = |value: Option<f64>, digits: usize| {
            value.map_or(String::new(), |value| format!("{value:.digits$}"))
        };
        for rate in self.kinds(row) {
            let _ = write!(line, ",{:.3}", rate.per_s);
            if self.sizes {
                let _ = write!(line, ",{:.3}", rate.kib_each);
            }
            let _ = write!(line, ",{:.3},{}", rate.kib_per_s, known(rate.ms_each, 6));
        }
        if self.others {
            let ms = known(row.other.ms_each, 6);
            let _ = write!(line, ",{:.3},{ms}", row.other.per_s);
        }
        let (busy, own) = (known(row.busy_percent, 3), known(row.exclusive_ns, 1));
        let _ = writeln!(line, ",{busy},{own},{:.6}", interval.seconds);
        line
    }
}

/// Milliseconds, with fewer digits behind the point as there are more before it, as gstat does;
/// times below 10 us have their unit.
fn ms(rate: &Rate) -> String {
    match rate.ms_each {
        None => "-".to_owned(),
        // Microseconds would be one digit or none.
        Some(ms) if ms < 0.001 => format!("{:.0}ns", ms * 1e6),
        Some(ms) if ms < 0.01 => format!("{:.1}us", ms * 1e3),
        Some(ms) if ms < 100.0 => format!("{ms:.3}"),
        Some(ms) if ms < 1000.0 => format!("{ms:.2}"),
        Some(ms) if ms < 10_000.0 => format!("{ms:.1}"),
        Some(ms) => format!("{ms:.0}"),
    }
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

/// The actual and the wanted interval, and the sampling cost.
pub fn remarks(interval: &Interval, wanted_s: f64) -> [String; 2] {
    let first = format!("dT: {:.3}s  w: {wanted_s:.3}s", interval.seconds);
    let look = interval.look_ns as f64 / 1e3;
    let timed = match interval.timed_one_in {
        0 => "no request is timed".to_owned(),
        1 => "every request is timed".to_owned(),
        n => format!("one request in {n} is timed"),
    };
    // The kernel's devices: its events have their times.
    if interval.clock_ns == 0.0 {
        return [first, timed];
    }
    let second = format!(
        "{timed}, two clock readings of {:.0} ns a layer (~: mostly these); \
         sampling cost {look:.0} us",
        interval.clock_ns
    );
    [first, second]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval() -> Interval {
        let rate = |per_s, kib_each, ms_each| Rate {
            per_s,
            kib_per_s: per_s * kib_each,
            kib_each,
            ms_each,
        };
        let row = ProviderRates {
            export: None,
            id: 1,
            name: "disk,\u{1b}[2J \"a\"".to_owned(),
            class: "FILE".to_owned(),
            consumer: false,
            rank: 1,
            depth: 1,
            in_flight: 2,
            errors_per_s: 0.0,
            per_s: 1234.5,
            read: rate(1000.0, 4.0, Some(0.25)),
            write: rate(234.5, 0.5, Some(123.456)),
            delete: rate(0.0, 0.0, None),
            other: rate(3.0, 0.0, Some(12_345.6)),
            extents_per_s: 7.0,
            busy_percent: Some(12.34),
            exclusive_ns: Some(80.4),
            samples: 9,
        };
        Interval {
            seconds: 1.002,
            counts: true,
            timed_one_in: 64,
            clock_ns: 20.4,
            look_ns: 85_000,
            rows: vec![row],
        }
    }

    #[test]
    fn columns_stand_under_their_headings_as_in_gstat() {
        let interval = interval();
        let row = &interval.rows[0];
        let plain = Columns::default();
        let heading =
            " L(q)  ops/s    r/s   kBps   ms/r    w/s   kBps   ms/w  %busy   excl ns  Name";
        assert_eq!(plain.heading(), heading);
        let line = "    2   1234   1000   4000  0.250    234    117 123.46   12.3       ~80  ";
        assert_eq!(
            plain.row(&interval, row, false),
            format!("{line}disk,\\x1b[2J \"a\"")
        );
        assert_eq!(
            plain.row(&interval, row, true),
            format!("{line}  disk,\\x1b[2J \"a\"")
        );
        let all = Columns {
            deletes: true,
            others: true,
            sizes: true,
        };
        let (heading, line) = (all.heading(), all.row(&interval, row, false));
        assert_eq!(heading.find("Name"), line.find("disk"), "{heading}\n{line}");
        for (word, value) in [("ms/o", "12346"), ("ms/d", "-"), ("%busy", "12.3")] {
            let end = heading.find(word).expect(word) + word.len();
            assert!(line[..end].ends_with(value), "{word}\n{heading}\n{line}");
        }
    }

    #[test]
    fn no_latency_is_shown_as_nothing() {
        let shown = |ms_each| {
            ms(&Rate {
                ms_each: Some(ms_each),
                ..interval().rows[0].read
            })
        };
        for (ms_each, text) in [
            (0.000_004, "4ns"),
            (0.000_28, "280ns"),
            (0.004_26, "4.3us"),
            (0.0426, "0.043"),
            (0.25, "0.250"),
        ] {
            assert_eq!(shown(ms_each), text);
        }
    }

    #[test]
    fn csv_has_the_names_of_gstat_and_what_is_ours_behind() {
        let interval = interval();
        let row = &interval.rows[0];
        let gstat = "timestamp,name,q-depth,total_ops/s,read/s,read-KiB/s,ms/read,write/s,\
                     write-KiB/s,ms/write,%busy";
        let heading = Columns::default().csv_heading();
        assert_eq!(heading, format!("{gstat},exclusive-ns,seconds\n"));
        let line = Columns::default().csv_row(&interval, row, 1.5);
        assert_eq!(
            line,
            "1.500,\"disk,\u{1b}[2J \"\"a\"\"\",2,1234.500,1000.000,4000.000,0.250000,234.500,\
             117.250,123.456000,12.340,80.4,1.002000\n"
        );
        let all = Columns {
            deletes: true,
            others: true,
            sizes: true,
        };
        let gstat = "timestamp,name,q-depth,total_ops/s,read/s,read_sz-KiB,read-KiB/s,ms/read,\
                     write/s,write_sz-KiB,write-KiB/s,ms/write,delete/s,delete-sz-KiB,\
                     delete-KiB/s,ms/delete,other/s,ms/other,%busy";
        assert_eq!(all.csv_heading(), format!("{gstat},exclusive-ns,seconds\n"));
        let mut plain = row.clone();
        plain.name = "a".to_owned();
        let line = all.csv_row(&interval, &plain, 1.5);
        assert_eq!(
            line.matches(',').count(),
            all.csv_heading().matches(',').count()
        );
    }

    #[test]
    fn what_looking_costs_is_said() {
        let [first, second] = remarks(&interval(), 1.0);
        assert_eq!(first, "dT: 1.002s  w: 1.000s");
        assert!(second.starts_with("one request in 64 is timed, two clock readings of 20 ns"));
        assert!(second.ends_with("sampling cost 85 us"));
    }
}
