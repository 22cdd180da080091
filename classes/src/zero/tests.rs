//! Tests of `zero`: gzero's sizes and answers, and where it goes further.

use crate::target::tests::{opened, refuses};
use crate::target::{Target, TargetOptions};
use ugeom_stack::{Channel, Command, Errno, Extent, ExtentKind, Opened};

fn open(text: &str) -> (Target, Channel, Opened) {
    opened(text, &TargetOptions::default(), 1)
}

#[test]
fn reads_are_filled_with_the_byte() {
    for (text, byte) in [
        ("zero", 0),
        ("zero:byte=0", 0),
        ("zero:clear=1,byte=0x5a", 0x5a),
    ] {
        let (_target, mut channel, opened) = open(text);
        let mut bytes = [1; 1024];
        let read = channel
            .read(&opened, (1 << 60) - 1024, &mut bytes)
            .expect("reads");
        assert_eq!((read, bytes), (1024, [byte; 1024]), "{text}");
    }
}

#[test]
fn without_clearing_the_memory_of_a_read_stays_as_it_was() {
    let (_target, mut channel, opened) = open("zero:clear=0");
    let mut bytes = [0xa5; 512];
    assert_eq!(channel.read(&opened, 0, &mut bytes).expect("reads"), 512);
    assert_eq!(bytes, [0xa5; 512]);
}

#[test]
fn it_keeps_to_what_gzero_answers_but_for_flush_zero_and_extents() {
    for (text, zero, kind) in [
        ("zero", true, ExtentKind::Hole),
        ("zero:byte=1", false, ExtentKind::Data),
        ("zero:clear=0", false, ExtentKind::Data),
    ] {
        let (_target, mut channel, opened) = open(text);
        assert_eq!(
            channel.write(&opened, 0, &[1; 512]).expect("writes"),
            512,
            "{text}"
        );
        let deleted = channel.discard(&opened, Command::Delete, 0, 512);
        assert_eq!(deleted.expect("deletes"), 512, "{text}");
        assert_eq!(
            channel.attribute(&opened, "GEOM::candelete").expect("asks"),
            None
        );
        channel.flush(&opened).expect("flushes");
        let zeroed = channel.discard(&opened, Command::Zero, 0, 512);
        let expected = if zero { Ok(512) } else { Err(Errno::OPNOTSUPP) };
        assert_eq!(zeroed.map_err(|error| error.errno), expected, "{text}");
        let extents = channel.extents(&opened, 512, 1 << 50, 9).expect("extents");
        assert_eq!(
            extents,
            [Extent {
                length_bytes: 1 << 50,
                kind
            }],
            "{text}"
        );
    }
}

#[test]
fn impossible_options_are_refused_where_they_stand() {
    refuses(&[
        ("zero:byte=256", "byte=256: this is not within 0 to 255"),
        ("zero:clear=0,byte=1", "with clear=0 no byte is filled in"),
        ("zero:clear=perhaps", "clear=perhaps"),
        ("zero:size=1m", "zero has no option `size`"),
        ("zero:1m", "`1m` has no name"),
    ]);
}
