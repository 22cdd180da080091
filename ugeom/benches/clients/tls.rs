//! Throughput over TLS, beside nbdkit with TLS: nbdcopy of the whole export, and random READs of
//! 4 KiB by the class `nbd`.

use crate::Plan;
use crate::reads::iops;
use crate::shared::{Failure, Process, program, ugeom, words};
use crate::table::{middle, ratios};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_stack::Delta;

/// Throughput of this server, of nbdkit's: at least this.
const GOAL: f64 = 1.5;

const DEPTH: usize = 32;

pub(crate) fn measure(plan: Plan) -> Result<(), Failure> {
    if let Some(name) = ["openssl", "nbdcopy"]
        .into_iter()
        .find(|it| program(it).is_none())
    {
        println!("SKIP clients over TLS: {name} is not installed");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let pki = folder.path().join("pki");
    certificates(&pki)?;
    let pki = pki.display().to_string();
    let bytes = plan.bytes / 4;
    let place = |name: &str| folder.path().join(name);
    let target = format!("md:{bytes}");
    let secure = ["--tls", "require", "--tls-certificates", &pki];
    let line = ugeom(
        &place("ours"),
        &[&[&target[..], "--rw"][..], &secure].concat(),
    );
    let mut servers = vec![("ugeom", line, place("ours"))];
    if plan.others && program("nbdkit").is_some() {
        let (path, folder) = (place("nbdkit"), format!("--tls-certificates={pki}"));
        let path = path.display().to_string();
        let own = ["nbdkit", "-f", "-U", &path, "--tls=require", &folder];
        let line = words(&[&own[..], &["memory", &bytes.to_string()]].concat());
        servers.push(("nbdkit memory", line, place("nbdkit")));
    } else if plan.others {
        println!("SKIP clients, nbdkit with TLS: nbdkit is not installed");
    }
    let mut copied = vec![Vec::new(); servers.len()];
    let mut random = vec![Vec::new(); servers.len()];
    for _ in 0..plan.rounds {
        let mut running = Vec::new();
        for (_, line, socket) in &servers {
            // The one before has left its socket.
            let _ = std::fs::remove_file(socket);
            running.push(Process::start(line, socket)?);
        }
        for (at, server) in running.iter().enumerate() {
            let uri = server.uri().replace("nbd+", "nbds+");
            let uri = format!("{uri}&tls-certificates={pki}");
            copied[at].push(copy(folder.path(), &uri, bytes)?);
            random[at].push(read(&uri, bytes, plan)?);
        }
    }
    for (what, unit, values) in [
        ("nbdcopy to the export and back", "MB/s", &copied),
        (
            "class nbd, random READs of 4 KiB, queue depth 32",
            "IOPS",
            &random,
        ),
    ] {
        println!("TLS, {what}, {unit}");
        for ((name, _, _), values) in servers.iter().zip(values) {
            println!("  {name:15} {}", middle(values, 0)?);
        }
        if let [ours, other] = &values[..] {
            let ratio = middle(&ratios(ours, other), 2)?;
            println!("  ugeom / nbdkit: {ratio} (goal: {GOAL})");
        }
    }
    Ok(())
}

/// An authority, and certificates of a server and a client, as libnbd looks for them.
fn certificates(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir(folder)?;
    let make = |arguments: &str| -> Result<(), Failure> {
        let mut openssl = Command::new("openssl");
        openssl.args(arguments.split(' ')).current_dir(folder);
        let done = openssl.stdin(Stdio::null()).output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(format!("openssl {arguments}: {said}").into());
        }
        Ok(())
    };
    make(
        "req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=bench-authority \
         -keyout ca-key.pem -out ca-cert.pem",
    )?;
    for who in ["server", "client"] {
        make(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=localhost \
             -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE \
             -CA ca-cert.pem -CAkey ca-key.pem -keyout {who}-key.pem -out {who}-cert.pem"
        ))?;
    }
    Ok(())
}

/// MB/s of copying random data into the export, and the export to a null output.
fn copy(folder: &Path, uri: &str, bytes: u64) -> Result<f64, Failure> {
    let source = folder.join("random");
    if !source.exists() {
        let mut data = vec![0; bytes as usize];
        fastrand::Rng::with_seed(1).fill(&mut data);
        std::fs::write(&source, data)?;
    }
    let source = source.display().to_string();
    let begun = Instant::now();
    for (from, to) in [(&source[..], uri), (uri, "null:")] {
        let mut copy = Command::new("nbdcopy");
        let status = copy.args([from, to]).stdin(Stdio::null()).status()?;
        if !status.success() {
            return Err(format!("nbdcopy {from} {to} failed: {status}").into());
        }
    }
    Ok(2.0 * bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
}

/// IOPS of random READs.
fn read(uri: &str, bytes: u64, plan: Plan) -> Result<f64, Failure> {
    let target = open_target(uri, &TargetOptions::default())?;
    let opened = target.open(Delta::READ)?;
    let mut channel = target.stack.channel(DEPTH)?;
    let mut places = fastrand::Rng::with_seed(2);
    let place = || places.u64(..bytes / 4096) * 4096;
    iops(&mut channel, &opened, (4096, DEPTH), plan.run, place)
}
