//! How a class reads its arguments.

use super::*;
use crate::set_field;
use crate::spec::OptionDefault::{Absent, Depends, Required, Value};
use crate::spec::{LayerArguments, OptionTable, SpecError, option, parse, values};
use ugeom_measure::units;
use ugeom_testkit::begins;

#[derive(Debug, Default, PartialEq)]
struct Disk {
    sector_bytes: u64,
    size_bytes: u64,
    seek_ns: Option<u64>,
    fail: f64,
    rate_bytes_per_second: u64,
    seed: u64,
    direct: bool,
    name: Option<String>,
    engine: u32,
}

const ENGINES: &[(&str, u32)] = &[("sync", 1), ("io_uring", 2)];

#[rustfmt::skip]
const OPTIONS: OptionTable<Disk> = OptionTable(&[
    option("sectorsize", "SIZE", Value("512"), "", set_field!(sector_bytes = values::size)),
    option("size", "SIZE", Required, "",
        set_field!(it, text => size_bytes = values::size_in_sectors_of(it.sector_bytes, text)?)),
    option("seek", "TIME", Absent, "", set_field!(seek_ns = values::duration_ns)),
    option("fail", "PROBABILITY", Value("5%"), "", set_field!(fail = units::probability)),
    option("rate", "SIZE/s", Value("1m/s"), "",
        set_field!(rate_bytes_per_second = units::rate_bytes_per_second)),
    option("seed", "6..9", Value("6"), "",
        set_field!(it, text => seed = values::number_in(6..=9, text)?)),
    option("direct", "0|1", Value("0"), "", set_field!(direct = units::truth)),
    option("name", "NAME", Depends("disk0"), "", set_field!(name = values::text)),
    option("engine", "ENGINE", Value("sync"), "",
        set_field!(it, text => engine = values::choice(ENGINES, text)?)),
]);

/// Reads the last layer of `text`, which may have one value called `size`.
fn with_arguments<T>(text: &str, read: impl FnOnce(LayerArguments<'_>) -> T) -> T {
    let target = parse(text, CLASSES).unwrap();
    read(target.layers.last().unwrap().arguments(&["size"]).unwrap())
}

fn read(text: &str) -> Result<Disk, SpecError> {
    with_arguments(text, |arguments| arguments.read(&OPTIONS, Disk::default()))
}

#[test]
fn values_are_read_by_name_and_type() {
    let text = "disk:8s,sectorsize=4k,seek=5m,fail=10%,rate=57m/s,seed=0x8,direct=yes,\
                name=\"a b\",engine=io_uring";
    let disk = Disk {
        sector_bytes: 4096,
        size_bytes: 32_768,
        seek_ns: Some(300_000_000_000),
        fail: 0.1,
        rate_bytes_per_second: 57 << 20,
        seed: 8,
        direct: true,
        name: Some("a b".into()),
        engine: 2,
    };
    assert_eq!(read(text), Ok(disk));
}

#[test]
fn what_is_not_given_has_its_default() {
    let disk = Disk {
        sector_bytes: 512,
        size_bytes: 4096,
        seek_ns: None,
        fail: 0.05,
        rate_bytes_per_second: 1 << 20,
        seed: 6,
        direct: false,
        name: None,
        engine: 1,
    };
    assert_eq!(read("md:size=8s"), Ok(disk));
    with_arguments("md:64m,fail=0", |arguments| {
        assert!(arguments.is_given("size") && arguments.is_given("fail"));
        assert!(!arguments.is_given("seed"));
    });
}

#[test]
fn an_unknown_option_is_refused_with_the_nearest_known_one() {
    let error = read("md:64m | nop:sede=1ms").unwrap_err();
    assert_eq!(columns(&error), (14, 17));
    assert_eq!(error.message, "nop has no option `sede`");
    assert_eq!(error.help.as_deref(), Some("did you mean `seed`?"));
    let error = read("nop:colour=1").unwrap_err();
    let help = error.help.unwrap();
    begins(&help, "there are: sectorsize, size, seek,");
    let target = parse("mbr:x=1", CLASSES).unwrap();
    let arguments = target.layers[0].arguments(&[]).unwrap();
    let error = arguments.read(&OptionTable(&[]), ()).unwrap_err();
    assert_eq!(error.help.as_deref(), Some("mbr takes no options"));
}

#[test]
fn a_wrong_value_is_pointed_at() {
    for (text, place, message) in [
        ("md:64x", (4, 6), "size=64x: this is not a size"),
        ("md:1,seek=8x", (11, 12), "seek=8x: this is not a duration"),
        ("md:1,seed=5", (11, 11), "seed=5: this is not within 6 to 9"),
        ("md:1,fail=7", (11, 11), "fail=7: this is not a probability"),
        (
            "md:1,direct=maybe",
            (13, 17),
            "direct=maybe: this is not yes or no",
        ),
        (
            "md:1,engine=iouring",
            (13, 19),
            "engine=iouring: expected one of sync, io_uring",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((columns(&error), error.message.as_str()), (place, message));
    }
    let help = |text| read(text).unwrap_err().help;
    begins(&help("md:64x").unwrap(), "write a number with k, m, g");
    assert_eq!(
        help("md:1,engine=iouring").as_deref(),
        Some("did you mean `io_uring`?")
    );
    with_arguments("md:64x,at=5", |arguments| {
        assert_eq!(columns(&arguments.invalid("at", "too much")), (11, 11));
        assert_eq!(columns(&arguments.invalid("absent", "needed")), (1, 11));
    });
}

#[test]
fn a_missing_option_is_an_error_about_the_layer() {
    let error = read("md:64m | nop:delay=1ms | disk").unwrap_err();
    assert_eq!(
        (columns(&error), error.message.as_str()),
        ((26, 29), "disk needs size")
    );
    assert_eq!(error.help.as_deref(), Some("write disk:size=SIZE"));
}

#[test]
fn more_values_than_names_and_a_value_given_twice_are_refused() {
    let target = parse("md:64m,512", CLASSES).unwrap();
    let error = target.layers[0].arguments(&["size"]).unwrap_err();
    assert_eq!(
        (columns(&error), error.message.as_str()),
        ((8, 10), "`512` has no name")
    );
    assert_eq!(
        error.help.as_deref(),
        Some("without a name md takes only: size")
    );
    let error = target.layers[0].arguments(&[]).unwrap_err();
    assert_eq!(columns(&error), (4, 6));

    let target = parse("md:64m,size=32m", CLASSES).unwrap();
    let error = target.layers[0].arguments(&["size"]).unwrap_err();
    assert_eq!(columns(&error), (8, 11));
    assert_eq!(error.message, "`size` was already given, as `64m`");
}
