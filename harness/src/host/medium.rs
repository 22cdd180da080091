//! Whether reads of a target can reach a device at all, and the layers between.
//!
//! Sources: tmpfs(5), the drivers zram, brd and null_blk.

use super::TargetFacts;
use std::path::Path;

/// A file with a larger share of holes says nothing about a device, per cent.
const HOLES_PERCENT_MAX: f64 = 5.0;

/// File systems whose files are memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "hugetlbfs"];

/// File systems that write elsewhere than they were asked to.
const COPY_ON_WRITE: [&str; 4] = ["btrfs", "zfs", "bcachefs", "nilfs2"];

impl TargetFacts {
    /// Why reads of it reach no device, so that nothing follows about a disk; none when they may.
    pub fn no_device(&self) -> Option<String> {
        if self.kind == "character device" {
            return Some(format!("{} is a character device, not a disk", self.path));
        }
        let system = self.file_system.as_deref().unwrap_or_default();
        if IN_MEMORY.contains(&system) {
            return Some(format!("{} lies on {system}, which is memory", self.path));
        }
        let device = self.device.as_deref().unwrap_or_default();
        if ["zram", "ram", "nullb"]
            .iter()
            .any(|driver| is_of(device, driver))
        {
            return Some(format!("{device} has no disk behind it"));
        }
        if self.begins_with_hole || self.hole_percent().is_some_and(|it| it > HOLES_PERCENT_MAX) {
            let percent = self.hole_percent().unwrap_or(0.0);
            return Some(format!(
                "{percent:.0} % of {} are holes, which are read from no device",
                self.path
            ));
        }
        let backing = self.backing_file.as_deref()?;
        let below = TargetFacts::of(Path::new(backing)).and_then(|facts| facts.no_device());
        let buffered = || {
            self.backing_is_buffered.then(|| {
                format!(
                    "{device} reads {backing} through the page cache (losetup --direct-io=on \
                     reaches its disk)"
                )
            })
        };
        below.or_else(buffered)
    }

    /// The layers between the target and its device, with their effects.
    pub fn between(&self) -> Vec<String> {
        let mut found = Vec::new();
        let system = self.file_system.as_deref().unwrap_or_default();
        if self.encrypted {
            found.push("encrypted: times include the cipher".to_owned());
        }
        if self.compressed {
            let words = "compressed: the device moves fewer bytes than were requested";
            found.push(words.to_owned());
        }
        if COPY_ON_WRITE.contains(&system) {
            found.push(format!(
                "{system} is copy-on-write: adjacent blocks of the file may lie apart on the \
                 device"
            ));
        }
        if system == "overlay" || system.starts_with("fuse") {
            found.push(format!("{system} forwards requests to another file system"));
        }
        found
    }

    /// The share of a file that is holes, per cent.
    fn hole_percent(&self) -> Option<f64> {
        let bytes = self.bytes.filter(|bytes| *bytes > 0)?;
        Some(bytes.saturating_sub(self.data_bytes?) as f64 * 100.0 / bytes as f64)
    }
}

/// Whether a device is one of a driver: `ram0`, `zram12`.
fn is_of(device: &str, driver: &str) -> bool {
    let number = device.strip_prefix(driver);
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_testkit::{begins, has};

    fn facts(change: impl FnOnce(&mut TargetFacts)) -> TargetFacts {
        let mut facts = TargetFacts {
            path: "t.img".to_owned(),
            kind: "regular file".to_owned(),
            file_system: Some("ext4".to_owned()),
            device: Some("vda".to_owned()),
            ..TargetFacts::default()
        };
        change(&mut facts);
        facts
    }

    #[test]
    fn holes_and_memory_are_no_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        let sparse = TargetFacts::of(file.path()).unwrap();
        assert_eq!((sparse.bytes, sparse.data_bytes), (Some(64 << 20), Some(0)));
        let why = sparse.no_device().unwrap();
        assert!(
            why.contains("100 %") || why.contains("which is memory"),
            "{why}"
        );
        assert_eq!(facts(|_| ()).no_device(), None);
        let memory = facts(|it| it.file_system = Some("tmpfs".to_owned()));
        assert!(
            memory
                .no_device()
                .unwrap()
                .contains("tmpfs, which is memory")
        );
        let memory = facts(|it| it.device = Some("zram0".to_owned()));
        assert!(memory.no_device().is_some());
        assert_eq!(
            facts(|it| it.device = Some("ramdisk".to_owned())).no_device(),
            None
        );
        let shm = Path::new("/dev/shm");
        if let Ok(file) = tempfile::NamedTempFile::new_in(shm) {
            std::fs::write(file.path(), vec![1; 8192]).unwrap();
            let facts = TargetFacts::of(file.path()).unwrap();
            assert!(facts.no_device().is_some(), "{facts:?}");
        }
    }

    #[test]
    fn a_loop_device_over_the_page_cache_is_no_device() {
        let on_loop = |buffered| {
            facts(|it| {
                it.device = Some("loop3".to_owned());
                it.backing_file = Some("/no/such/disk.img".to_owned());
                it.backing_is_buffered = buffered;
            })
        };
        let why = on_loop(true).no_device().unwrap();
        begins(
            &why,
            "loop3 reads /no/such/disk.img through the page cache (losetup",
        );
        assert_eq!(on_loop(false).no_device(), None);
    }

    #[test]
    fn a_file_with_data_at_its_end_only_begins_with_a_hole() {
        use std::os::unix::fs::FileExt;
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.as_file()
            .write_all_at(&vec![7; 1 << 20], 8192)
            .unwrap();
        let facts = TargetFacts::of(file.path()).unwrap();
        assert!(
            facts.begins_with_hole && facts.no_device().is_some(),
            "{facts:?}"
        );
        file.as_file().write_all_at(&[7; 8192], 0).unwrap();
        assert!(!TargetFacts::of(file.path()).unwrap().begins_with_hole);
    }

    #[test]
    fn what_lies_between_is_named() {
        assert!(facts(|_| ()).between().is_empty());
        let btrfs = facts(|it| {
            it.file_system = Some("btrfs".to_owned());
            it.encrypted = true;
        });
        let between = btrfs.between().join("; ");
        has(&between, "cipher");
        has(&between, "copy-on-write");
        let compressed = facts(|it| {
            it.file_system = Some("overlay".to_owned());
            it.compressed = true;
        });
        let between = compressed.between().join("; ");
        has(&between, "moves fewer bytes");
        has(&between, "overlay forwards");
    }
}
