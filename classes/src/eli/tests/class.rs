//! The class in a stack: opening, tasting, the data path, refusals.

use super::*;
use crate::{Target, TargetOptions, open_target};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use ugeom_machine::buffer::{Buffer, Scatter};
use ugeom_stack::{Channel, Command, Delta, Errno, Finished, Opened};
use ugeom_testkit::has;

/// A folder with an image, a keyfile `k` and a passfile `p`.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new(metadata: &Metadata) -> Self {
        let folder = TempDir::new().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let mut image = vec![0; metadata.provider_bytes as usize];
        let encoded = metadata.encode();
        let at = image.len() - BELOW_BYTES as usize;
        image[at..at + encoded.len()].copy_from_slice(&encoded);
        fs::write(place("disk.img"), image).expect("writes");
        fs::write(place("k"), KEYFILE).expect("writes");
        fs::write(place("p"), b"correct horse\nnot this\n").expect("writes");
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn image(&self) -> Vec<u8> {
        fs::read(self.path().join("disk.img")).expect("reads")
    }

    /// The target `disk.img | eli:OPTIONS`, with the right key unless `options` names one.
    fn text(&self, options: &str) -> String {
        let path = self.path().display();
        let key = match options.contains("file=") {
            true => String::new(),
            false => format!("keyfile={path}/k,passfile={path}/p,"),
        };
        let options = options.replace("DIR", &path.to_string());
        format!("{path}/disk.img | eli:{key}{options}")
            .trim_end_matches([',', ':'])
            .to_owned()
    }

    fn open(&self, options: &str) -> (Target, Channel, Opened) {
        let text = self.text(options);
        let target = open_target(&text, &writable());
        let target = target.unwrap_or_else(|error| panic!("{text}: {error}"));
        let channel = target.stack.channel(4).expect("a channel");
        let opened = target.open(Delta::READ_WRITE);
        let opened = opened.unwrap_or_else(|error| panic!("{text}: {error}"));
        (target, channel, opened)
    }

    fn refused(&self, options: &str) -> String {
        let text = self.text(options);
        match open_target(&text, &writable()) {
            Ok(_) => panic!("{text} opened"),
            Err(error) => error.to_string(),
        }
    }
}

fn writable() -> TargetOptions {
    TargetOptions::default().for_writing()
}

fn xts() -> Metadata {
    initialized(sample(7, Cipher::AesXts, 128, None, 512))
}

fn tagged() -> Metadata {
    let sha256 = Some(Authentication::Sha256);
    initialized(sample(7, Cipher::AesXts, 256, sha256, 4096))
}

fn next_finished(channel: &mut Channel) -> Finished {
    loop {
        match channel.finished() {
            Some(finished) => return finished,
            None => channel.wait(None),
        };
    }
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

#[test]
fn what_is_written_lies_encrypted_below_and_comes_back() {
    for (metadata, options) in [
        (xts(), ""),
        (tagged(), ""),
        (initialized(sample(4, Cipher::AesCbc, 192, None, 4096)), ""),
        (
            initialized(sample(3, Cipher::TripleDesCbc, 192, None, 1024)),
            "legacy=1",
        ),
        (initialized(sample(7, Cipher::Null, 512, None, 512)), ""),
    ] {
        let fixture = Fixture::new(&metadata);
        let bytes = noise(64 << 10, 1);
        {
            let (_target, mut channel, opened) = fixture.open(options);
            let mut given = bytes.clone();
            channel.write(&opened, 8192, &given).expect("writes");
            assert!(given == bytes, "the caller's memory was touched");
            channel.read(&opened, 8192, &mut given).expect("reads");
            assert!(given == bytes);
            channel.flush(&opened).expect("flushes");
        }
        let image = fixture.image();
        let crypt = crypt(&metadata, Backend::Portable);
        let (start, length) = crypt.layout().below(8192, bytes.len() as u64);
        let below = &image[start as usize..(start + length) as usize];
        let mut expected = vec![0; length as usize];
        crypt.seal(8192, &bytes, &mut expected).expect("keys");
        assert!(below == expected, "{metadata:?}");
        let (_target, mut channel, opened) = fixture.open(options);
        let mut read = vec![0; bytes.len()];
        channel.read(&opened, 8192, &mut read).expect("reads");
        assert!(read == bytes, "{metadata:?}");
    }
}

/// Several cores encrypt and decrypt like one, and an error names the first sector.
#[test]
fn large_requests_are_divided_without_a_difference() {
    for metadata in [xts(), tagged()] {
        let metadata = Metadata {
            provider_bytes: 4 << 20,
            ..metadata
        };
        let fixture = Fixture::new(&metadata);
        let bytes = noise((2 << 20) + 12288, 3);
        let (_target, mut channel, opened) = fixture.open("");
        channel.write(&opened, 4096, &bytes).expect("writes");
        let mut read = vec![0; bytes.len()];
        channel.read(&opened, 4096, &mut read).expect("reads");
        assert!(read == bytes);
        channel.flush(&opened).expect("flushes");
        let mut image = fixture.image();
        let crypt = crypt(&metadata, Backend::Portable);
        let (start, length) = crypt.layout().below(4096, bytes.len() as u64);
        let mut expected = vec![0; length as usize];
        crypt.seal(4096, &bytes, &mut expected).expect("keys");
        assert!(image[start as usize..(start + length) as usize] == expected);
        if crypt.layout().sub_sectors.is_some() {
            for sector in [100, 300, 500] {
                image[sector * 9 * 512 + 40] ^= 1;
            }
            fs::write(fixture.path().join("disk.img"), image).expect("writes");
            let error = channel.read(&opened, 4096, &mut read).expect_err("refused");
            assert_eq!(
                (error.errno, error.offset_bytes),
                (Errno::BADMSG, 100 * 4096)
            );
        }
    }
}

/// Memory and a cache lend their own; the caller gets plaintext in his buffer all the same.
#[test]
fn what_a_layer_below_lends_is_decrypted_into_the_callers_memory() {
    for below in ["md:4m", "md:4m | cache:8m"] {
        let text = format!("{below} | eli:onetime=1,sectorsize=4k");
        let target = open_target(&text, &writable()).expect("opens");
        let mut channel = target.stack.channel(4).expect("a channel");
        let opened = target.open(Delta::READ_WRITE);
        let opened = opened.expect("opens");
        let bytes = noise(2 << 20, 4);
        channel.write(&opened, 0, &bytes).expect("writes");
        for (offset, length) in [
            (0, 1 << 20),
            (1 << 20, 512 << 10),
            (4096, 8192),
            (0, 2 << 20),
        ] {
            let draft = channel.bio().expect("a bio");
            let buffer = Buffer::new(length);
            channel.submit(&opened, draft.read_or_lease(offset as u64, buffer));
            let mut finished = next_finished(&mut channel);
            assert_eq!(finished.result(), Ok(length as u64));
            assert!(finished.take_lease().is_none(), "ciphertext was lent on");
            let mut seen = Vec::new();
            finished.each(|_, piece| seen.extend_from_slice(piece));
            assert!(
                seen == bytes[offset..offset + length],
                "{below} {offset} {length}"
            );
            channel.recycle(finished);
        }
    }
}

#[test]
fn memory_in_pieces_that_end_inside_sectors_is_read_and_written() {
    for metadata in [xts(), tagged()] {
        let fixture = Fixture::new(&metadata);
        let (_target, mut channel, opened) = fixture.open("");
        let bytes = noise(8192, 2);
        let scattered = |bytes: &[u8]| {
            let (first, rest) = bytes.split_at(700);
            let (second, third) = rest.split_at(5000);
            let pieces = [first, second, third].map(Buffer::from_slice);
            Box::new(Scatter::new(pieces.into()))
        };
        let mut run = |write: bool, memory| {
            let draft = channel.bio().expect("a bio");
            channel.submit(&opened, draft.transfer(write, 4096, memory));
            let mut finished = next_finished(&mut channel);
            let mut seen = Vec::new();
            finished.each(|_, piece| seen.extend_from_slice(piece));
            assert_eq!(finished.result(), Ok(8192));
            channel.recycle(finished);
            seen
        };
        assert!(run(true, scattered(&bytes)) == bytes);
        assert!(run(false, scattered(&[0; 8192])) == bytes);
    }
}

#[test]
fn what_is_inside_is_tasted_when_it_is_open() {
    let fixture = Fixture::new(&xts());
    {
        let (_target, mut channel, opened) = fixture.open("");
        let mut sector = [0; 512];
        sector[446..462]
            .copy_from_slice(&[0x80, 0, 0, 0, 0xa5, 0, 0, 0, 63, 0, 0, 0, 100, 0, 0, 0]);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        channel.write(&opened, 0, &sector).expect("writes");
    }
    let target = open_target(&fixture.text(""), &TargetOptions::default()).expect("opens");
    let slice = format!("{}s1", target.name);
    let tree = target.stack.tree();
    let found = tree
        .provider(&slice)
        .map(|provider| provider.mediasize_bytes);
    assert_eq!(found, Some(51_200), "{slice}");
}

#[test]
fn a_locked_provider_is_named_without_a_key() {
    let fixture = Fixture::new(&tagged());
    let path = fixture.path().join("disk.img").display().to_string();
    let target = open_target(&path, &TargetOptions::default()).expect("opens");
    let tree = target.stack.tree();
    let geom = tree
        .geoms
        .iter()
        .find(|geom| geom.class == "ELI")
        .expect("tasted");
    assert!(geom.providers.is_empty());
    let fact = |name: &str| geom.fact(name).unwrap_or("");
    assert_eq!(fact("Version"), "7");
    assert_eq!(fact("EncryptionAlgorithm"), "AES-XTS");
    assert_eq!(fact("KeyLength"), "256");
    assert_eq!(fact("AuthenticationAlgorithm"), "HMAC/SHA256");
    assert_eq!(fact("Slots"), "0");
    assert_eq!(fact("Flags"), "AUTH");
    assert_eq!(fact("State"), "LOCKED");
}

#[test]
fn damaged_metadata_is_reported_and_another_providers_is_not() {
    let mut metadata = xts();
    metadata.sector_bytes = 0;
    let fixture = Fixture::new(&metadata);
    let path = fixture.path().join("disk.img").display().to_string();
    let target = open_target(&path, &TargetOptions::default()).expect("opens");
    let errors = target.stack.taste_errors();
    has(&errors[0].to_string(), "sector size 0 is not possible");
    // The last sector of a partition is that of the disk that holds it.
    metadata.provider_bytes = 1 << 19;
    let encoded = metadata.encode();
    let mut image = vec![0; 1 << 20];
    image[(1 << 20) - 512..][..encoded.len()].copy_from_slice(&encoded);
    fs::write(&path, image).expect("writes");
    let target = open_target(&path, &TargetOptions::default()).expect("opens");
    assert!(target.stack.taste_errors().is_empty());
    assert!(
        target
            .stack
            .tree()
            .geoms
            .iter()
            .all(|geom| geom.class != "ELI")
    );
}

#[test]
fn a_provider_that_cannot_be_opened_gives_the_reason() {
    let fixture = Fixture::new(&xts());
    let wrong = fixture.refused("keyfile=DIR/p,passfile=DIR/p");
    has(&wrong, "Wrong key for disk.img.");
    let nothing = fixture.refused("nopassphrase=1,metadata=DIR/none,keyfile=DIR/k");
    has(&nothing, "/none: No such file or directory");
    let error = fixture.refused("keyfile=DIR/none,passfile=DIR/p");
    has(&error, "keyfile");
    has(&error, "No such file");
    let error = fixture.refused("slot=1");
    has(&error, "No valid keys");
    let error = fixture.refused("keyfile=DIR/k,passfile=DIR/p,nopassphrase=1");
    has(&error, "exclude each other");
    let error = fixture.refused("onetime=1,keyfile=DIR/k");
    has(&error, "excludes key files");
    let grown = fs::OpenOptions::new()
        .write(true)
        .open(fixture.path().join("disk.img"));
    grown
        .and_then(|file| file.set_len((1 << 20) + 512))
        .expect("grows");
    let error = fixture.refused("");
    has(&error, "no GELI metadata");
    fs::write(fixture.path().join("backup"), xts().encode()).expect("writes");
    let error = fixture.refused("keyfile=DIR/k,passfile=DIR/p,metadata=DIR/backup");
    has(&error, "Provider size mismatch");
    has(&error, "geli recover");
}

#[test]
fn several_keyfiles_are_joined_in_their_order() {
    let fixture = Fixture::new(&xts());
    fs::write(fixture.path().join("a"), b"key ").expect("writes");
    fs::write(fixture.path().join("b"), b"file\n").expect("writes");
    let _ = fixture.open("keyfile=DIR/a:DIR/b,passfile=DIR/p");
    let error = fixture.refused("keyfile=DIR/b:DIR/a,passfile=DIR/p");
    has(&error, "Wrong key");
}

#[test]
fn a_read_only_provider_refuses_writers() {
    let mut metadata = xts();
    let by_option = Fixture::new(&metadata);
    metadata.flags = EliFlags::RO;
    let by_flag = Fixture::new(&metadata);
    let legacy = sample(3, Cipher::BlowfishCbc, 128, None, 512);
    let by_cipher = Fixture::new(&initialized(legacy));
    let md5 = sample(7, Cipher::AesXts, 128, Some(Authentication::Md5), 512);
    let by_tags = Fixture::new(&initialized(md5));
    for (fixture, options) in [
        (by_option, "readonly=1"),
        (by_flag, ""),
        (by_cipher, ""),
        (by_tags, ""),
    ] {
        let target = open_target(&fixture.text(options), &writable()).expect("opens");
        let refused = target.open(Delta::READ_WRITE).err();
        let refused = refused.expect("refused").to_string();
        has(&refused, "Read-only");
        target.open(Delta::READ).expect("reads");
    }
}

#[test]
fn a_deleted_range_is_not_said_to_be_zero() {
    let fixture = Fixture::new(&xts());
    let (_target, mut channel, opened) = fixture.open("");
    channel.write(&opened, 0, &[7; 8192]).expect("writes");
    channel
        .discard(&opened, Command::Delete, 0, 8192)
        .expect("deletes");
    let error = channel
        .discard(&opened, Command::Zero, 0, 8192)
        .expect_err("refused");
    assert_eq!(error.errno, Errno::OPNOTSUPP);
    let extents = channel.extents(&opened, 0, 8192, 9).expect("extents");
    assert!(
        extents
            .iter()
            .all(|e| e.kind == ugeom_stack::ExtentKind::Data)
    );
    let mut read = [0; 512];
    channel.read(&opened, 0, &mut read).expect("reads");
    assert!(
        read.iter().any(|&byte| byte != 0),
        "the hole below reads as noise"
    );
}

#[test]
fn nodelete_refuses_delete() {
    for mut metadata in [xts(), tagged()] {
        metadata.flags = metadata.flags.with(EliFlags::NODELETE, true);
        let fixture = Fixture::new(&metadata);
        let (_target, mut channel, opened) = fixture.open("");
        let refused = channel.discard(&opened, Command::Delete, 0, 4096);
        assert_eq!(refused.expect_err("refused").errno, Errno::OPNOTSUPP);
    }
}

/// With tags a sector takes up nine sectors of 512 bytes below: exactly those are deleted, and read
/// as never written; their neighbours stay.
#[test]
fn delete_with_tags_deletes_the_sectors_below_that_hold_the_range() {
    let fixture = Fixture::new(&tagged());
    let (_target, mut channel, opened) = fixture.open("");
    channel.write(&opened, 0, &[7; 65536]).expect("writes");
    let before = fixture.image();
    channel
        .discard(&opened, Command::Delete, 4 * 4096, 2 * 4096)
        .expect("deletes");
    channel.flush(&opened).expect("flushes");
    let (start, end) = (4 * 9 * 512, 6 * 9 * 512);
    let after = fixture.image();
    assert!(after[start..end].iter().all(|&byte| byte == 0));
    assert!(after[..start] == before[..start] && after[end..] == before[end..]);
    let mut read = vec![0; 65536];
    let error = channel.read(&opened, 0, &mut read).expect_err("deleted");
    assert_eq!((error.errno, error.offset_bytes), (Errno::BADMSG, 4 * 4096));
    for (offset, length) in [(0, 4 * 4096), (6 * 4096, 10 * 4096)] {
        let read = &mut read[..length];
        channel.read(&opened, offset, read).expect("a neighbour");
        assert!(read.iter().all(|&byte| byte == 7));
    }
    channel
        .write(&opened, 4 * 4096, &[8; 8192])
        .expect("writes");
    channel.read(&opened, 0, &mut read).expect("whole again");
}

#[test]
fn a_changed_sector_fails_with_its_place() {
    let metadata = tagged();
    let fixture = Fixture::new(&metadata);
    {
        let (_target, mut channel, opened) = fixture.open("");
        channel.write(&opened, 0, &[5; 65536]).expect("writes");
    }
    let mut image = fixture.image();
    // Sector 3 begins at 3 * 9 * 512.
    image[3 * 9 * 512 + 100] ^= 1;
    fs::write(fixture.path().join("disk.img"), image).expect("writes");
    let (_target, mut channel, opened) = fixture.open("");
    let mut read = vec![0; 65536];
    let error = channel.read(&opened, 0, &mut read).expect_err("refused");
    assert_eq!(error.errno, Errno::BADMSG);
    assert_eq!(error.offset_bytes, 3 * 4096, "{error}");
    has(&error.to_string(), "failed its authentication");
    channel
        .read(&opened, 0, &mut read[..3 * 4096])
        .expect("the sectors before it");
    let after = channel.read(&opened, 4 * 4096, &mut read[..4096]);
    after.expect("the sector behind it");
    // It is whole again when it is written.
    channel
        .write(&opened, 3 * 4096, &[6; 4096])
        .expect("writes");
    channel.read(&opened, 0, &mut read).expect("reads");
}

#[test]
fn a_one_time_key_is_a_new_one_each_time() {
    let fixture = Fixture::new(&xts());
    let path = fixture.path().display();
    let text = format!("{path}/disk.img | eli:onetime=1,sectorsize=4k,aalgo=hmac/sha1");
    let before = fixture.image();
    for _ in 0..2 {
        let target = open_target(&text, &writable()).expect("opens");
        let mut channel = target.stack.channel(1).expect("a channel");
        let opened = target.open(Delta::READ_WRITE).expect("opens");
        let mut read = [0; 4096];
        let unwritten = channel
            .read(&opened, 0, &mut read)
            .expect_err("never written");
        assert_eq!(unwritten.errno, Errno::BADMSG);
        channel.write(&opened, 0, &[1; 4096]).expect("writes");
        channel.read(&opened, 0, &mut read).expect("reads");
        assert_eq!(read, [1; 4096]);
    }
    let after = fixture.image();
    assert!(before != after, "something was written");
    assert!(before[9 * 512..] == after[9 * 512..], "and only the sector");
}
