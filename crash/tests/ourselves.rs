//! The project's own layers on a disk that crashes: the write-back cache, `eli`, and the class
//! `nbd` with a server whose disk loses its power. Flushed data must be there in every state.

use std::path::Path;
use ugeom_classes::build::{FileAccess, KeyOptions};
use ugeom_classes::eli::admin::{self, EliDisk, InitSettings};
use ugeom_classes::eli::kdf::KdfLimit;
use ugeom_classes::eli::keys::KeyComponents;
use ugeom_classes::registry::find;
use ugeom_classes::{Build, BuildContext, TargetOptions, open_target, spec};
use ugeom_crash::{CampaignSettings, Disk, Outcome, Points, Recording, answer, campaign};
use ugeom_format::eli::{Cipher, EliFlags};
use ugeom_serve::nbd::{Address, Server, Settings};
use ugeom_serve::shown::Shown;
use ugeom_stack::{Channel, Delta, Opened, ProviderId, Stack};

const SECTOR: usize = 512;
const SECTORS: u64 = 64;

/// States of a campaign: `UGEOM_CRASH_STATES` asks for more.
fn states() -> u64 {
    let asked = std::env::var("UGEOM_CRASH_STATES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// A sector of that version.
fn content(version: u64) -> Vec<u8> {
    version.to_le_bytes().repeat(SECTOR / 8)
}

/// The versions of the sectors of a disk, as keys.
fn look(disk: &Disk) -> Result<Vec<String>, String> {
    versions(|at, bytes| disk.read(at, bytes).map_err(|error| error.to_string()))
}

/// The versions of the sectors that `read` shows: a version stands for all before it.
fn versions(
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let mut keys = Vec::new();
    for number in 0..SECTORS {
        let mut bytes = vec![0; SECTOR];
        read(number * SECTOR as u64, &mut bytes)?;
        let version = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        if bytes != content(version) {
            return Err(format!("sector {number} is of no version"));
        }
        keys.extend((1..=version).map(|version| format!("s{number}v{version}")));
    }
    Ok(keys)
}

/// Writes versions to random sectors; what a FLUSH covers is promised.
fn work(channel: &mut Channel, opened: &Opened, recording: &Recording, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut versions = vec![0_u64; SECTORS as usize];
    let mut written = Vec::new();
    for _ in 0..(states() * 2 / 5).max(300) {
        if random.u8(..10) == 0 {
            channel.flush(opened).expect("flushes");
            for (number, version) in written.drain(..) {
                recording.promise(&format!("s{number}v{version}"));
            }
            continue;
        }
        let number = random.u64(..SECTORS);
        let version = &mut versions[number as usize];
        *version += 1;
        let at = number * SECTOR as u64;
        channel
            .write(opened, at, &content(*version))
            .expect("writes");
        written.push((number, *version));
    }
}

fn judged(log: &Path) -> Outcome {
    let settings = CampaignSettings {
        points: Points::Count(states()),
        tear_bytes: 512,
        ..CampaignSettings::default()
    };
    let outcome = campaign(log, &settings, &answer(look)).expect("a campaign");
    println!("{} states", outcome.states);
    outcome
}

/// Puts a layer of the stack language on a provider.
fn add_layer(stack: &Stack, below: &str, text: &str) -> ProviderId {
    let written = format!("md:1m | {text}");
    let names = ugeom_classes::registry::names();
    let target = spec::parse(&written, &names).expect("a stack");
    let layer = target.layers.last().expect("a layer");
    let entry = find(&layer.class.value).expect("a class");
    let arguments = layer.arguments(entry.positional).expect("arguments");
    let below = stack.tree().provider(below).cloned().expect("a provider");
    let mut context = BuildContext::new(stack, FileAccess::default(), KeyOptions::default());
    let Build::Layer(build) = entry.build else {
        panic!("{text} is no layer");
    };
    let plan = build(&mut context, arguments, &below).expect("builds");
    let made = stack
        .create(entry.class, plan, &[below.id])
        .expect("stands");
    made[0]
}

/// A log of the class `crash` has no mark where a set-up ends.
#[test]
fn every_crash_of_a_log_of_the_class_is_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let layer = format!("crash:log={}", log.display());
    let target = open_target(&format!("md:32k | {layer}"), &TargetOptions::untasted());
    let target = target.expect("a target");
    let opened = target.open(Delta::READ_WRITE);
    let opened = opened.expect("opens");
    let mut channel = target.stack.channel(4).expect("a channel");
    channel.write(&opened, 0, &content(1)).expect("writes");
    channel.flush(&opened).expect("flushes");
    channel.write(&opened, 512, &content(1)).expect("writes");
    drop((channel, opened, target));
    let outcome = judged(&log);
    assert_eq!((outcome.writes, outcome.barriers), (2, 1));
    assert!(outcome.states >= 4, "{} states", outcome.states);
    assert_eq!(outcome.failures.len(), 0);
}

/// Records what `run` does with a layer on a disk, and judges all crashes of it.
fn crashed(layer: &str, run: impl FnOnce(&mut Channel, &Opened, &Recording)) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let recording = Recording::start(&log, SECTORS * SECTOR as u64).expect("a recording");
    let (stack, name) = recording.stack().expect("a stack");
    let top = add_layer(&stack, &name, layer);
    recording.begin();
    let mut channel = stack.channel(4).expect("a channel");
    let opened = stack.open(top, Delta::READ_WRITE).expect("opens");
    run(&mut channel, &opened, &recording);
    drop((opened, channel, stack));
    recording.finish().expect("a log");
    judged(&log)
}

/// Of many crashes none has lost anything.
fn has_lost_nothing(outcome: &Outcome) {
    assert!(outcome.states > 100, "{} states", outcome.states);
    assert_eq!(outcome.failed, 0, "{:#?}", outcome.smallest);
}

#[test]
fn a_write_back_cache_keeps_what_it_flushed() {
    for (seed, layer) in [
        (1, "cache:16k,block=4k,write=back,dirty=100%"),
        (
            2,
            "cache:64k,block=4k,index=splay,write=back,idle=1ms,age=2ms",
        ),
    ] {
        println!("{layer}");
        has_lost_nothing(&crashed(layer, |channel, opened, recording| {
            work(channel, opened, recording, seed);
        }));
    }
}

#[test]
fn nbd_keeps_what_it_flushed_when_the_servers_disk_crashes() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let recording = Recording::start(&log, SECTORS * SECTOR as u64).expect("a recording");
    let (stack, name) = recording.stack().expect("a stack");
    let socket = folder.path().join("socket");
    let settings = Settings {
        addresses: vec![Address::Unix(socket.clone())],
        writable: true,
        threads: 2,
        ..Settings::default()
    };
    let server = Server::start(&stack, &Shown::only(name), &settings).expect("serves");
    recording.begin();
    let options = TargetOptions::untasted().for_writing();
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let client = open_target(&uri, &options).expect("connects");
    let mut channel = client.stack.channel(4).expect("a channel");
    let opened = client.open(Delta::READ_WRITE).expect("opens");
    work(&mut channel, &opened, &recording, 3);
    drop((opened, channel, client));
    server.stop();
    drop(stack);
    recording.finish().expect("a log");
    has_lost_nothing(&judged(&log));
}

#[test]
fn a_cache_that_flushes_nothing_is_caught() {
    // A promise for each write, as of a user that takes a write for durable.
    let layer = "cache:16k,block=4k,write=back";
    let outcome = crashed(layer, |channel, opened, recording| {
        for number in 0..8 {
            let at = number * SECTOR as u64;
            channel.write(opened, at, &content(1)).expect("writes");
            recording.promise(&format!("s{number}v1"));
        }
        channel.flush(opened).expect("flushes");
    });
    assert!(outcome.smallest.is_some(), "{outcome:?}");
}

/// A keyfile, and a GELI provider on the disk that it opens.
fn initialize(stack: &Stack, name: &str, keyfile: &Path) {
    std::fs::write(keyfile, [7; 64]).expect("a keyfile");
    let mut components = KeyComponents::new().expect("memory");
    components.add_keyfile(&[7; 64][..]).expect("a keyfile");
    let provider = stack.tree().provider(name).expect("a provider").id;
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack.open(provider, Delta::READ_WRITE).expect("opens");
    let mut disk = EliDisk::new(&mut channel, &opened).expect("a disk");
    let settings = InitSettings {
        version: 7,
        flags: EliFlags(0),
        cipher: Cipher::AesXts,
        key_bits: 256,
        authentication: None,
        sector_bytes: Some(SECTOR as u64),
        iterations: None,
    };
    let made = admin::initialize(&mut disk, &settings, &components, &KdfLimit::default());
    made.expect("made");
}

#[test]
fn eli_keeps_what_it_flushed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, keyfile) = (folder.path().join("log"), folder.path().join("key"));
    // The last sector has the metadata.
    let size_bytes = (SECTORS + 1) * SECTOR as u64;
    let recording = Recording::start(&log, size_bytes).expect("a recording");
    let (stack, name) = recording.stack().expect("a stack");
    initialize(&stack, &name, &keyfile);
    let layer = format!("eli:keyfile={},nopassphrase=1", keyfile.display());
    let top = add_layer(&stack, &name, &layer);
    let mut channel = stack.channel(4).expect("a channel");
    let opened = stack.open(top, Delta::READ_WRITE).expect("opens");
    // A sector that was never written decrypts to noise, so each has a version.
    for number in 0..SECTORS {
        let at = number * SECTOR as u64;
        channel.write(&opened, at, &content(0)).expect("writes");
    }
    channel.flush(&opened).expect("flushes");
    recording.begin();
    work(&mut channel, &opened, &recording, 4);
    drop((opened, channel, stack));
    recording.finish().expect("a log");
    let image = folder.path().join("image");
    let look_below = |disk: &Disk| {
        let mut bytes = vec![0; size_bytes as usize];
        let read = disk.read(0, &mut bytes);
        read.map_err(|error| error.to_string())?;
        std::fs::write(&image, bytes).map_err(|error| error.to_string())?;
        let target = format!("{} | {layer}", image.display());
        let target = open_target(&target, &TargetOptions::default());
        let target = target.map_err(|error| error.to_string())?;
        let mut channel = target.stack.channel(1).map_err(|error| error.to_string())?;
        let opened = target.open(Delta::READ);
        let opened = opened.map_err(|error| error.to_string())?;
        versions(|at, bytes| {
            let read = channel.read(&opened, at, bytes);
            read.map(|_| ()).map_err(|error| error.to_string())
        })
    };
    let settings = CampaignSettings {
        points: Points::Count(states()),
        tear_bytes: 512,
        ..CampaignSettings::default()
    };
    let outcome = campaign(&log, &settings, &answer(look_below)).expect("a campaign");
    println!("{} states", outcome.states);
    has_lost_nothing(&outcome);
}
