//! Mounted file systems, as the kernel lists them for this process.
//!
//! Source: proc(5), `/proc/PID/mountinfo`.

use crate::block_device::System;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mount: a line of `mountinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the file system's device. Some file systems (btrfs, overlays) have
    /// a number that no block device has.
    pub number: (u32, u32),
    /// Where it is mounted, with escapes of mountinfo(5) undone.
    pub point: PathBuf,
    /// Options of the mount: `rw,noatime`.
    pub options: String,
    /// Type of the file system: `ext4`, `fuse.sshfs`.
    pub kind: String,
    /// The mounted device, or a name.
    pub source: String,
    /// Options of the file system: `rw,compress=zstd:3`.
    pub own_options: String,
}

impl Mount {
    /// `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw`; none for anything else.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let number = text(fields.next()?);
        let (major, minor) = number.split_once(':')?;
        let point = OsString::from_vec(unescaped(fields.nth(1)?)).into();
        let options = text(fields.next()?);
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        Some(Self {
            number: (major.parse().ok()?, minor.parse().ok()?),
            point,
            options,
            kind: text(fields.next()?),
            source: text(&unescaped(fields.next()?)),
            own_options: text(fields.next()?),
        })
    }
}

impl System {
    /// All mounts, later ones over earlier ones; none when the list cannot be read.
    pub fn mounts(&self) -> Vec<Mount> {
        let text = fs::read(self.proc.join("self/mountinfo")).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(Mount::parse).collect()
    }
}

/// A path of a file in `/proc`: there, blanks and others stand as a backslash and three octal
/// digits.
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|it| std::str::from_utf8(it).ok());
        let escaped = digits.and_then(|it| u8::from_str_radix(it, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = &tail[if escaped.is_some() { 3 } else { 0 }..];
    }
    bytes
}

// Without unsafe code there is nothing for Miri.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_fields_with_or_without_optional_ones() {
        let mount = |optional: &str| {
            let line =
                format!("36 35 98:7 /a /mnt/\\043\\040b rw,ro {optional}- ext4 /dev/a\\134 rw");
            Mount::parse(line.as_bytes())
        };
        let expected = Mount {
            number: (98, 7),
            point: "/mnt/# b".into(),
            options: "rw,ro".to_owned(),
            kind: "ext4".to_owned(),
            source: "/dev/a\\".to_owned(),
            own_options: "rw".to_owned(),
        };
        for optional in ["", "master:1 ", "shared:1 master:2 "] {
            assert_eq!(mount(optional).as_ref(), Some(&expected));
        }
    }

    #[test]
    fn a_line_that_is_none_is_left_out() {
        for line in [
            "",
            "1 2 3",
            "1 2 8:1 / /mnt rw - ext4",
            "1 2 x:1 / /mnt rw - ext4 a rw",
        ] {
            assert_eq!(Mount::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn any_line_is_read_or_left_out() {
        let line = b"1 2 8:1 / /mnt\\040 rw x:1 - ext4 /dev/a rw";
        for at in 0..line.len() {
            let _ = Mount::parse(&line[..at]);
            for byte in 0..=255 {
                let mut other = *line;
                other[at] = byte;
                if let Some(mount) = Mount::parse(&other) {
                    assert!(!mount.kind.is_empty() || byte == b' ', "{mount:?}");
                }
            }
        }
    }

    #[test]
    fn what_only_looks_like_an_escape_stays() {
        for text in ["/a\\9\\", "\\04", "x\\", "\\999", "\\\u{e4}1"] {
            assert_eq!(unescaped(text.as_bytes()), text.as_bytes());
        }
    }
}
