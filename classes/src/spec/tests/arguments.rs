//! How a class reads its arguments.

use super::*;
use crate::spec::{Options, parse};

/// Reads the options of the last layer of `text`, which may have one value called `size`.
fn with_options<T>(text: &str, read: impl FnOnce(Options<'_>) -> T) -> T {
    let target = parse(text, CLASSES).unwrap();
    read(target.layers.last().unwrap().options(&["size"]).unwrap())
}

#[test]
fn values_are_read_by_name_and_type() {
    with_options(
        "disk:64m,sectorsize=8s,seek=8ms,fail=5%,rate=57m/s,seed=0x2a,direct=yes,name=\"a b\"",
        |mut options| {
            assert_eq!(options.take_size("size"), Ok(Some(64 << 20)));
            assert_eq!(
                options.take_size_in_sectors_of(4096, "sectorsize"),
                Ok(Some(32768))
            );
            assert_eq!(options.take_duration_ns("seek"), Ok(Some(8_000_000)));
            assert_eq!(options.take_probability("fail"), Ok(Some(0.05)));
            assert_eq!(
                options.take_rate_bytes_per_second("rate"),
                Ok(Some(57 << 20))
            );
            assert_eq!(options.take_u64("seed"), Ok(Some(42)));
            assert_eq!(options.take_bool("direct"), Ok(Some(true)));
            assert_eq!(options.take_str("name"), Some("a b"));
            assert_eq!(options.take_u64("absent"), Ok(None));
            assert_eq!(options.finish(), Ok(()));
        },
    );
}

#[test]
fn an_unnamed_value_can_be_given_by_its_name() {
    with_options("md:size=4k", |mut options| {
        assert_eq!(options.take_size("size"), Ok(Some(4096)));
        assert_eq!(options.finish(), Ok(()));
    });
}

#[test]
fn an_unknown_option_is_refused_with_the_nearest_known_one() {
    with_options("md:64m | nop:dealy=1ms", |mut options| {
        assert_eq!(options.take_duration_ns("delay"), Ok(None));
        let error = options.finish().unwrap_err();
        assert_eq!(columns(&error), (14, 18));
        assert_eq!(error.message, "nop has no option `dealy`");
        assert_eq!(error.help.as_deref(), Some("did you mean `delay`?"));
    });
    with_options("nop:colour=1", |mut options| {
        assert_eq!(options.take_duration_ns("delay"), Ok(None));
        let error = options.finish().unwrap_err();
        assert_eq!(error.help.as_deref(), Some("there are: size, delay"));
    });
    let target = parse("mbr:x=1", CLASSES).unwrap();
    let error = target.layers[0].options(&[]).unwrap().finish().unwrap_err();
    assert_eq!(error.help.as_deref(), Some("mbr takes no options"));
}

#[test]
fn a_wrong_value_is_pointed_at() {
    with_options("md:64x,at=5,fail=7%,on=maybe", |mut options| {
        let error = options.take_size("size").unwrap_err();
        assert_eq!(columns(&error), (4, 6));
        assert_eq!(error.message, "size=64x: this is not a size");
        assert!(error.help.unwrap().starts_with("a number with k, m, g"));
        let error = options.take_duration_ns("at").unwrap_err();
        assert_eq!(
            (columns(&error), error.message.as_str()),
            ((11, 11), "at=5: this is not a duration")
        );
        let error = options.take_u64_in(1..=9, "at").unwrap();
        assert_eq!(error, Some(5));
        let error = options.take_u64_in(6..=9, "at").unwrap_err();
        assert_eq!(
            (columns(&error), error.message.as_str()),
            ((11, 11), "at goes from 6 to 9")
        );
        assert_eq!(columns(&options.take_u64("fail").unwrap_err()), (18, 19));
        assert_eq!(columns(&options.take_bool("on").unwrap_err()), (24, 28));
        assert_eq!(columns(&options.invalid("fail", "too much")), (18, 19));
        assert_eq!(columns(&options.invalid("absent", "needed")), (1, 28));
    });
}

#[test]
fn a_choice_is_one_of_some_words() {
    let engines = [("sync", 1), ("io_uring", 2)];
    with_options("disk.img?engine=io_uring&backup=iouring", |mut options| {
        assert_eq!(options.take_choice(&engines, "engine"), Ok(Some(2)));
        assert_eq!(options.take_choice(&engines, "absent"), Ok(None));
        let error = options.take_choice(&engines, "backup").unwrap_err();
        assert_eq!(columns(&error), (33, 39));
        assert_eq!(error.message, "backup cannot be `iouring`");
        assert_eq!(error.help.as_deref(), Some("did you mean `io_uring`?"));
    });
}

#[test]
fn a_missing_option_is_an_error_about_the_layer() {
    with_options("md:64m | nop:delay=1ms | disk", |options| {
        let error = options.missing("seek");
        assert_eq!(
            (columns(&error), error.message.as_str()),
            ((26, 29), "disk needs seek")
        );
    });
}

#[test]
fn more_values_than_names_and_a_value_given_twice_are_refused() {
    let target = parse("md:64m,512", CLASSES).unwrap();
    let error = target.layers[0].options(&["size"]).unwrap_err();
    assert_eq!(
        (columns(&error), error.message.as_str()),
        ((8, 10), "`512` has no name")
    );
    assert_eq!(
        error.help.as_deref(),
        Some("without a name md takes only: size")
    );
    let error = target.layers[0].options(&[]).unwrap_err();
    assert_eq!(columns(&error), (4, 6));

    let target = parse("md:64m,size=32m", CLASSES).unwrap();
    let error = target.layers[0].options(&["size"]).unwrap_err();
    assert_eq!(columns(&error), (8, 11));
    assert_eq!(error.message, "`size` was already given, as `64m`");
}
