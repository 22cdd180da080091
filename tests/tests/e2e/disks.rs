//! Images for tests: the real disks of 2001 and 2002, and new ones.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

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
pub fn real(test: &str, name: &str) -> Option<RealDisk> {
    let from = ugeom_testkit::shared(test, "fixtures/phk-disks")?;
    let read = |suffix: &str| {
        let path = from.join(format!("{name}.{suffix}"));
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let (xml, listing) = (read("xml"), read("ref"));
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("md34");
    make_image(&xml, &image).expect("an image");
    let number = |tag| number(&xml, tag).unwrap_or(0);
    let (sectors, heads) = (number("fwsectors"), number("fwheads"));
    let target = match (sectors, heads) {
        (0, _) | (_, 0) => text(&image),
        _ => format!("{}?fwsectors={sectors}&fwheads={heads}", text(&image)),
    };
    Some(RealDisk {
        folder,
        target,
        listing,
    })
}

/// Writes the sectors that the XML lists into a sparse file. A size of 0 means: up to ten sectors
/// behind the last.
fn make_image(xml: &str, path: &Path) -> std::io::Result<()> {
    let sector = number(xml, "sectorsize").expect("a sector size");
    let mut file = File::create(path)?;
    let mut last = 0;
    for entry in xml.split("<sector>").skip(1) {
        let offset = number(entry, "offset").expect("an offset");
        let (_, data) = entry.split_once("<hexdata>").expect("data");
        let data = data.split('<').next().unwrap_or("");
        let digits: Vec<u8> = data
            .chars()
            .filter_map(|c| c.to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        let bytes: Vec<u8> = digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(&bytes)?;
        last = offset.max(last);
    }
    let size = number(xml, "mediasize").filter(|&size| size > 0);
    file.set_len(size.unwrap_or(last + 10 * sector))
}

fn number(xml: &str, tag: &str) -> Option<u64> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    rest.split('<').next()?.trim().parse().ok()
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

/// An image of `sectors` sectors of 512 bytes with an MBR whose one partition (Linux data) begins
/// at sector `start` and has `length` sectors; written here by hand, so that no writer of ours is
/// trusted.
pub fn partitioned_image(sectors: u64, start: u32, length: u32) -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = empty_image(sectors * 512);
    let mut entry = vec![0, 0xfe, 0xff, 0xff, 0x83, 0xfe, 0xff, 0xff];
    entry.extend(start.to_le_bytes());
    entry.extend(length.to_le_bytes());
    let mut file = File::options().write(true).open(&path).expect("the image");
    file.seek(SeekFrom::Start(446)).expect("seeking");
    file.write_all(&entry).expect("writing");
    file.seek(SeekFrom::Start(510)).expect("seeking");
    file.write_all(&[0x55, 0xaa]).expect("writing");
    (folder, path)
}
