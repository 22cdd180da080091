//! IOPS and CPU time with a client in C that pipelines READs of 4 KiB.

use crate::Plan;
use crate::shared::{Failure, Process, program, ugeom, words};
use crate::table::{middle, ratios};
use std::path::{Path, PathBuf};
use std::process::Command;

const DEPTHS: [usize; 3] = [1, 32, 128];

/// IOPS relative to nbdkit's memory plugin that are to be reached, by queue depth.
const NBDKIT_GOALS: [f64; 3] = [2.0, 4.0, 4.0];

/// The same relative to canned replies; none at depth 1, where both wait for the client.
const CANNED_GOALS: [f64; 3] = [0.0, 0.6, 0.6];

/// A server in this comparison, and what was measured of it.
struct Server {
    name: &'static str,
    line: Vec<String>,
    socket: PathBuf,
    /// Whether its memory is filled with random data before.
    holds_data: bool,
    /// By queue depth, of each round.
    iops: [Vec<f64>; 3],
    /// CPU time of the server per request, us.
    cpu: [Vec<f64>; 3],
}

pub(crate) fn measure(plan: Plan) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let Some(client) = compile("nbdflood", folder.path())? else { return Ok(()) };
    let mut servers = servers(plan, folder.path())?;
    for round in 0..plan.rounds {
        let mut running = Vec::new();
        for server in &servers {
            // The one before has left its socket.
            let _ = std::fs::remove_file(&server.socket);
            let process = Process::start(&server.line, &server.socket)?;
            if server.holds_data {
                process.fill(plan.bytes)?;
            }
            running.push(process);
        }
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            for turn in 0..servers.len() {
                let index = (round + turn) % servers.len();
                let (iops, cpu) = flood(&client, &running[index], depth, plan)?;
                servers[index].iops[at].push(iops);
                servers[index].cpu[at].push(cpu);
            }
        }
    }
    print(&servers, plan)
}

/// A program of the shared tools, compiled; `None`, after saying why, where that cannot be.
fn compile(name: &str, folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let what = format!("clients, {name}");
    let Some(source) = ugeom_testkit::shared(&format!("tools/floors/{name}.c")) else {
        return Ok(None);
    };
    if program("cc").is_none() {
        println!("SKIP {what}: no C compiler cc");
        return Ok(None);
    }
    let binary = folder.join(name);
    let mut cc = Command::new("cc");
    // Warnings are not this project's.
    cc.args(["-O2", "-w", "-o"]).arg(&binary).arg(&source);
    if !cc.arg("-lpthread").status()?.success() {
        return Err(format!("{} does not compile", source.display()).into());
    }
    Ok(Some(binary))
}

fn servers(plan: Plan, folder: &Path) -> Result<Vec<Server>, Failure> {
    let server = |name, line: Vec<String>, file: &str, holds_data| Server {
        name,
        line,
        socket: folder.join(file),
        holds_data,
        iops: Default::default(),
        cpu: Default::default(),
    };
    let place = |file: &str| folder.join(file).display().to_string();
    let bytes = plan.bytes.to_string();
    let target = format!("md:{bytes}");
    let line = ugeom(&folder.join("ours"), &[&target, "--rw"]);
    let mut all = vec![server("ugeom", line, "ours", true)];
    if let Some(path) = std::env::var_os("UGEOM_BENCH_OTHER") {
        let mut line = ugeom(&folder.join("other"), &[&target, "--rw"]);
        line[0] = Path::new(&path).display().to_string();
        all.push(server("other build", line, "other", true));
    }
    if !plan.others {
        return Ok(all);
    }
    if program("nbdkit").is_some() {
        let line = words(&["nbdkit", "-f", "-U", &place("nbdkit"), "memory", &bytes]);
        all.push(server("nbdkit memory", line, "nbdkit", true));
    } else {
        println!("SKIP clients, nbdkit memory: nbdkit is not installed");
    }
    if let Some(canned) = compile("nbdnull", folder)? {
        let line = words(&[&canned.display().to_string(), &place("canned"), &bytes]);
        all.push(server("canned replies", line, "canned", false));
    }
    Ok(all)
}

/// IOPS, and the server's CPU time per request in us.
fn flood(client: &Path, server: &Process, depth: usize, plan: Plan) -> Result<(f64, f64), Failure> {
    let before_ns = cpu_ns(server)?;
    let mut command = Command::new(client);
    command.arg(&server.socket);
    let (depth, seconds) = (depth.to_string(), plan.run.as_secs_f64().to_string());
    let done = command.args(["", &depth, "4096", &seconds, "1"]).output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("the client failed ({}): {said}", done.status).into());
    }
    let text = String::from_utf8(done.stdout)?;
    let iops = text.split_whitespace().next().ok_or("no figure")?;
    let iops: f64 = iops.parse()?;
    let cpu_ns = cpu_ns(server)? - before_ns;
    Ok((iops, cpu_ns / (iops * plan.run.as_secs_f64()) / 1e3))
}

/// CPU time of a server, ns, with that of its threads that have ended: to 10 ms (proc(5), stat).
fn cpu_ns(server: &Process) -> Result<f64, Failure> {
    const TICK_NS: f64 = 1e7;
    let text = std::fs::read_to_string(format!("/proc/{}/stat", server.child.id()))?;
    // The name, which stands in parentheses, may have spaces.
    let rest = text.rsplit_once(") ").ok_or("no name in stat")?.1;
    let times = rest.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<f64>, _> = times.map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() * TICK_NS)
}

fn print(servers: &[Server], plan: Plan) -> Result<(), Failure> {
    for (at, depth) in DEPTHS.into_iter().enumerate() {
        println!(
            "READs of 4 KiB within {} MiB, queue depth {depth}: IOPS; server's CPU time per \
             request, us; medians of {} rounds with the interval of the median",
            plan.bytes >> 20,
            plan.rounds
        );
        for server in servers {
            let (iops, cpu) = (middle(&server.iops[at], 0)?, middle(&server.cpu[at], 2)?);
            println!("  {:15} {iops}; {cpu}", server.name);
        }
        let ours = &servers[0];
        for other in &servers[1..] {
            let goal = match other.name {
                "nbdkit memory" => NBDKIT_GOALS[at],
                "canned replies" => CANNED_GOALS[at],
                _ => 0.0,
            };
            let goal = if goal > 0.0 {
                format!(" (goal: {goal})")
            } else {
                String::new()
            };
            let iops = middle(&ratios(&ours.iops[at], &other.iops[at]), 2)?;
            let cpu = middle(&ratios(&ours.cpu[at], &other.cpu[at]), 2)?;
            println!(
                "  ugeom / {}: IOPS {iops}{goal}; CPU time {cpu}",
                other.name
            );
        }
    }
    Ok(())
}
