//! Fuzz targets of the texts that name other files and servers: VMDK descriptors, URIs of NBD
//! exports.
//!
//! `format/tests/hostile.rs` calls them with random text, so that a machine without cargo-fuzz
//! covers them too.

use ugeom_format::vmdk::{Descriptor, SparseHeader};
use ugeom_format::wire::nbd::uri::{self, ServerAddress};

/// The descriptor of a VMDK image: the files that `qemu-nbd` opens are those that were found.
pub fn vmdk(data: &[u8]) {
    let _ = SparseHeader::decode(data);
    let Ok(descriptor) = Descriptor::parse(data) else { return };
    if data.starts_with(b"KDMV") || data.starts_with(b"COWD") {
        assert!(descriptor.extents.is_empty());
        return;
    }
    let found = descriptor.extents.iter();
    let found: Vec<_> = found.map(|it| (it.sectors, it.name.clone())).collect();
    assert_eq!(found, as_qemu_reads(data));
}

/// The extents as `vmdk_parse_extents` of qemu finds them: at each line, white space, and then
/// `%10s %lld %10s "%511[^\n\r"]"`, wherever lines end.
fn as_qemu_reads(data: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let text = data.split(|&byte| byte == 0).next().unwrap_or_default();
    let starts = text.iter().enumerate();
    let starts = starts.filter_map(|(at, &byte)| (byte == b'\n').then_some(at + 1));
    let starts = std::iter::once(0).chain(starts);
    starts.filter_map(|at| scanned(&text[at..])).collect()
}

fn scanned(text: &[u8]) -> Option<(u64, Vec<u8>)> {
    fn skip(text: &[u8]) -> &[u8] {
        let is_space = |byte: &u8| b" \t\n\x0b\x0c\r".contains(byte);
        let at = text.iter().position(|byte| !is_space(byte));
        &text[at.unwrap_or(text.len())..]
    }
    fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
        let text = skip(text);
        let is_space = |byte: &u8| b" \t\n\x0b\x0c\r".contains(byte);
        let end = text.iter().position(is_space).unwrap_or(text.len());
        let (word, rest) = text.split_at(end.min(10));
        (!word.is_empty()).then_some((word, rest))
    }
    let (access, text) = word(text)?;
    let text = skip(text);
    let signed = usize::from(text.first().is_some_and(|sign| b"+-".contains(sign)));
    let digits = text[signed..].iter().take_while(|it| it.is_ascii_digit());
    let (number, text) = text.split_at(signed + digits.count());
    let sectors = str::from_utf8(number).ok()?.parse::<i128>().ok()?;
    // strtoll stops at the largest number.
    let sectors = sectors.clamp(i64::MIN.into(), i64::MAX.into());
    let (kind, text) = word(text)?;
    let text = skip(text).strip_prefix(b"\"")?;
    let end = text.iter().position(|byte| b"\n\r\"".contains(byte));
    let name = &text[..end.unwrap_or(text.len()).min(511)];
    let kinds: [&[u8]; 5] = [b"FLAT", b"SPARSE", b"VMFS", b"VMFSSPARSE", b"SESPARSE"];
    let is_extent = access == b"RW" && sectors > 0 && kinds.contains(&kind) && !name.is_empty();
    is_extent.then(|| (sectors as u64, name.to_owned()))
}

/// A URI of an NBD export, and behind an empty line the path of its socket.
pub fn nbd_uri(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (text, socket) = match text.split_once("\n\n") {
        Some((text, socket)) => (text, Some(socket)),
        None => (&*text, None),
    };
    let Ok(found) = uri::parse(text, socket) else { return };
    let scheme = match found.tls {
        true => "nbds",
        false => "nbd",
    };
    let escaped = |text: &str| {
        text.bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect::<String>()
    };
    let export = escaped(&found.export);
    let again = match &found.server {
        ServerAddress::Tcp { .. } => {
            uri::parse(&format!("{scheme}://{}/{export}", found.server), None)
        }
        ServerAddress::Unix(path) => uri::parse(
            &format!("{scheme}+unix:///{export}"),
            Some(&escaped(path.to_str().expect("it was text"))),
        ),
    };
    assert_eq!(again, Ok(found));
}
