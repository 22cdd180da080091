//! `cargo bench -p ugeom --bench nbd`: the NBD server beside others, with the same clients in the
//! same rounds, in about two minutes; then the figures that are counted and not timed: instructions
//! of layers (callgrind), memory of idle connections.
//!
//! `UGEOM_BENCH_SECONDS` sets the time of the rounds: as many as fit, up to 50. Servers and clients
//! that are not installed are named in the report as left out. Started as a test it measures as
//! little as it can, against this server and the canned one only.

mod apart;
mod canned;
mod cases;
mod servers;
#[path = "../shared/mod.rs"]
mod shared;

use cases::{ALL, Client, Plan};
use servers::{Server, ServerKind};
use shared::Failure;
use std::io::Write;
use ugeom_harness::document::Document;
use ugeom_harness::figure::{Figure, Goal, Unit};
use ugeom_harness::host::Host;
use ugeom_harness::{self as harness, Control, Machine, Settings};
use ugeom_measure::Blocks;
use ugeom_measure::interval::student_of;
use ugeom_report::Page;
use ugeom_testkit::{bench_budget_ns, bench_seconds};

const CONFIDENCE: f64 = 0.95;

/// Rounds when a time was set: as many as fit, up to this.
const ROUNDS_MAX: u64 = 50;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, socket] = &arguments[..]
        && word == canned::WORD
    {
        return canned::serve(socket);
    }
    let as_bench = arguments.iter().any(|argument| argument == "--bench");
    let mut left_out = Vec::new();
    let folder = tempfile::tempdir()?;
    let servers = start(folder.path(), as_bench, &mut left_out)?;
    let mut plans = Vec::new();
    for plan in ALL {
        let known = servers.iter().any(|server| server.kind == plan.kind);
        match (known, plan.client.program()) {
            (false, _) => {}
            (true, Ok(_)) if as_bench || plan.client == Client::Run(1) => plans.push(*plan),
            (true, Ok(_)) => {}
            (true, Err(problem)) => left_out.push(format!("{}: {problem}", plan.name())),
        }
    }
    left_out.dedup();
    let document = measure(&plans, &servers, as_bench)?;
    drop(servers);
    let mut page = Page::new("nbd", "cargo bench -p ugeom --bench nbd");
    let mut figures = document.figures.clone();
    if as_bench {
        for (what, counted) in [
            ("memory", apart::memory(folder.path())),
            ("instructions", apart::instructions(folder.path())),
        ] {
            match counted {
                Ok(Some(figure)) => figures.push(figure),
                Ok(None) => left_out.push(format!("{what}: it cannot be counted here")),
                Err(error) => left_out.push(format!("{what}: {error}")),
            }
        }
    }
    page.head(&document, &left_out);
    let plain = figures.iter().filter(|figure| figure.goal.is_none());
    page.list(plain.map(|figure| format!("{}: {}", figure.what, figure.amount())));
    page.goals(&figures);
    std::io::stdout().write_all(page.to_text(110).as_bytes())?;
    Ok(())
}

/// All servers that can be had.
fn start(
    folder: &std::path::Path,
    as_bench: bool,
    left_out: &mut Vec<String>,
) -> Result<Vec<Server>, Failure> {
    let mut kinds = vec![ServerKind::Ours, ServerKind::Canned];
    if as_bench {
        kinds.extend([ServerKind::Nbdkit, ServerKind::Qemu]);
    }
    let mut servers = Vec::new();
    for kind in kinds {
        match Server::start(kind, folder)? {
            Some(server) => servers.push(server),
            None => left_out.push(format!("{}: not installed", kind.word())),
        }
    }
    Ok(servers)
}

fn measure(plans: &[Plan], servers: &[Server], whole: bool) -> Result<Document<()>, Failure> {
    let seconds = bench_seconds()?;
    let budget_ns = bench_budget_ns(!whole)?;
    let host = Host::now();
    let settings = Settings {
        seed: host.started_unix_s,
        rounds_max: match seconds {
            Some(_) => ROUNDS_MAX,
            None => harness::ROUNDS_MIN,
        },
        // Shorter runs would consist of how clients begin.
        run_ns_min: 25_000_000,
        budget_ns,
        ..Settings::default()
    };
    let mut cases = Vec::new();
    for plan in plans {
        let server = servers.iter().find(|server| server.kind == plan.kind);
        cases.push(plan.case(server.ok_or("the server has disconnected")?)?);
    }
    let mut control = Control::silent();
    let measured = harness::run(&mut cases, &settings, &Machine, &mut control)?;
    drop(cases);
    let mut document = Document::new("nbd", host, settings, (), measured);
    document.figures = figures(plans, &document.blocks());
    Ok(document)
}

/// The rate of each case, and this server's beside the others'.
fn figures(plans: &[Plan], blocks: &Blocks) -> Vec<Figure> {
    let mut figures = Vec::new();
    for plan in plans {
        let rate = |ns: &f64| plan.client.of_a_nanosecond() / ns;
        let values = blocks.position(&plan.name()).map(|at| blocks.values(at));
        let Some(Ok(values)) = values else { continue };
        let values: Vec<f64> = values.iter().map(rate).collect();
        if let Ok(effect) = student_of(&values, CONFIDENCE) {
            let (name, unit) = (plan.name(), plan.client.unit());
            figures.push(Figure::plain(&name, &name, unit, effect.interval));
        }
    }
    for plan in plans {
        if plan.kind == ServerKind::Ours {
            continue;
        }
        let ours = Plan {
            kind: ServerKind::Ours,
            ..*plan
        };
        let place = |plan: &Plan| blocks.position(&plan.name());
        let (Some(base), Some(other)) = (place(&ours), place(plan)) else { continue };
        if let Ok(ratio) = blocks.typical_ratio(base, other, CONFIDENCE) {
            let what = format!("{}: times {}", plan.client.words(), plan.kind.word());
            let figure = Figure::plain(&what, &what, Unit::Times, ratio.interval);
            figures.push(match plan.goal {
                Some(goal) => figure.with_goal(Goal::AtLeast(goal)),
                None => figure,
            });
        }
    }
    figures
}
