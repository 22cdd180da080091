//! Keys are nowhere in the process's memory once the provider is destroyed.
//!
//! The test runs in a process of its own: others, in the same one, use the same keys.

use super::*;
use crate::{TargetOptions, open_target};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::process::Command;
use std::sync::Arc;
use ugeom_stack::Delta;

/// Set in the process that looks at itself.
const INSIDE: &str = "UGEOM_TEST_KEYS_IN_MEMORY";

/// How often `needle` stands in the writable memory of this process, but for the place where the
/// caller keeps it.
fn occurrences(needle: &[u8], own: &[u8]) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    let mut memory = fs::File::open("/proc/self/mem").expect("memory");
    let mut found = 0;
    let mut chunk = vec![0; 1 << 20];
    let buffer = chunk.as_ptr().addr();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let hex = |text: &str| usize::from_str_radix(text, 16).expect("an address");
        let (start, end) = range.map(|(a, b)| (hex(a), hex(b))).expect("a range");
        let mut at = start;
        while at < end {
            let want = chunk.len().min(end - at);
            let sought = memory.seek(SeekFrom::Start(at as u64));
            if sought.is_err() || memory.read_exact(&mut chunk[..want]).is_err() {
                break;
            }
            for (within, window) in chunk[..want].windows(needle.len()).enumerate() {
                let place = at + within;
                let ours = (own.as_ptr().addr()..own.as_ptr().addr() + own.len()).contains(&place)
                    || (buffer..buffer + chunk.len()).contains(&place);
                found += usize::from(!ours && window == needle);
            }
            // Windows that cross the end of a piece are looked at with the next one.
            at += if want < chunk.len() {
                want
            } else {
                want - needle.len()
            };
        }
    }
    found
}

/// Keys, one bit of each byte turned, so that looking for them does not put them into memory.
fn masked(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ 0x80).collect()
}

fn look_for(masked: &[u8]) -> usize {
    let mut needle: Vec<u8> = masked.iter().map(|byte| byte ^ 0x80).collect();
    let found = occurrences(&needle, &needle.clone());
    // The copy above and this one.
    let found = found.saturating_sub(1);
    ugeom_machine::secret::wipe(&mut needle);
    found
}

/// Runs the calling test in a process of its own; true in that process.
fn is_inside() -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let own = std::env::current_exe().expect("the test");
    let ended = Command::new(own)
        .args([
            "--exact",
            &ugeom_testkit::test_name(),
            "--nocapture",
            "--test-threads=1",
        ])
        .env(INSIDE, "1")
        .output();
    let ended = ended.expect("runs");
    let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{text}");
    false
}

#[test]
fn keys_are_gone_from_memory_when_the_provider_is() {
    if is_inside() {
        inside();
    }
}

/// The keys of tags of these sub-sectors, as code may leave them: the bytes of the last, its words,
/// and the first words of all side by side. Masked.
fn keys_of_tags(data_key: &[u8], sub_sectors: [u64; 4]) -> [Vec<u8>; 3] {
    let mut base = Secret::new(|| [0; 64]).expect("memory");
    super::super::hmac_sha512::h(data_key, &[&[0x11]], &mut base);
    let mut keys = Secret::new(|| [[0_u8; 32]; 4]).expect("memory");
    for (number, key) in sub_sectors.iter().zip(keys.iter_mut()) {
        let offset = number * 512;
        let hash = Sha256::new_with_prefix(&base[..]);
        let hash = hash.chain_update(offset.to_le_bytes()).finalize();
        key.copy_from_slice(&hash);
    }
    let word = |bytes: &[u8]| [bytes[3], bytes[2], bytes[1], bytes[0]].map(|byte| byte ^ 0x80);
    let forms = [
        masked(&keys[3][..16]),
        keys[3][..16].chunks(4).flat_map(word).collect(),
        keys.iter().flat_map(|key| word(&key[..4])).collect(),
    ];
    drop((keys, base));
    ugeom_machine::secret::scrub_stack();
    forms
}

/// Neither a read that succeeds nor one that fails its authentication leaves the key of a tag: not
/// on the stack of the thread that read, which still lives, nor anywhere else.
#[test]
fn keys_of_tags_are_gone_after_each_request() {
    if !is_inside() {
        return;
    }
    let mut bytes = Secret::new(|| [0_u8; 128]).expect("memory");
    super::super::random::fill(&mut bytes[..]).expect("random");
    // One sector is done by two sub-sectors at a time, all of them by 16; these come last.
    let requests = [
        (1, keys_of_tags(&bytes[64..], [5, 6, 7, 8])),
        (
            16,
            keys_of_tags(&bytes[64..], [12, 13, 14, 15].map(|at| at * 9 + 8)),
        ),
    ];
    let algorithm = Some(Authentication::Sha256);
    let metadata = sample(7, Cipher::AesXts, 256, algorithm, 4096);
    for backend in [Backend::Portable, Backend::Fastest] {
        let master = MasterKey::from_bytes(&bytes).expect("memory");
        let below = (metadata.provider_bytes, BELOW_BYTES);
        let crypt = Crypt::new(&metadata, below, &master, ByteOrder::Little, backend);
        let crypt = crypt.expect("keys");
        drop(master);
        for ((sectors, forms), broken) in requests
            .iter()
            .flat_map(|request| [None, Some(40)].map(|broken| (request, broken)))
        {
            let plain = vec![7; sectors * 4096];
            let mut sealed = vec![0; sectors * 9 * 512];
            let (to_us, from_there) = std::sync::mpsc::channel();
            let (to_there, from_us) = std::sync::mpsc::channel::<()>();
            std::thread::scope(|scope| {
                let (crypt, plain, sealed) = (&crypt, &plain, &mut sealed);
                scope.spawn(move || {
                    let mut read = vec![0; plain.len()];
                    crypt.seal(0, plain, sealed).expect("keys");
                    broken.into_iter().for_each(|at: usize| sealed[at] ^= 1);
                    let opened = crypt.open(0, sealed, &mut read);
                    to_us.send(opened.is_err()).expect("a receiver");
                    let _ = from_us.recv();
                });
                assert_eq!(from_there.recv(), Ok(broken.is_some()));
                for (form, key) in forms.iter().enumerate() {
                    let request = format!("{backend:?}, {sectors} sectors, {broken:?}");
                    assert_eq!(look_for(key), 0, "{request}, form {form}");
                }
                drop(to_there);
            });
        }
    }
}

/// The key of the first sectors.
fn first_data_key(data_key: &[u8]) -> Vec<u8> {
    let mut key = Secret::new(|| [0; 64]).expect("memory");
    super::super::hmac_sha512::h(data_key, &[b"ekey", &0_u64.to_le_bytes()], &mut key);
    let found = masked(&key[..32]);
    drop(key);
    ugeom_machine::secret::scrub_stack();
    found
}

/// Data keys are made by the thread that needs one first, and used by all. Their stacks keep
/// nothing of them.
#[test]
fn a_thread_that_made_a_data_key_keeps_nothing_of_it() {
    if !is_inside() {
        return;
    }
    for (backend, cipher) in [
        (Backend::Fastest, Cipher::AesXts),
        (Backend::Fastest, Cipher::AesCbc),
        (Backend::Portable, Cipher::AesXts),
        (Backend::Portable, Cipher::AesCbc),
    ] {
        let mut bytes = Secret::new(|| [0_u8; 128]).expect("memory");
        super::super::random::fill(&mut bytes[..]).expect("random");
        let key = first_data_key(&bytes[64..]);
        let master = MasterKey::from_bytes(&bytes).expect("memory");
        let metadata = sample(7, cipher, 256, None, 4096);
        let below = (metadata.provider_bytes, BELOW_BYTES);
        let crypt = Crypt::new(&metadata, below, &master, ByteOrder::Little, backend);
        let crypt = Arc::new(crypt.expect("keys"));
        drop((master, bytes));
        let (to_us, from_there) = std::sync::mpsc::channel();
        let (to_there, from_us) = std::sync::mpsc::channel::<()>();
        let theirs = Arc::clone(&crypt);
        let thread = std::thread::spawn(move || {
            let (mut data, mut sealed) = (vec![7; 8 * 4096], vec![0; 8 * 4096]);
            theirs.decrypt(0, &mut data).expect("keys");
            theirs.encrypt(0, &data, &mut sealed).expect("keys");
            drop(theirs);
            to_us.send(()).expect("a receiver");
            let _ = from_us.recv();
        });
        from_there.recv().expect("a sender");
        drop(crypt);
        assert_eq!(look_for(&key[..16]), 0, "{backend:?} {cipher}");
        drop(to_there);
        thread.join().expect("ends");
    }
}

fn inside() {
    // A master key that no code holds as a constant.
    let mut bytes = Secret::new(|| [0_u8; 128]).expect("memory");
    super::super::random::fill(&mut bytes[..]).expect("random");
    let data_key = masked(&bytes[64..96]);
    let iv_key = masked(&bytes[..32]);
    let metadata = {
        let mut metadata = sample(7, Cipher::AesXts, 256, None, 4096);
        let master = MasterKey::from_bytes(&bytes).expect("memory");
        let user = user_key(&metadata);
        fill_slot(&mut metadata, &user, &master, 0).expect("a slot");
        metadata
    };
    let sector_key = first_data_key(&bytes[64..]);
    drop(bytes);
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    let mut image = vec![0; 1 << 20];
    let encoded = metadata.encode();
    image[(1 << 20) - 512..][..encoded.len()].copy_from_slice(&encoded);
    fs::write(place("disk.img"), image).expect("writes");
    fs::write(place("k"), KEYFILE).expect("writes");
    fs::write(place("p"), PASSPHRASE).expect("writes");
    let path = folder.path().display();
    let text = format!("{path}/disk.img | eli:keyfile={path}/k,passfile={path}/p");
    let options = TargetOptions::default().for_writing();
    let target = open_target(&text, &options).expect("opens");
    let work = |target: &crate::Target| {
        let mut channel = target.stack.channel(1).expect("a channel");
        let opened = target.open(Delta::READ_WRITE).expect("opens");
        // Large enough to be divided among cores.
        let mut data = vec![7; 512 << 10];
        for _ in 0..20 {
            channel.write(&opened, 0, &data).expect("writes");
            channel.read(&opened, 0, &mut data).expect("reads");
        }
    };
    work(&target);
    std::thread::scope(|scope| {
        scope.spawn(|| work(&target));
    });
    // The search finds what is there: the round keys of AES-256 begin with the key itself.
    assert!(look_for(&sector_key) > 0, "the key is in use");
    drop(target);
    for (what, key) in [
        ("sector key", sector_key),
        ("Data-Key", data_key),
        ("IV-Key", iv_key),
    ] {
        assert_eq!(look_for(&key), 0, "{what}");
        assert_eq!(look_for(&key[..16]), 0, "half of the {what}");
    }
}
