//! Programs in C that do only the unavoidable part of a case, measured beside it in the same
//! rounds: `UGEOM_FLOORS` names the folder with their sources. They are no part of this repository;
//! what is here is how they are called.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cases::{Case, NO_OP, NO_OP_ALONE, RING_NO_OP, Sample, ZEROES};

/// A program of the folder, its arguments with spaces between them, what it does, and the case that
/// does the same.
struct Floor {
    program: &'static str,
    arguments: &'static str,
    name: &'static str,
    beside: &'static str,
}

const fn floor(
    program: &'static str,
    arguments: &'static str,
    name: &'static str,
    beside: &'static str,
) -> Floor {
    Floor {
        program,
        arguments,
        name,
        beside,
    }
}

/// Each prints nanoseconds a request, a line for each of seven runs. (`hand futex` is left out: one
/// of its runs lasts five seconds.)
#[rustfmt::skip]
const FLOORS: [Floor; 6] = [
    floor("pool", "guasi 100 2 nop 200 1", "C, no-op, mutex and condvar", NO_OP),
    floor("pool", "ring 100 2 nop 200 1", "C, no-op, bare ring of requests", NO_OP),
    floor("pool", "guasi 100 2 pread 200 1", "C, zeroes, mutex and condvar", ZEROES),
    floor("pool", "ring 100 2 pread 200 1", "C, zeroes, bare ring of requests", ZEROES),
    floor("hand", "spin 0", "C, round trip, spinning", NO_OP_ALONE),
    floor("nop", "32 0", "C, no-op, io_uring, batch of 32", RING_NO_OP),
];

/// The cases of the programs that can be built here; says on stderr which cannot.
pub fn all(beside: &[Case]) -> Result<Vec<Case>, Box<dyn Error>> {
    let Some(sources) = std::env::var_os("UGEOM_FLOORS") else {
        eprintln!("SKIP floors: UGEOM_FLOORS names no folder with their sources");
        return Ok(Vec::new());
    };
    let built = tempfile::tempdir()?.keep();
    let mut cases = Vec::new();
    for floor in FLOORS {
        if !beside.iter().any(|case| case.name == floor.beside) {
            continue;
        }
        let program = built.join(floor.program);
        if !program.exists()
            && let Err(reason) = build(Path::new(&sources), floor.program, &program)
        {
            eprintln!("SKIP floor {}: {reason}", floor.name);
            continue;
        }
        let run = move || once(&program, floor.arguments);
        cases.push(Case::of_program(floor.name, floor.beside, run));
    }
    Ok(cases)
}

fn build(sources: &Path, name: &str, program: &PathBuf) -> Result<(), Box<dyn Error>> {
    let source = sources.join(name).with_extension("c");
    if !source.is_file() {
        return Err(format!("there is no {}", source.display()).into());
    }
    let output = Command::new("cc")
        .args(["-O2", "-w", "-o"])
        .arg(program)
        .arg(source)
        .args(["-lpthread", "-luring"])
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().into()),
    }
}

/// The second of the runs that the program makes: the first one warms up, the others are not
/// waited for.
fn once(program: &Path, arguments: &str) -> Result<Sample, Box<dyn Error>> {
    // The C library keeps lines back when they go to a pipe.
    let mut child = Command::new("stdbuf")
        .arg("-oL")
        .arg(program)
        .args(arguments.split(' '))
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = child.stdout.take().map(BufReader::new);
    let line = lines.and_then(|lines| lines.lines().nth(1));
    // It may have ended already.
    let _ = child.kill();
    child.wait()?;
    let line = line.ok_or_else(|| format!("{} printed no figure", program.display()))??;
    Ok(Sample {
        ns: line.trim().parse()?,
        switches: f64::NAN,
        cpu_ns: f64::NAN,
    })
}
