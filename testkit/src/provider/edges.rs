//! Cases about the limits of a provider: its sectors, the end of its media, its refusals.

use super::Bench;
use ugeom_stack::{Command, Delta, Errno};

pub(super) fn sizes(bench: &mut Bench<'_>) {
    bench.check(bench.sector() > 0, "the sector size is 0");
    bench.check(bench.media() > 0, "the media is empty");
    let whole = bench.media().is_multiple_of(bench.sector());
    bench.check(whole, "the media is no whole number of sectors");
}

pub(super) fn unaligned(bench: &mut Bench<'_>) {
    let sector = bench.sector();
    if sector == 1 {
        return;
    }
    let (mut whole, mut part) = (vec![0; sector as usize], vec![0; sector as usize - 1]);
    let result = bench.channel.read(&bench.opened, 1, &mut whole);
    bench.refused(result, Errno::INVAL);
    let result = bench.channel.read(&bench.opened, 0, &mut part);
    bench.refused(result, Errno::INVAL);
    if bench.subject.promises.writable {
        let result = bench.channel.write(&bench.opened, 1, &whole);
        bench.refused(result, Errno::INVAL);
        let result = bench.channel.write(&bench.opened, 0, &part);
        bench.refused(result, Errno::INVAL);
        for command in [Command::Delete, Command::Zero] {
            let result = bench.channel.discard(&bench.opened, command, 0, sector - 1);
            bench.refused(result, Errno::INVAL);
        }
    }
}

pub(super) fn end_of_media(bench: &mut Bench<'_>) {
    let (sector, media) = (bench.sector(), bench.media());
    let mut two = vec![0x5a; 2 * sector as usize];
    let result = bench.channel.read(&bench.opened, media - sector, &mut two);
    let read = bench.good(result);
    bench.check(
        read as u64 == sector,
        "a read across the end has the wrong length",
    );
    let untouched = two[sector as usize..].iter().all(|byte| *byte == 0x5a);
    bench.check(untouched, "a read across the end wrote behind what it read");
    let result = bench.channel.read(&bench.opened, media, &mut two);
    let read = bench.good(result);
    bench.check(read == 0, "a read at the end has a length");
    let last = u64::MAX - u64::MAX % sector;
    for offset in [media + sector, last] {
        let result = bench.channel.read(&bench.opened, offset, &mut two);
        bench.refused(result, Errno::IO);
    }
    if !bench.subject.promises.writable {
        return;
    }
    let result = bench.channel.write(&bench.opened, media - sector, &two);
    let written = bench.good(result);
    bench.check(
        written as u64 == sector,
        "a write across the end has the wrong length",
    );
    let result = bench.channel.write(&bench.opened, media, &two);
    let written = bench.good(result);
    bench.check(written == 0, "a write at the end has a length");
    let result = bench.channel.write(&bench.opened, media + sector, &two);
    bench.refused(result, Errno::IO);
    let result = bench.channel.write(&bench.opened, last, &two);
    bench.refused(result, Errno::IO);
}

pub(super) fn empty(bench: &mut Bench<'_>) {
    for offset in [0, bench.media()] {
        let result = bench.channel.read(&bench.opened, offset, &mut []);
        let read = bench.good(result);
        bench.check(read == 0, "a read of nothing read something");
        if bench.subject.promises.writable {
            let result = bench.channel.write(&bench.opened, offset, &[]);
            let written = bench.good(result);
            bench.check(written == 0, "a write of nothing wrote something");
        }
    }
}

pub(super) fn unknown_attribute(bench: &mut Bench<'_>) {
    for name in ["UGEOM::nobody-has-this", "", "\u{1f4be}"] {
        let result = bench.channel.attribute(&bench.opened, name);
        let value = bench.good(result);
        bench.check(value.is_none(), "an unknown attribute has a value");
    }
}

pub(super) fn read_only(bench: &mut Bench<'_>) {
    if bench.subject.promises.writable {
        return;
    }
    let opened = bench
        .device
        .stack
        .open(bench.device.provider, Delta::READ_WRITE);
    bench.check(opened.is_err(), "it was opened for writing");
}

pub(super) fn reader_writes(bench: &mut Bench<'_>) {
    let reader = bench.device.stack.open(bench.device.provider, Delta::READ);
    let reader = reader.unwrap_or_else(|error| panic!("{}: {error}", bench.about()));
    let sector = vec![0; bench.sector() as usize];
    let result = bench.channel.write(&reader, 0, &sector);
    bench.refused(result, Errno::PERM);
    for command in [Command::Delete, Command::Zero] {
        let result = bench.channel.discard(&reader, command, 0, bench.sector());
        bench.refused(result, Errno::PERM);
    }
}
