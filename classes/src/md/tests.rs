//! Tests of `md`: the values of its options, and sparseness.

use crate::target::tests::refuses;
use crate::target::{Target, TargetOptions, open_target};
use ugeom_machine::buffer::Buffer;
use ugeom_machine::lease::Lease;
use ugeom_machine::region::MAX_LEN_BYTES;
use ugeom_stack::{
    AttributeValue, Channel, Command, Delta, Extent, ExtentKind, Opened, ProviderView,
};

fn open(text: &str) -> Target {
    open_target(text, &TargetOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn view(target: &Target) -> ProviderView {
    let tree = target.stack.tree();
    tree.provider(&target.name).cloned().expect("the provider")
}

#[test]
fn its_sizes_are_those_asked_for() {
    for (text, media, sector) in [
        ("md:64m", 64 << 20, 512),
        ("md:3s", 1536, 512),
        ("md:3s,sectorsize=4k", 12288, 4096),
        ("md:size=1m,sectorsize=1m", 1 << 20, 1 << 20),
        ("md:64t", MAX_LEN_BYTES, 512),
    ] {
        let view = view(&open(text));
        assert_eq!(
            (view.mediasize_bytes, view.sectorsize_bytes),
            (media, sector),
            "{text}"
        );
    }
}

#[test]
fn it_shows_what_md_4_shows() {
    let view = view(&open("md:1m,name=scratch"));
    assert_eq!(view.name, "scratch");
    let config: Vec<_> = view.config.iter().map(|(k, v)| (*k, v.as_str())).collect();
    assert_eq!(
        config,
        [
            ("length", "1048576"),
            ("access", "read-write"),
            ("type", "malloc")
        ]
    );
}

#[test]
fn impossible_sizes_are_refused_at_the_option() {
    refuses(&[
        ("md", "md needs size"),
        ("md:0", "at least one sector"),
        (
            "md:513",
            "513 bytes are no whole number of 512-byte sectors",
        ),
        (
            "md:6k,sectorsize=4k",
            "no whole number of 4096-byte sectors",
        ),
        ("md:1m,sectorsize=0", "a power of two from 512 to 1m"),
        ("md:1m,sectorsize=256", "a power of two from 512 to 1m"),
        ("md:1m,sectorsize=1000", "a power of two from 512 to 1m"),
        ("md:4m,sectorsize=2m", "a power of two from 512 to 1m"),
        ("md:70368744178176", "md holds at most 64t"),
        ("md:9223372036854775808", "md holds at most 64t"),
        ("md:8e", "md holds at most 64t"),
        ("md:16e", "size=16e"),
        ("md:-1", "size=-1"),
        ("md:1m,name=\"\"", "a provider needs a name"),
        ("md:1m,sectorsiez=512", "did you mean `sectorsize`"),
        ("md:1m,2m", "`2m` has no name"),
    ]);
}

#[test]
fn memory_is_taken_by_what_is_written_only() {
    const HOLE: ExtentKind = ExtentKind::Hole;
    const DATA: ExtentKind = ExtentKind::Data;
    let target = open("md:16t");
    let media = view(&target).mediasize_bytes;
    let opened = target.open(Delta::READ_WRITE).expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let extents = |channel: &mut ugeom_stack::Channel| {
        let all = channel.extents(&opened, 0, media, 8).expect("extents");
        all.iter()
            .map(|e: &Extent| (e.kind, e.length_bytes))
            .collect::<Vec<_>>()
    };
    let mut bytes = vec![1; 1 << 20];
    channel.read(&opened, media / 2, &mut bytes).expect("reads");
    assert!(bytes.iter().all(|byte| *byte == 0));
    assert_eq!(extents(&mut channel), [(HOLE, media)]);
    channel
        .write(&opened, media / 2, &[7; 8192])
        .expect("writes");
    let rest = media / 2 - 8192;
    assert_eq!(
        extents(&mut channel),
        [(HOLE, media / 2), (DATA, 8192), (HOLE, rest)]
    );
    channel
        .discard(&opened, Command::Delete, media / 2, 8192)
        .expect("deletes");
    assert_eq!(extents(&mut channel), [(HOLE, media)]);
    let delete = channel
        .attribute(&opened, "GEOM::candelete")
        .expect("answers");
    assert_eq!(delete, Some(AttributeValue::Number(1)));
}

#[test]
fn the_answer_to_extents_is_cut_at_the_range() {
    let target = open("md:1m");
    let opened = target.open(Delta::READ_WRITE).expect("opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    channel.write(&opened, 4096, &[7; 4096]).expect("writes");
    let all = channel.extents(&opened, 4608, 1024, 8).expect("extents");
    assert_eq!(
        all,
        [Extent {
            length_bytes: 1024,
            kind: ExtentKind::Data
        }]
    );
}

/// Reads a range that may be lent: the lease, or else the bytes.
fn read(
    channel: &mut Channel,
    opened: &Opened,
    offset: u64,
    length: usize,
) -> Result<Lease, Vec<u8>> {
    let draft = channel.bio().expect("a bio");
    channel.submit(opened, draft.read_or_lease(offset, Buffer::new(length)));
    while channel.poll() == 0 {}
    let mut finished = channel.finished().expect("it is done");
    assert_eq!(finished.result(), Ok(length as u64));
    let lease = finished.take_lease();
    let read = lease.ok_or_else(|| finished.buffer().expect("a copy").to_vec());
    channel.recycle(finished);
    read
}

fn bytes_of(lease: &Lease) -> Vec<u8> {
    let mut bytes = Vec::new();
    lease.each(|_, piece| bytes.extend_from_slice(piece));
    bytes
}

#[test]
fn it_lends_what_has_no_holes_and_keeps_it_after_its_end() {
    let target = open("md:1m | nop");
    let opened = target.open(Delta::READ_WRITE);
    let opened = opened.expect("it opens");
    let mut channel = target.stack.channel(1).expect("a channel");
    let bytes: Vec<u8> = (0..16_384_u32).map(|it| (it % 251) as u8).collect();
    channel.write(&opened, 4096, &bytes).expect("writes");
    // With a hole, or short: a copy.
    let copied = read(&mut channel, &opened, 0, 8192).map(|_| ());
    assert_eq!(copied, Err([&[0; 4096], &bytes[..4096]].concat()));
    let copied = read(&mut channel, &opened, 4096, 512).map(|_| ());
    assert_eq!(copied, Err(bytes[..512].to_vec()));
    let lease = read(&mut channel, &opened, 4608, 12_288).expect("it is lent");
    assert!(bytes_of(&lease) == bytes[512..12_800]);
    // Later writes win, and the end of the disk does not matter.
    channel.write(&opened, 8192, &[255; 4096]).expect("writes");
    drop((channel, opened, target));
    let after = bytes_of(&lease);
    assert!(after[..3584] == bytes[512..4096]);
    assert!(after[3584..7680].iter().all(|&byte| byte == 255));
    assert!(after[7680..] == bytes[8192..12_800]);
}
