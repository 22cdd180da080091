//! `ugeom stat --kernel`: the kernel's devices in the columns of a server's layers. Counts come
//! from diskstats, exclusive times from a trace.

use super::Stat;
use super::halves::{Half, Passed, connection_row, halves, passed, wake_up_row};
use super::rates::{Interval, ProviderRates, Rate};
use crate::commands::iostat::{Device, DirectionRates};
use crate::commands::show::kernel;
use crate::control::ask_servers;
use crate::output;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use ugeom_format::diskstats;
use ugeom_machine::interrupt;
use ugeom_trace::event::Dev;
use ugeom_trace::session::{Scope, Session, connection, dev_of};
use ugeom_trace::source::Choice;
use ugeom_trace::tally::Tally;
use ugeom_trace::tree::{Class, KernelTree, Node};

/// How often events are read.
const POLL: Duration = Duration::from_millis(10);

type Counters = BTreeMap<Dev, diskstats::Stat>;

/// Devices, their order, and the tracker of their requests.
struct View {
    tree: KernelTree,
    order: Vec<(usize, usize)>,
    session: Option<Session>,
    halves: Vec<Half>,
}

impl View {
    /// Of these devices, or of all.
    fn of(tree: KernelTree, nodes: &[usize]) -> Self {
        let order = order(&tree, nodes);
        let mut session = match Session::start(Scope::of(&tree, nodes), &Choice::ALL) {
            Ok(session) => Some(session),
            Err(why) => {
                output::warn(&format!("no exclusive times: {why}"));
                None
            }
        };
        if let Some(session) = &mut session {
            ask_servers(session);
        }
        let connections = order
            .iter()
            .filter_map(|(at, _)| connection(&tree.nodes[*at]));
        let halves = halves(&connections.collect::<Vec<u32>>());
        Self {
            tree,
            order,
            session,
            halves,
        }
    }

    /// Whether other devices are there now, or stand on others.
    fn differs(&self, now: &KernelTree) -> bool {
        let place = |node: &Node| (node.name.clone(), node.number, node.below.clone());
        !self
            .tree
            .nodes
            .iter()
            .map(place)
            .eq(now.nodes.iter().map(place))
    }
}

/// Reports on these devices, or on all.
pub fn run(stat: &Stat, devices: &[String]) -> Result<()> {
    let (tree, nodes) = kernel::read_all(devices)?;
    let mut view = View::of(tree, &nodes);
    let stop = interrupt::catch().context("listening for Ctrl-C")?;
    if stat.csv {
        output::print(&stat.columns().csv_heading())?;
    }
    let mut before = counters()?;
    let mut done = 0;
    while stat.reports().is_none_or(|count| done < count) {
        let (started, mut tally) = (Instant::now(), Tally::new(Vec::new()));
        if !watch(stat.interval, stop, view.session.as_mut(), &mut tally)? {
            break;
        }
        let after = counters()?;
        let looked = Looked {
            counters: (&before, &after),
            passed: passed(&tally),
            seconds: started.elapsed().as_secs_f64(),
        };
        let mut rows = rows(&view.tree, &view.order, &looked, &mut view.halves)?;
        rows.extend(wake_up_row(&tally, looked.seconds));
        stat.report(Interval {
            seconds: looked.seconds,
            counts: true,
            timed_one_in: u32::from(view.session.is_some()),
            clock_ns: 0.0,
            look_ns: 0,
            rows,
        })?;
        before = after;
        done += 1;
        // Devices come and go; those that were named stay.
        if devices.is_empty() && stat.reports().is_none_or(|count| done < count) {
            let now = kernel::read(None)?.0;
            if view.differs(&now) {
                view = View::of(now, &[]);
                before = counters()?;
            }
        }
    }
    Ok(())
}

/// The result of an interval.
struct Looked<'a> {
    counters: (&'a Counters, &'a Counters),
    passed: BTreeMap<Dev, Passed>,
    seconds: f64,
}

/// A row for each device; below a FUSE connection those of its server, if it is ugeom's.
fn rows(
    tree: &KernelTree,
    order: &[(usize, usize)],
    looked: &Looked<'_>,
    halves: &mut [Half],
) -> Result<Vec<ProviderRates>> {
    let mut rows = Vec::new();
    // The depth of the connection that this is above, and how many rows its server has below.
    let mut raised: Option<(usize, usize)> = None;
    for (at, depth) in order {
        let node = &tree.nodes[*at];
        raised = raised.filter(|(from, _)| depth > from);
        if let Some(number) = connection(node) {
            if let Some(half) = halves.iter_mut().find(|half| half.serves(number)) {
                let server = half.rows(&looked.passed, looked.seconds)?;
                let by = server.iter().map(|row| row.depth + 1).max().unwrap_or(0);
                let below = server.into_iter().map(|row| ProviderRates {
                    depth: row.depth + depth,
                    ..row
                });
                rows.extend(below);
                raised = Some((*depth, by));
            }
            let depth = depth + raised.map_or(0, |(_, by)| by);
            let place = (node.name.as_str(), depth);
            rows.push(connection_row(
                number,
                place,
                &looked.passed,
                looked.seconds,
            ));
            continue;
        }
        let depth = depth + raised.map_or(0, |(_, by)| by);
        // A file system has the number of its device, whose row is there already.
        let Some(number) = node.number.filter(|_| node.class != Class::Fs) else { continue };
        let dev = dev_of(number);
        let (before, after) = looked.counters;
        let (Some(before), Some(after)) = (before.get(&dev), after.get(&dev)) else { continue };
        let exclusive = looked.passed.get(&dev);
        let exclusive = exclusive.map(|passed| (passed.count, passed.exclusive_ns));
        let place = (node.name.clone(), node.class.word().to_owned(), depth);
        let counters = (before, after);
        rows.push(row(
            place,
            u64::from(dev),
            counters,
            exclusive,
            looked.seconds,
        ));
    }
    Ok(rows)
}

/// Devices with their depths: those at the bottom first, each followed by what stands on it. Only
/// the chains of the nodes, if there are any.
fn order(tree: &KernelTree, nodes: &[usize]) -> Vec<(usize, usize)> {
    let wanted: Vec<usize> = nodes.iter().flat_map(|at| tree.chain(*at)).collect();
    let roots = (0..tree.nodes.len())
        .rev()
        .filter(|at| tree.nodes[*at].below.is_empty());
    let mut open: Vec<(usize, usize)> = roots.map(|at| (at, 0)).collect();
    let (mut order, mut seen) = (Vec::new(), vec![false; tree.nodes.len()]);
    while let Some((at, depth)) = open.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        if wanted.is_empty() || wanted.contains(&at) {
            order.push((at, depth));
        }
        let above: Vec<usize> = tree.above(at).collect();
        open.extend(above.into_iter().rev().map(|above| (above, depth + 1)));
    }
    order
}

/// Waits for an interval while events are read; false after Ctrl-C.
fn watch(
    length: Duration,
    stop: &AtomicBool,
    mut session: Option<&mut Session>,
    tally: &mut Tally,
) -> Result<bool> {
    let started = Instant::now();
    while started.elapsed() < length {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        std::thread::sleep(POLL.min(length.saturating_sub(started.elapsed())));
        if let Some(session) = session.as_deref_mut() {
            for tree in session.poll(&mut |_| {}).context("reading events")? {
                tally.add(&tree);
            }
        }
    }
    Ok(true)
}

fn counters() -> Result<Counters> {
    let text = std::fs::read_to_string("/proc/diskstats").context("/proc/diskstats")?;
    let devices = diskstats::parse(&text).context("/proc/diskstats")?;
    let each = devices
        .into_iter()
        .map(|it| (dev_of((it.major, it.minor)), it.stat));
    Ok(each.collect())
}

fn row(
    (name, class, depth): (String, String, usize),
    id: u64,
    (before, after): (&diskstats::Stat, &diskstats::Stat),
    exclusive: Option<(u64, f64)>,
    seconds: f64,
) -> ProviderRates {
    let in_flight = after.in_flight;
    let load = Device::between(&name, before, after, seconds);
    let other = Rate {
        per_s: load.flushes_per_second,
        ms_each: (load.flushes_per_second > 0.0).then_some(load.flush_await_ms),
        ..Rate::default()
    };
    ProviderRates {
        id,
        name,
        class,
        rank: depth as u32 + 1,
        depth,
        in_flight,
        per_s: load.transfers_per_second() + other.per_s,
        read: rate(&load.reads),
        write: rate(&load.writes),
        delete: rate(&load.discards),
        other,
        busy_percent: Some(load.busy_percent.min(100.0)),
        exclusive_ns: exclusive.map(|(_, ns)| ns),
        samples: exclusive.map_or(0, |(count, _)| count),
        ..ProviderRates::default()
    }
}

fn rate(of: &DirectionRates) -> Rate {
    Rate {
        per_s: of.per_second,
        kib_per_s: of.kib_per_second,
        kib_each: of.request_kib,
        ms_each: (of.per_second > 0.0).then_some(of.await_ms),
    }
}
