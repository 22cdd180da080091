//! The view on a terminal: its content and its keys. All of it but [`run`] is a function of figures
//! and keys, so that it can be tested without a terminal.

use super::keys::Key;
use super::rates::{Bars, Interval, ProviderRates};
use super::terminal::{Happened, Line, Look, Screen};
use super::text::{Columns, remarks};
use super::watch::Looks;
use super::{COUNTS_NOTHING, INTERVAL_MAX, INTERVAL_MIN, Shown, Stat};
use crate::output::{self, printable};
use anyhow::Result;
use regex_lite::Regex;
use std::cmp::Ordering;
use std::time::{Duration, Instant};
use ugeom_measure::units::duration_human;
use ugeom_serve::control::{Client, Figures};

/// How often a new look, the size of the screen and the clock are asked for.
const TICK: Duration = Duration::from_millis(50);

/// Lines above the rows, and the one below.
const FRAME: usize = 4;

/// The help of the keys.
const HELP: &[&str] = &[
    "q         end                          p, space  pause, continue",
    "s         sort by the next column      r         reverse the order",
    "t         tree order                   f, /      filter the names",
    "up, down  choose a layer               h, Enter  the latencies of that layer",
    "z         reset the latencies          a         only active providers",
    "+, -      longer and shorter intervals ?         this help",
];

/// The order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Tree,
    Operations,
    Reads,
    Writes,
    Busy,
    Own,
    Name,
}

impl Order {
    /// All of them with their words, each followed by the next.
    const ALL: [(Self, &str); 7] = [
        (Self::Tree, "tree"),
        (Self::Operations, "ops/s"),
        (Self::Reads, "r/s"),
        (Self::Writes, "w/s"),
        (Self::Busy, "%busy"),
        (Self::Own, "excl ns"),
        (Self::Name, "name"),
    ];

    fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()].0
    }

    fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The largest first, but names as in a dictionary.
    fn compare(self, a: &ProviderRates, b: &ProviderRates) -> Ordering {
        let unknown = -1.0;
        match self {
            Self::Tree => Ordering::Equal,
            Self::Operations => b.per_s.total_cmp(&a.per_s),
            Self::Reads => b.read.per_s.total_cmp(&a.read.per_s),
            Self::Writes => b.write.per_s.total_cmp(&a.write.per_s),
            Self::Busy => {
                let busy = |row: &ProviderRates| row.busy_percent.unwrap_or(unknown);
                busy(b).total_cmp(&busy(a))
            }
            Self::Own => {
                let own = |row: &ProviderRates| row.exclusive_ns.unwrap_or(unknown);
                own(b).total_cmp(&own(a))
            }
            Self::Name => a.name.cmp(&b.name),
        }
    }
}

struct View {
    columns: Columns,
    shown: Shown,
    interval: Duration,
    order: Order,
    reversed: bool,
    paused: bool,
    help: bool,
    bars: bool,
    /// The expression that is being typed.
    typed: Option<String>,
    /// Its defect.
    problem: Option<String>,
    /// The row that is chosen: a consumer or not, and its number.
    chosen: Option<(bool, u64)>,
    /// Whose figures these are.
    whose: String,
    /// From when on latencies are shown.
    since: Option<Figures>,
    last: Option<Figures>,
    current: Option<Interval>,
}

/// Draws until it is ended.
///
/// # Errors
/// The server has gone, or the terminal; what was shown last then stays on the terminal.
pub fn run(stat: &Stat, client: Client) -> Result<()> {
    let facts = client.facts();
    let whose = format!("{} (process {})", printable(&facts.target), facts.pid);
    let mut view = View::new(stat.columns(), stat.shown(), stat.interval, whose);
    let mut looks = Looks::start(client, stat.consumers)?;
    let screen = Screen::open()?;
    let ended = watch(&mut view, &screen, &mut looks, stat.count);
    let (columns, _) = screen.size();
    drop(screen);
    if ended.is_err() {
        let lines = view.table(columns, usize::MAX);
        let text: String = lines.into_iter().map(|line| line.text + "\n").collect();
        output::print(&text)?;
    }
    ended
}

fn watch(view: &mut View, screen: &Screen, looks: &mut Looks, count: Option<u64>) -> Result<()> {
    let mut due = Instant::now();
    let mut drawn = None;
    // The first look is no report: there is nothing to compare it with.
    let mut left = count.map(|count| count + 1);
    loop {
        if let Some(figures) = looks.take()? {
            view.take(figures);
            drawn = None;
            left = left.map(|left| left.saturating_sub(1));
        }
        let size = screen.size();
        if drawn != Some(size) {
            screen.draw(&view.page(size))?;
            drawn = Some(size);
        }
        if left == Some(0) {
            return Ok(());
        }
        let now = Instant::now();
        if now >= due {
            looks.order();
            due = now + view.interval;
        }
        match screen.wait(TICK.min(due.saturating_duration_since(now)))? {
            Happened::End => return Ok(()),
            Happened::Keys(keys) => {
                for key in keys {
                    if !view.key(key) {
                        return Ok(());
                    }
                    drawn = None;
                }
            }
        }
        due = due.min(Instant::now() + view.interval);
    }
}

impl View {
    fn new(columns: Columns, shown: Shown, interval: Duration, whose: String) -> Self {
        Self {
            columns,
            shown,
            interval,
            order: Order::Tree,
            reversed: false,
            paused: false,
            help: false,
            bars: true,
            typed: None,
            problem: None,
            chosen: None,
            whose,
            since: None,
            last: None,
            current: None,
        }
    }

    /// Takes a look in. While the view is paused only the next interval begins with it.
    fn take(&mut self, figures: Figures) {
        if !self.paused {
            let last = self.last.as_ref();
            let interval = last.map(|last| Interval::between(last, &figures));
            self.current = interval.or(self.current.take());
        }
        self.since.get_or_insert_with(|| figures.clone());
        self.last = Some(figures);
    }

    /// False when the user wants to end.
    fn key(&mut self, key: Key) -> bool {
        if self.typed.is_some() {
            self.type_filter(key);
            return key != Key::Interrupt;
        }
        match key {
            Key::Char('q') | Key::Interrupt => return false,
            Key::Char('?') => self.help = !self.help,
            Key::Char('p' | ' ') => self.paused = !self.paused,
            Key::Char('a') => self.shown.active = !self.shown.active,
            Key::Char('s') => self.order = self.order.next(),
            Key::Char('r') => self.reversed = !self.reversed,
            Key::Char('t') => (self.order, self.reversed) = (Order::Tree, false),
            Key::Char('h') | Key::Enter => self.bars = !self.bars,
            Key::Char('z') => self.since = self.last.clone(),
            Key::Char('f' | '/') => {
                let now = self.shown.filter.as_ref();
                self.typed = Some(now.map_or(String::new(), |it| it.as_str().to_owned()));
            }
            Key::Char('+') => self.interval = (self.interval * 2).min(INTERVAL_MAX),
            Key::Char('-') => self.interval = (self.interval / 2).max(INTERVAL_MIN),
            Key::Escape => (self.help, self.problem) = (false, None),
            Key::Up => self.choose(|at| at.saturating_sub(1)),
            Key::Down => self.choose(|at| at + 1),
            Key::PageUp => self.choose(|at| at.saturating_sub(10)),
            Key::PageDown => self.choose(|at| at + 10),
            Key::Home => self.choose(|_| 0),
            Key::End => self.choose(|_| usize::MAX),
            Key::Char(_) | Key::Backspace | Key::Redraw => {}
        }
        true
    }

    fn type_filter(&mut self, key: Key) {
        let Some(mut typed) = self.typed.take() else { return };
        match key {
            Key::Enter => {
                match Regex::new(&typed) {
                    Ok(_) if typed.is_empty() => self.shown.filter = None,
                    Ok(filter) => self.shown.filter = Some(filter),
                    Err(error) => {
                        self.problem = Some(error.to_string());
                        self.typed = Some(typed);
                        return;
                    }
                }
                self.problem = None;
                return;
            }
            Key::Escape | Key::Interrupt => {
                self.problem = None;
                return;
            }
            Key::Backspace => drop(typed.pop()),
            Key::Char(c) => typed.push(c),
            _ => {}
        }
        self.typed = Some(typed);
    }

    fn choose(&mut self, to: impl FnOnce(usize) -> usize) {
        let rows = self.rows();
        let at = to(self.place(&rows)).min(rows.len().saturating_sub(1));
        let chosen = rows.get(at).map(|row| (row.consumer, row.id));
        self.chosen = chosen;
    }

    /// Where the chosen row stands; the first one when it is not shown.
    fn place(&self, rows: &[&ProviderRates]) -> usize {
        let is_chosen = |row: &&ProviderRates| self.chosen == Some((row.consumer, row.id));
        rows.iter().position(is_chosen).unwrap_or(0)
    }

    fn rows(&self) -> Vec<&ProviderRates> {
        let all = self.current.iter().flat_map(|interval| &interval.rows);
        let mut rows: Vec<&ProviderRates> = all.filter(|row| self.shown.has(row)).collect();
        rows.sort_by(|a, b| self.order.compare(a, b));
        if self.reversed {
            rows.reverse();
        }
        rows
    }

    fn page(&self, (columns, lines): (usize, usize)) -> Vec<Line> {
        let below = if self.help {
            HELP.iter().map(|text| faint(text)).collect()
        } else if self.bars {
            self.latencies(columns, (lines / 2).saturating_sub(2))
        } else {
            Vec::new()
        };
        let room = lines.saturating_sub(FRAME + below.len());
        let mut page = self.table(columns, room);
        let filled = lines.saturating_sub(1 + below.len());
        if page.len() < filled {
            page.resize(filled, plain(""));
        }
        page.extend(below);
        page.truncate(lines.saturating_sub(1));
        page.push(self.bottom());
        page
    }

    /// The head, and as many rows as there is room for, the chosen one among them.
    fn table(&self, columns: usize, room: usize) -> Vec<Line> {
        let Some(interval) = &self.current else {
            return vec![plain(&format!("{}: looking ...", self.whose))];
        };
        let [mut first, second] = remarks(interval, self.interval.as_secs_f64());
        if self.paused {
            first.push_str("  PAUSED");
        }
        if let Some(filter) = &self.shown.filter {
            first.push_str(&format!("  filter: {}", printable(filter.as_str())));
        }
        if self.order != Order::Tree {
            first.push_str(&format!("  sort: {}", self.order.word()));
        }
        let free = columns.saturating_sub(first.chars().count() + 2);
        let whose: String = self.whose.chars().take(free).collect();
        first.push_str(&format!("  {whose}"));
        let second = if interval.counts {
            second
        } else {
            COUNTS_NOTHING.to_owned()
        };
        let heading = self.columns.heading();
        let mut page = vec![
            plain(&first),
            faint(&second),
            Line {
                text: heading,
                look: Look::Heading,
            },
        ];
        let rows = self.rows();
        let at = self.place(&rows);
        let skipped = (at + 1).saturating_sub(room);
        let indented = self.order == Order::Tree && !self.reversed;
        for (number, row) in rows.iter().enumerate().skip(skipped).take(room) {
            let mut text = self.columns.row(interval, row, indented);
            let look = if number == at && room < usize::MAX {
                // The bar reaches from one side to the other.
                let length = text.chars().count();
                text.push_str(&" ".repeat(columns.saturating_sub(length)));
                Look::Chosen
            } else {
                Look::Plain
            };
            page.push(Line { text, look });
        }
        page
    }

    /// How the times of the chosen layer are spread since the view began, or since `z`.
    fn latencies(&self, columns: usize, room: usize) -> Vec<Line> {
        let rows = self.rows();
        let Some(row) = rows.get(self.place(&rows)).filter(|row| !row.consumer) else {
            return Vec::new();
        };
        let times = |figures: Option<&Figures>| {
            let found = figures?.providers.iter().find(|it| it.id == row.id);
            found.map(|layer| layer.times.clone())
        };
        let (Some(last), Some(since)) = (&self.last, &self.since) else { return Vec::new() };
        let seconds = last.at_ns.saturating_sub(since.at_ns) as f64 / 1e9;
        let Some(after) = times(Some(last)) else { return Vec::new() };
        let bars = Bars::between(times(Some(since)).as_ref(), &after);
        let (drawn, faster, slower) = most_of(&bars.bars, room.saturating_sub(2));
        let mut title = format!(
            "{}: {} requests timed in {seconds:.0} s",
            printable(&row.shown_name()),
            bars.samples
        );
        if bars.samples > 0 {
            let (half, most) = (time(bars.median_ns), time(bars.p99_ns));
            title.push_str(&format!(", half of them within {half}, 99 % within {most}"));
        }
        if faster + slower > 0 {
            title.push_str(&format!(" ({faster} faster, {slower} slower than drawn)"));
        }
        let largest = drawn
            .iter()
            .map(|(_, count)| *count)
            .max()
            .unwrap_or(0)
            .max(1);
        let width = columns.saturating_sub(30).max(10);
        let mut lines = vec![plain(""), plain(&title)];
        for (low, count) in drawn {
            let length = (*count as f64 / largest as f64 * width as f64).ceil() as usize;
            let bar = "#".repeat(length.min(width));
            lines.push(plain(&format!("{:>9} {bar} {count}", time(*low))));
        }
        lines
    }

    fn bottom(&self) -> Line {
        if let Some(typed) = &self.typed {
            let problem = self.problem.as_ref();
            let problem = problem.map_or(String::new(), |text| {
                format!("   {}", printable(&text.replace('\n', " ")))
            });
            return plain(&format!("Filter: {typed}_{problem}"));
        }
        faint("q end  p pause  s sort  t tree  f filter  h latencies  + - interval  ? help")
    }
}

fn plain(text: &str) -> Line {
    Line {
        text: text.to_owned(),
        look: Look::Plain,
    }
}

fn faint(text: &str) -> Line {
    Line {
        text: text.to_owned(),
        look: Look::Faint,
    }
}

/// As many bars as there is room for, and how many requests lie before and behind them.
fn most_of(bars: &[(u64, u64)], room: usize) -> (&[(u64, u64)], u64, u64) {
    let (mut drawn, mut before, mut behind) = (bars, 0, 0);
    while drawn.len() > room {
        let (Some(((_, first), later)), Some(((_, last), earlier))) =
            (drawn.split_first(), drawn.split_last())
        else {
            break;
        };
        if first <= last {
            (before, drawn) = (before + first, later);
        } else {
            (behind, drawn) = (behind + last, earlier);
        }
    }
    (drawn, before, behind)
}

fn time(ns: u64) -> String {
    duration_human(ns as f64)
}

#[cfg(test)]
mod tests;
