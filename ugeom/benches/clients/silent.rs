//! How soon a new client has its first reply beside 1,100 connections that are silent: before the
//! handshake, and after it.

use crate::Plan;
use crate::shared::{Failure, Process, ugeom};
use crate::table::middle;
use crate::unread::connect;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;
use ugeom_format::wire::nbd::{Request, command};

const SILENT: usize = 1100;

/// A new client is served within this, s.
const GOAL_S: f64 = 1.0;

/// The counts of the silent clients.
#[derive(Clone, Copy)]
enum Silence {
    BeforeHandshake,
    AfterHandshake,
}

pub(crate) fn measure(plan: Plan) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
    if current.is_some_and(|it| it < 2 * SILENT as u64) {
        println!("SKIP clients beside {SILENT} silent ones: too few descriptors (ulimit -Hn)");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("ours");
    for (silence, words) in [
        (Silence::BeforeHandshake, "that have connected"),
        (Silence::AfterHandshake, "that have shaken hands"),
    ] {
        let mut times = Vec::new();
        for _ in 0..plan.rounds {
            // The one before has left its socket.
            let _ = std::fs::remove_file(&socket);
            let _server = Process::start(&ugeom(&socket, &["md:1m"]), &socket)?;
            let mut silent = Vec::new();
            for _ in 0..SILENT {
                silent.push(match silence {
                    Silence::BeforeHandshake => UnixStream::connect(&socket)?,
                    Silence::AfterHandshake => connect(&socket)?,
                });
            }
            let begun = Instant::now();
            let mut client = connect(&socket)?;
            read(&mut client)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            drop(silent);
        }
        let goal = GOAL_S * 1e3;
        println!(
            "a new client's first reply beside {SILENT} silent ones {words}: {} ms (goal: under \
             {goal})",
            middle(&times, 1)?
        );
    }
    Ok(())
}

fn read(client: &mut UnixStream) -> Result<(), Failure> {
    let request = Request {
        flags: 0,
        command: command::READ,
        cookie: 1,
        offset_bytes: 0,
        length_bytes: 4096,
    };
    client.write_all(&request.encode())?;
    let mut reply = [0; 16 + 4096];
    client.read_exact(&mut reply)?;
    Ok(())
}
