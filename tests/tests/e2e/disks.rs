//! Images for tests: the real disks of 2001 and 2002, and new ones.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use ugeom_testkit::RecordedDisk;

/// The names of the real disks.
pub const REAL: [&str; 8] = [
    "alpha.da0",
    "apple",
    "critter.ad0",
    "empty.flp",
    "flat.da1",
    "kern.flp",
    "msdos.ext",
    "typo.ad0",
];

/// A real disk as a sparse image, called as it was when its listing was recorded.
pub struct RealDisk {
    pub folder: tempfile::TempDir,
    /// The target, with the geometry that its firmware told.
    pub target: String,
    pub listing: String,
}

/// Makes the image of a real disk; `None`, after saying so, where they are not at hand.
pub fn real(name: &str) -> Option<RealDisk> {
    let disk = RecordedDisk::open(name)?;
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("md34");
    let file = File::create(&image).expect("an image");
    file.set_len(disk.media_size_bytes).expect("its size");
    for (offset, bytes) in &disk.sectors {
        file.write_all_at(bytes, *offset).expect("a sector");
    }
    let target = match disk.geometry {
        None => text(&image),
        Some((heads, sectors)) => {
            format!("{}?fwsectors={sectors}&fwheads={heads}", text(&image))
        }
    };
    Some(RealDisk {
        folder,
        target,
        listing: disk.listing,
    })
}

/// A file of random bytes, the same ones for the same seed, in a folder of its own.
pub fn random_image(bytes: usize, seed: u64) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let mut content = vec![0; bytes];
    fastrand::Rng::with_seed(seed).fill(&mut content);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    std::fs::write(&path, &content).expect("an image");
    (folder, path, content)
}

/// A file of zeroes that takes no room, in a folder of its own.
pub fn empty_image(bytes: u64) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    File::create(&path)
        .and_then(|file| file.set_len(bytes))
        .expect("an image");
    (folder, path)
}

/// A path as an argument.
pub fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// The place of a file in a folder, as an argument.
pub fn at(folder: impl AsRef<Path>, name: impl AsRef<Path>) -> String {
    text(&folder.as_ref().join(name))
}

/// A new file in a folder, as an argument.
pub fn file(folder: impl AsRef<Path>, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> String {
    let path = folder.as_ref().join(name);
    std::fs::write(&path, content).expect("a file");
    text(&path)
}

/// An image of `sectors` sectors of 512 bytes with an MBR whose one partition (Linux data) begins
/// at sector `start` and has `length` sectors; written here by hand, so that no writer of ours is
/// trusted.
pub fn partitioned_image(sectors: u64, start: u32, length: u32) -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = empty_image(sectors * 512);
    let mut entry = vec![0, 0xfe, 0xff, 0xff, 0x83, 0xfe, 0xff, 0xff];
    entry.extend(start.to_le_bytes());
    entry.extend(length.to_le_bytes());
    let file = File::options().write(true).open(&path).expect("the image");
    file.write_all_at(&entry, 446).expect("an entry");
    file.write_all_at(&[0x55, 0xaa], 510).expect("a signature");
    (folder, path)
}
