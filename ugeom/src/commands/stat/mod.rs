//! `ugeom stat`: the load and cost of each layer of a server, while it works.

mod halves;
mod kernel;
mod keys;
mod rates;
mod terminal;
mod text;
mod view;
mod watch;

use super::iostat::wait;
use crate::failure::Usage;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use rates::Interval;
use regex_lite::Regex;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use text::Columns;
use ugeom_machine::interrupt;
use ugeom_measure::units::{self, TimeUnit};
use ugeom_serve::control::{
    Client, ControlError, Exposition, Figures, FoundServer, openmetrics, running,
};

const LONG_ABOUT: &str = "\
Shows the load and the cost of every provider of a server (ugeom serve), in the columns of \
FreeBSD's gstat, and excl ns, the time that a request spends in this layer and not below it.

The default is the only server of this user. On a terminal the view is redrawn \
each interval: q ends it, ? lists the keys. With -b, or when stdout or stdin is no terminal, \
one report is printed.

The server counts all requests and times some of them while it is watched; the head has \
the share and the sampling cost. An exclusive time below five clock readings is marked with ~: \
it is mostly the cost of the clock. docs/stat.md has the columns, the keys and the formulas.

With --kernel the rows are the kernel's devices, printed and not redrawn: counts from \
/proc/diskstats, excl ns from a trace of every request (docs/trace.md), which needs root. \
The wait of threads for a processor, once a device has completed their requests, is a row at the \
end. For a device on a file of a FUSE server of ugeom, the server's layers are rows, too.";

const EXAMPLES: &str = "\
Examples:
  ugeom stat                       # watch the running server
  ugeom stat -f 's1|s2' -I 250ms   # these partitions, every 250 ms
  ugeom stat -b -a                 # only busy providers, once
  ugeom stat -C -n 60 > stat.csv   # a minute, for a spreadsheet
  ugeom stat -B --kernel vda       # the kernel's disk
  ugeom stat --openmetrics         # all counters, for Prometheus
  ugeom stat --json -b | jq '.rows[] | {name, exclusive_ns}'";

/// Watch the load and the cost of each layer of a server, as gstat does
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Stat {
    /// The server's control socket [default: that of the only running server]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    socket: Option<PathBuf>,

    /// Show the kernel's devices instead of a server: all, or the chains of these DEVICES
    #[arg(long, value_name = "DEVICE", num_args = 0..,
          conflicts_with_all = ["socket", "consumers", "openmetrics"])]
    kernel: Option<Vec<String>>,

    /// DEVICES behind other options: `--kernel -b vda`
    #[arg(value_name = "DEVICE", requires = "kernel", hide = true)]
    behind: Vec<String>,

    /// Only providers with requests
    #[arg(short = 'a')]
    active: bool,

    /// Print one report and end
    #[arg(short = 'b')]
    batch: bool,

    /// Print reports until Ctrl-C
    #[arg(short = 'B', conflicts_with = "batch")]
    endless: bool,

    /// Print CSV until Ctrl-C, or once with -b
    #[arg(short = 'C', conflicts_with = "json")]
    csv: bool,

    /// Show consumers, too: layers, and the connections of clients (DEV)
    #[arg(short = 'c')]
    consumers: bool,

    /// Show DELETE, too
    #[arg(short = 'd')]
    deletes: bool,

    /// Only names matching this regular expression
    #[arg(short = 'f', value_name = "REGEX", value_parser = regex)]
    filter: Option<Regex>,

    /// Length of an interval: 500ms, 2s; a bare number counts microseconds, as in gstat
    #[arg(short = 'I', value_name = "INTERVAL", default_value = "1s", value_parser = interval)]
    interval: Duration,

    /// Show FLUSH and all other requests, too
    #[arg(short = 'o')]
    others: bool,

    /// Only bottom providers
    #[arg(short = 'p')]
    physical: bool,

    /// Show the size of a request, too
    #[arg(short = 's')]
    sizes: bool,

    /// End after N reports
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    count: Option<u64>,

    /// Print each report as a line of JSON, until Ctrl-C, or once with -b
    #[arg(long)]
    json: bool,

    /// Print all counters, and the latencies of one interval, as OpenMetrics text, and end
    #[arg(long, conflicts_with_all = ["csv", "json"])]
    openmetrics: bool,
}

/// Shorter intervals would report the same sample twice.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

/// Longer intervals are a mistake: a day.
const INTERVAL_MAX: Duration = Duration::from_secs(86_400);

/// Reads an interval; a bare number counts microseconds, as gstat's does.
fn interval(text: &str) -> Result<Duration, String> {
    let ns = units::duration_ns(text, TimeUnit::Microseconds).map_err(|error| error.with_help())?;
    let interval = Duration::from_nanos(ns);
    if (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        return Ok(interval);
    }
    let hint = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("; {text} without a unit is microseconds, {text}s is seconds")
    } else {
        String::new()
    };
    Err(format!("an interval is from 50ms to 24h{hint}"))
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

/// The shown rows.
#[derive(Clone, Default)]
struct Shown {
    active: bool,
    physical: bool,
    filter: Option<Regex>,
}

impl Shown {
    fn has(&self, row: &rates::ProviderRates) -> bool {
        let active = row.per_s > 0.0 || row.in_flight > 0;
        (active || !self.active)
            && (row.rank == 1 || !self.physical)
            && self
                .filter
                .as_ref()
                .is_none_or(|it| it.is_match(&row.shown_name()))
    }
}

/// A number of reports.
fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "write a number from 1 on".to_owned())
}

impl Stat {
    pub fn run(&self) -> Result<()> {
        if let Some(devices) = &self.kernel {
            return kernel::run(self, &[devices.as_slice(), &self.behind].concat());
        }
        let path = match &self.socket {
            Some(path) => path.clone(),
            None => the_only(running())?,
        };
        let client = Client::connect(&path)?;
        if self.openmetrics {
            return self.print_openmetrics(client);
        }
        let printing = self.batch || self.endless || self.csv || self.json;
        let person = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if printing || !person {
            self.print(client)
        } else {
            view::run(self, client)
        }
    }

    fn columns(&self) -> Columns {
        Columns {
            deletes: self.deletes,
            others: self.others,
            sizes: self.sizes,
        }
    }

    fn shown(&self) -> Shown {
        Shown {
            active: self.active,
            physical: self.physical,
            filter: self.filter.clone(),
        }
    }

    /// How many reports; none: until Ctrl-C.
    fn reports(&self) -> Option<u64> {
        let endless = (self.endless || self.csv || self.json) && !self.batch;
        self.count.or(if endless { None } else { Some(1) })
    }

    fn print(&self, mut client: Client) -> Result<()> {
        let stop = interrupt::catch().context("listening for Ctrl-C")?;
        let mut before = first_figures(&mut client, self.consumers, stop)?;
        if !before.timing.counts {
            output::warn(COUNTS_NOTHING);
        }
        if self.csv {
            output::print(&self.columns().csv_heading())?;
        }
        let mut done = 0;
        while self.reports().is_none_or(|count| done < count) && wait(self.interval, stop) {
            let after = client.figures(self.consumers)?;
            self.report(Interval::between(&before, &after))?;
            before = after;
            done += 1;
        }
        Ok(())
    }

    /// The server takes times while it is watched, so it is watched for one interval.
    fn print_openmetrics(&self, mut client: Client) -> Result<()> {
        let stop = interrupt::catch().context("listening for Ctrl-C")?;
        first_figures(&mut client, true, stop)?;
        wait(self.interval, stop);
        let figures = client.figures(true)?;
        output::print(&openmetrics(
            client.facts(),
            &figures,
            Exposition::OpenMetrics,
        ))
    }

    fn report(&self, mut interval: Interval) -> Result<()> {
        let shown = self.shown();
        interval.rows.retain(|row| shown.has(row));
        let columns = self.columns();
        if self.json {
            return output::print_json_line(&interval);
        }
        if self.csv {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let at = now.map_or(0.0, |now| now.as_secs_f64());
            let rows = interval.rows.iter();
            let lines: String = rows
                .map(|row| columns.csv_row(&interval, row, at))
                .collect();
            return output::print(&lines);
        }
        let [first, second] = text::remarks(&interval, self.interval.as_secs_f64());
        let rows = interval.rows.iter();
        let rows: String = rows
            .map(|row| columns.row(&interval, row, false) + "\n")
            .collect();
        output::print(&format!("{first}  {second}\n{}\n{rows}", columns.heading()))
    }
}

/// The load in this time tells a server how many requests to time in the first interval.
const FIRST_LOOK: Duration = Duration::from_millis(50);

/// The figures at the beginning of the first interval.
fn first_figures(
    client: &mut Client,
    consumers: bool,
    stop: &AtomicBool,
) -> Result<Figures, ControlError> {
    client.figures(consumers)?;
    wait(FIRST_LOOK, stop);
    client.figures(consumers)
}

/// Why there are no figures.
const COUNTS_NOTHING: &str = "the server counts nothing: it was started with --set statistics=off";

/// The server, when only one runs.
fn the_only(found: Vec<FoundServer>) -> Result<PathBuf> {
    let names = |found: &[FoundServer]| {
        let lines = found.iter().map(|found| {
            let path = found.path.display();
            let who = match &found.facts {
                Ok(facts) => format!("{} (process {})", facts.target, facts.pid),
                Err(why) => why.clone(),
            };
            format!("\n  --socket {path}   {}", output::printable(&who))
        });
        lines.collect::<String>()
    };
    let (good, bad): (Vec<FoundServer>, Vec<FoundServer>) =
        found.into_iter().partition(|found| found.facts.is_ok());
    match &good[..] {
        [one] => Ok(one.path.clone()),
        [] if bad.is_empty() => bail!(
            "no server of this user runs; start one with `ugeom serve`, or name its control \
             socket with --socket"
        ),
        [] => bail!("no server answers:{}", names(&bad)),
        several => Err(Usage(format!(
            "{} servers run, choose one:{}",
            several.len(),
            names(several)
        ))
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_serve::control::ServerFacts;
    use ugeom_testkit::has;

    #[test]
    fn intervals_have_a_unit_or_are_microseconds_as_with_gstat() {
        assert_eq!(interval("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(interval("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(interval("500000"), Ok(Duration::from_millis(500)));
        assert_eq!(interval("24h"), Ok(INTERVAL_MAX), "what the error allows");
        assert_eq!(interval("1d"), Ok(INTERVAL_MAX));
        let error = interval("1").unwrap_err();
        assert!(error.contains("1s is seconds"), "{error}");
        for wrong in ["10ms", "2d", "x", "", "-1s", "99999999999999999999"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_server_is_taken_and_several_are_named() {
        let found = |pid: u32| FoundServer {
            path: format!("/run/{pid}.sock").into(),
            facts: Ok(ServerFacts {
                protocol: 1,
                version: String::new(),
                pid,
                target: format!("md:{pid}m"),
                connection: None,
            }),
        };
        let silent = FoundServer {
            path: "/run/9.sock".into(),
            facts: Err("it has ended".to_owned()),
        };
        let path = the_only(vec![silent.clone(), found(7)]).unwrap();
        assert_eq!(path, PathBuf::from("/run/7.sock"));
        let error = the_only(vec![found(7), found(8)]).unwrap_err().to_string();
        assert!(error.starts_with("2 servers run"), "{error}");
        has(&error, "--socket /run/8.sock   md:8m (process 8)");
        let error = the_only(vec![silent]).unwrap_err().to_string();
        assert!(error.contains("/run/9.sock   it has ended"), "{error}");
        let error = the_only(Vec::new()).unwrap_err().to_string();
        assert!(error.contains("ugeom serve"), "{error}");
    }
}
