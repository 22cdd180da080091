//! Cases about the data of a provider.

use super::{Bench, Deleted};
use ugeom_stack::{Command, Errno, Extent, ExtentKind};

pub(super) fn pieces(bench: &mut Bench<'_>) {
    if !bench.subject.promises.stable {
        return;
    }
    let (sector, length) = (bench.sector(), bench.playground());
    let whole = bench.read(0, length);
    for offset in (0..length).step_by(sector as usize) {
        let piece = bench.read(offset, sector);
        let same = piece == whole[offset as usize..][..sector as usize];
        bench.check(
            same,
            "a sector differs from the same sector in a longer read",
        );
    }
    let last = bench.media() - sector;
    let same = bench.read(last, sector) == bench.read(last, sector);
    bench.check(same, "the last sector reads differently each time");
}

pub(super) fn write_and_read(bench: &mut Bench<'_>) {
    if !bench.subject.promises.keeps_data {
        return;
    }
    let (sector, media) = (bench.sector(), bench.media());
    let whole = bench.playground();
    for (offset, length) in [(0, sector), (media - sector, sector), (0, whole)] {
        let bytes = bench.random_bytes(length);
        bench.write(offset, &bytes);
        let same = bench.read(offset, length) == bytes;
        bench.check(same, "what was read is not what was written");
    }
}

pub(super) fn neighbours(bench: &mut Bench<'_>) {
    let (sector, whole) = (bench.sector(), bench.playground());
    if !bench.subject.promises.keeps_data || whole < 3 * sector {
        return;
    }
    let mut expected = bench.random_bytes(whole);
    bench.write(0, &expected);
    let at = (whole / sector / 2) * sector;
    let bytes = bench.random_bytes(sector);
    bench.write(at, &bytes);
    expected[at as usize..][..sector as usize].copy_from_slice(&bytes);
    let same = bench.read(0, whole) == expected;
    bench.check(same, "a write changed something beside it");
}

pub(super) fn model(bench: &mut Bench<'_>) {
    const REQUESTS: usize = 200;
    if !bench.subject.promises.keeps_data {
        return;
    }
    let (sector, whole) = (bench.sector(), bench.playground());
    let sectors = whole / sector;
    let mut model = bench.random_bytes(whole);
    bench.write(0, &model);
    for _ in 0..REQUESTS {
        let first = bench.random.u64(0..sectors);
        let count = bench.random.u64(1..=(sectors - first).min(64));
        let range = (first * sector) as usize..((first + count) * sector) as usize;
        let (offset, length) = (first * sector, count * sector);
        match bench.random.u8(0..8) {
            0..3 => {
                let bytes = bench.random_bytes(length);
                bench.write(offset, &bytes);
                model[range].copy_from_slice(&bytes);
            }
            3 if bench.subject.promises.zeroes => {
                let result = bench
                    .channel
                    .discard(&bench.opened, Command::Zero, offset, length);
                bench.good(result);
                model[range].fill(0);
            }
            4 if bench.subject.promises.deleted == Deleted::Zeroes => {
                let result = bench
                    .channel
                    .discard(&bench.opened, Command::Delete, offset, length);
                bench.good(result);
                model[range].fill(0);
            }
            _ => {
                let same = bench.read(offset, length) == model[range];
                bench.check(same, "a read disagrees with the model");
            }
        }
    }
    let same = bench.read(0, whole) == model;
    bench.check(same, "the media disagrees with the model");
}

pub(super) fn flush(bench: &mut Bench<'_>) {
    let result = bench.channel.flush(&bench.opened);
    bench.good(result);
    if bench.subject.promises.keeps_data {
        let bytes = bench.random_bytes(bench.sector());
        bench.write(0, &bytes);
        let result = bench.channel.flush(&bench.opened);
        bench.good(result);
        let same = bench.read(0, bench.sector()) == bytes;
        bench.check(same, "a flush changed data");
    }
}

pub(super) fn delete(bench: &mut Bench<'_>) {
    if !bench.subject.promises.writable {
        return;
    }
    let refused = bench.subject.promises.deleted == Deleted::Refused;
    let zeroes = bench.subject.promises.deleted == Deleted::Zeroes;
    discard(bench, Command::Delete, refused, zeroes);
}

pub(super) fn zero(bench: &mut Bench<'_>) {
    if !bench.subject.promises.writable {
        return;
    }
    let works = bench.subject.promises.zeroes;
    discard(bench, Command::Zero, !works, works);
}

/// Discards the middle of the playground and looks at it and at what is beside it.
fn discard(bench: &mut Bench<'_>, command: Command, refused: bool, zeroes: bool) {
    let (sector, whole) = (bench.sector(), bench.playground());
    let keeps = bench.subject.promises.keeps_data;
    let before = bench.random_bytes(whole);
    bench.write(0, &before);
    let (start, end) = (sector, (whole / sector - 1).max(1) * sector);
    let length = (end - start).max(sector).min(whole - start);
    if length == 0 {
        return;
    }
    let result = bench.channel.discard(&bench.opened, command, start, length);
    if refused {
        return bench.refused(result, Errno::OPNOTSUPP);
    }
    let done = bench.good(result);
    bench.check(done as u64 == length, "not all of the range was done");
    let after = bench.read(0, whole);
    let range = start as usize..(start + length) as usize;
    if zeroes {
        let all = after[range.clone()].iter().all(|byte| *byte == 0);
        bench.check(all, "the range does not read as zeroes");
    }
    if keeps {
        let same = after[..range.start] == before[..range.start]
            && after[range.end..] == before[range.end..];
        bench.check(same, "something beside the range was changed");
    }
}

pub(super) fn extents(bench: &mut Bench<'_>) {
    if bench.subject.promises.keeps_data {
        let bytes = bench.random_bytes(bench.sector());
        let at = bench.playground() / bench.sector() / 2 * bench.sector();
        bench.write(at, &bytes);
    }
    let media = bench.media();
    let result = bench.channel.extents(&bench.opened, 0, media, usize::MAX);
    if !bench.subject.promises.extents {
        return bench.refused(result, Errno::OPNOTSUPP);
    }
    let all = bench.good(result);
    let sum: u64 = all.iter().map(|extent| extent.length_bytes).sum();
    bench.check(sum == media, "the extents do not cover the media");
    let empty = all.iter().any(|extent| extent.length_bytes == 0);
    bench.check(!empty, "there is an extent of no bytes");
    let alike = all.windows(2).any(|pair| pair[0].kind == pair[1].kind);
    bench.check(!alike, "extents of one kind follow each other");
    let mut at = 0;
    for extent in &all {
        holds_what_it_says(bench, at, extent);
        at += extent.length_bytes;
    }
    let result = bench.channel.extents(&bench.opened, 0, media, 1);
    let first = bench.good(result);
    bench.check(
        first == all[..1],
        "a limit of one gives another first extent",
    );
    let sector = bench.sector();
    let result = bench
        .channel
        .extents(&bench.opened, media - sector, sector, 8);
    let last: u64 = bench
        .good(result)
        .iter()
        .map(|extent| extent.length_bytes)
        .sum();
    bench.check(last == sector, "the extents of a range do not cover it");
}

/// Looks at the ends of an extent that claims to read as zeroes.
fn holds_what_it_says(bench: &mut Bench<'_>, at: u64, extent: &Extent) {
    let sector = bench.sector();
    if extent.kind == ExtentKind::Data || extent.length_bytes < sector {
        return;
    }
    let first = at.next_multiple_of(sector);
    let end = at + extent.length_bytes;
    let last = (end - end % sector).saturating_sub(sector);
    for offset in [first, last] {
        if offset >= at && offset + sector <= end {
            let all = bench.read(offset, sector).iter().all(|byte| *byte == 0);
            bench.check(all, "a hole does not read as zeroes");
        }
    }
}
