//! Servers of encrypted images that are killed again and again, over NBD and over FUSE: data that a
//! FLUSH, a FUA or an fsync has acknowledged is there afterwards, decrypted.

use crate::disks;
use crate::files::Mounted;
use crate::run::ugeom;
use crate::serve::noise;
use crate::serve_killed::{
    BLOCK_BYTES, BLOCKS, Durable, check, rounds, wait_for_the_lock, write_on,
};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An encrypted image and its key.
struct Encrypted {
    folder: tempfile::TempDir,
    image: PathBuf,
    target: String,
}

impl Encrypted {
    /// Made by `geli init` with more options, every sector written once: sectors with tags cannot
    /// be read before.
    fn new(options: &[&str]) -> Self {
        // With HMAC/SHA256 a sector of 4096 bytes takes nine of 512.
        let bytes = BLOCKS * BLOCK_BYTES as u64 * 9 / 8 + 4096;
        let (folder, image) = disks::empty_image(bytes);
        let key = disks::at(&folder, "k");
        std::fs::write(&key, noise(1, 64)).expect("a key");
        let path = disks::text(&image);
        let init = ["geli", "init", "-Bnone", "-P", "-K", &key, "-s", "4096"];
        ugeom(&[&init, options, &[&path]].concat()).quiet();
        let target = format!("{path} | eli:keyfile={key},nopassphrase=1");
        let zero = ["write", "--destroy", &target];
        let zeroes = vec![0; BLOCKS as usize * BLOCK_BYTES];
        let written = crate::run::ugeom_with(&zero, &zeroes);
        assert_eq!(written.code, 0, "{}", written.stderr);
        Self {
            folder,
            image,
            target,
        }
    }

    /// The content, read by another process than the killed one.
    fn check(&self, durable: &Durable) {
        let length = (BLOCKS * BLOCK_BYTES as u64).to_string();
        let read = ugeom(&["read", &self.target, "--length", &length]);
        assert_eq!(read.code, 0, "{}", read.stderr);
        check(&read.stdout, durable);
    }
}

/// The two kinds of sectors: encrypted, and encrypted with tags.
const KINDS: [&[&str]; 2] = [
    &["-e", "aes-xts", "-l", "256"],
    &["-e", "aes-xts", "-l", "256", "-a", "hmac/sha256"],
];

#[test]
fn an_encrypted_image_keeps_what_was_acknowledged_over_nbd() {
    for options in KINDS {
        let encrypted = Encrypted::new(options);
        let (mut number, mut durable) = (0, Durable::new());
        rounds(|| {
            wait_for_the_lock(&encrypted.image);
            let own = tempfile::tempdir().expect("a folder");
            let socket = own.path().join("nbd");
            let mut served = crate::serve::Served::start(own, &encrypted.target, &["--rw"]);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // The end of it is the server's.
                    let _ = write_on(&socket, &mut number, &mut durable, false);
                });
                std::thread::sleep(Duration::from_millis(fastrand::u64(10..120)));
                served.signal("-KILL");
            });
            encrypted.check(&durable);
        });
        assert!(durable.len() > 100, "hardly anything became durable");
    }
}

/// Writes to random blocks of a file until its server is gone; an fsync(2) that succeeds makes all
/// of them durable.
fn write_to(file: &Path, number: &mut u64, durable: &mut Durable) -> io::Result<()> {
    let mut random = fastrand::Rng::with_seed(*number);
    let file = std::fs::File::options().write(true).open(file)?;
    loop {
        let mut pending = Vec::new();
        for _ in 0..16 {
            *number += 1;
            let block = random.u64(0..BLOCKS);
            let data = number.to_be_bytes().repeat(BLOCK_BYTES / 8);
            file.write_all_at(&data, block * BLOCK_BYTES as u64)?;
            pending.push((block, *number));
        }
        file.sync_all()?;
        durable.extend(pending);
    }
}

#[test]
fn an_encrypted_image_keeps_what_was_acknowledged_over_fuse() {
    for options in KINDS {
        let encrypted = Encrypted::new(options);
        let (mut number, mut durable, mut skipped) = (0, Durable::new(), false);
        rounds(|| {
            wait_for_the_lock(&encrypted.image);
            let own = tempfile::tempdir_in(encrypted.folder.path()).expect("a folder");
            let Some(mut served) = Mounted::start(own, &encrypted.target, &["--rw"]) else {
                skipped = true;
                return;
            };
            let file = PathBuf::from(served.file("disk.img.eli"));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // The end of it is the server's.
                    let _ = write_to(&file, &mut number, &mut durable);
                });
                std::thread::sleep(Duration::from_millis(fastrand::u64(30..200)));
                served.signal("-KILL");
            });
            drop(served);
            encrypted.check(&durable);
        });
        assert!(
            skipped || durable.len() > 100,
            "hardly anything became durable"
        );
    }
}
