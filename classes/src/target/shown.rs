//! Providers by the names that `show` prints: `disk.imgp1` for `disk.img@p1`.

use crate::path::path_of;
use crate::spec::{Address, FILE_CLASS, Layer, Spanned, Target};
use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt;

/// If the path of the bottom layer is missing, but begins with the path of a file or a block device
/// and ends like the name of a provider: takes the end as an address in that file. An existing file
/// with the whole name takes precedence.
pub(super) fn addressed(target: &mut Target) {
    let next_is_addressed = match target.layers.get(1) {
        Some(layer) => layer.on.is_some(),
        None => target.provider.is_some(),
    };
    if next_is_addressed {
        return;
    }
    let Some((file, address)) = target.layers.first().and_then(split) else { return };
    if let Some(path) = target
        .layers
        .first_mut()
        .and_then(|layer| layer.positional.first_mut())
    {
        path.value = file;
    }
    match target.layers.get_mut(1) {
        Some(layer) => layer.on = Some(address),
        None => target.provider = Some(address),
    }
}

/// The file that the path of a layer begins with, and the rest of the path as an address.
fn split(layer: &Layer) -> Option<(String, Address)> {
    let path = layer
        .positional
        .first()
        .filter(|_| layer.class.value == FILE_CLASS)?;
    let whole = path.value.as_str();
    let is_missing = std::fs::symlink_metadata(path_of(whole))
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    if !is_missing {
        return None;
    }
    let is_of_names = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    // The longest name of a file comes first, so that what is left is shortest.
    let ends = whole.char_indices().rev().map(|(at, _)| at);
    let mut ends = ends.take_while(|at| whole[*at..].chars().all(is_of_names) && *at > 0);
    let at = ends.find(|at| {
        let begins = whole[*at..].starts_with(|c: char| c.is_ascii_lowercase());
        begins && std::fs::metadata(path_of(&whole[..*at])).is_ok_and(|about| is_disk(&about))
    })?;
    let text = Spanned {
        value: whole[at..].to_owned(),
        span: path.span,
    };
    let origin = layer.origin.clone();
    let address = Address {
        text,
        origin,
        missing_path: Some(whole.to_owned()),
    };
    Some((whole[..at].to_owned(), address))
}

fn is_disk(about: &Metadata) -> bool {
    about.is_file() || about.file_type().is_block_device()
}
