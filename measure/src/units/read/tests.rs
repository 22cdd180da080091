//! Known values, and properties of every text.

use proptest::prelude::*;

use super::*;
use crate::units::{duration_exact, size_exact};

const SECONDS: TimeUnit = TimeUnit::Seconds;

fn size(text: &str) -> Result<u64, UnitError> {
    size_bytes(text, SizeUnits::USUAL)
}

#[test]
fn sizes_are_powers_of_1024_or_sectors() {
    for (text, bytes) in [
        ("0", 0),
        ("512", 512),
        ("512b", 512),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4ki", 4096),
        ("4KiB", 4096),
        (" 64 MiB ", 64 << 20),
        ("1.5g", 3 << 29),
        ("0.5k", 512),
        ("1.50000000000000000000000000000000000000000000k", 1536),
        ("2t", 1 << 41),
        ("1p", 1 << 50),
        ("15.5E", 31 << 59),
        ("8s", 4096),
        ("0x200", 512),
        ("0x10k", 16384),
        ("0x1b", 27),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    let sectors_of_4k = SizeUnits::with_sectors_of(4096);
    assert_eq!(size_bytes("8s", sectors_of_4k), Ok(32768));
}

#[test]
fn units_of_fio_mean_what_they_mean_to_fio() {
    for (text, bytes) in [
        ("4k", 4096),
        ("4kb", 4096),
        ("4ki", 4096),
        ("4KiB", 4000),
        ("1m", 1 << 20),
        ("2gib", 2_000_000_000),
        ("0x1000", 4096),
        ("7b", 7),
    ] {
        assert_eq!(size_bytes(text, SizeUnits::FIO), Ok(bytes), "{text}");
    }
    assert_eq!(size_bytes("8s", SizeUnits::FIO), Err(FIO_SIZE));
    assert_eq!(
        size_bytes("1i", SizeUnits::FIO),
        Err(FIO_SIZE),
        "i alone is no unit"
    );
}

#[test]
fn what_is_no_size_is_refused() {
    for text in [
        "", " ", "k", "-1", "+1", "1.", "1.k", ".5", "1.2.3k", "4kk", "4bi", "4si", "4x", "1e3",
        "0x", "0xg", "4\u{131}", "\u{661}", "1_000", "1k1k", "64\u{b5}", "50%",
    ] {
        assert_eq!(size(text), Err(SIZE), "{text}");
    }
    let too_large = Err(UnitError::TooLarge { unit: "bytes" });
    for text in [
        "16e",
        "18446744073709551616",
        "999999999999999999999999999999e",
        "99999999999999999999999999999999999999999999",
        "0xfffffffffffffffffffffffffffffffffff",
    ] {
        assert_eq!(size(text), too_large, "{text}");
    }
    let fraction = Err(UnitError::Fraction { unit: "bytes" });
    for text in [
        "1.3k",
        "0.5",
        "1.44m",
        "0.0000000000000000000000000000000000000001e",
    ] {
        assert_eq!(size(text), fraction, "{text}");
    }
}

#[test]
fn shares_are_of_the_whole() {
    let read = |text| size_or_percent(text, SizeUnits::USUAL);
    assert_eq!(read("50%").map(|share| share.of(1000)), Ok(500));
    assert_eq!(read("12.5 %").map(|share| share.of(1000)), Ok(125));
    assert_eq!(read("100%").map(|share| share.of(u64::MAX)), Ok(u64::MAX));
    assert_eq!(read("4k").map(|share| share.of(1)), Ok(4096));
    for text in ["101%", "%", "-1%", "4x", "5 0%"] {
        assert_eq!(read(text), Err(SHARE), "{text}");
    }
}

#[test]
fn rates_are_sizes_a_second() {
    assert_eq!(rate_bytes_per_second("57m/s"), Ok(57 << 20));
    assert_eq!(rate_bytes_per_second("57m"), Err(RATE));
    assert_eq!(rate_bytes_per_second("m/s"), Err(RATE));
}

#[test]
fn times_have_units_from_nanoseconds_to_days() {
    for (text, ns) in [
        ("0", 0),
        ("30", 30_000_000_000),
        ("7ns", 7),
        ("250us", 250_000),
        ("250\u{b5}s", 250_000),
        ("10 \u{3bc}s", 10_000),
        ("100usec", 100_000),
        ("1MS", 1_000_000),
        ("8.33ms", 8_330_000),
        ("1.5s", 1_500_000_000),
        ("5m", 300_000_000_000),
        ("24h", 86_400_000_000_000),
        ("1D", 86_400_000_000_000),
    ] {
        assert_eq!(duration_ns(text, SECONDS), Ok(ns), "{text}");
    }
    assert_eq!(duration_ns("10", TimeUnit::Microseconds), Ok(10_000));
    assert_eq!(
        duration_ns("10s", TimeUnit::Microseconds),
        duration_ns("10", SECONDS)
    );
    for text in ["", "ms", "5 parsecs", "5%", "1k", "-1s", "1m30s"] {
        assert_eq!(duration_ns(text, SECONDS), Err(DURATION), "{text}");
    }
    let fraction = UnitError::Fraction {
        unit: "nanoseconds",
    };
    assert_eq!(duration_ns("0.1ns", SECONDS), Err(fraction));
    let too_large = UnitError::TooLarge {
        unit: "nanoseconds",
    };
    assert_eq!(duration_ns("300000d", SECONDS), Err(too_large));
}

#[test]
fn a_share_of_one_and_a_share_of_a_hundred_are_told_apart_by_the_sign() {
    for (text, value) in [
        ("0", 0.0),
        ("1", 1.0),
        ("0.05", 0.05),
        ("5%", 0.05),
        ("5 %", 0.05),
        ("0.1%", 0.001),
        ("100%", 1.0),
    ] {
        assert_eq!(probability(text), Ok(value), "{text}");
    }
    for text in ["5", "1.01", "101%", "-0.1", "NaN", "inf", "", "5s"] {
        assert_eq!(probability(text), Err(PROBABILITY), "{text}");
    }
    assert_eq!(percent("95"), Ok(95.0));
    assert_eq!(percent("99.5%"), Ok(99.5));
    for text in ["101", "-1", "1k", "inf", ""] {
        assert_eq!(percent(text), Err(PERCENT), "{text}");
    }
}

#[test]
fn whole_numbers_are_decimal_or_hexadecimal() {
    assert_eq!(whole_number("42"), Ok(42));
    assert_eq!(whole_number("0x2A"), Ok(42));
    assert_eq!(whole_number("18446744073709551615"), Ok(u64::MAX));
    for text in ["", "0x", "+1", "-1", "1.0", "0x+1", "2a"] {
        assert_eq!(whole_number(text), Err(NUMBER), "{text}");
    }
    let too_large = Err(UnitError::TooLarge { unit: "units" });
    assert_eq!(whole_number("18446744073709551616"), too_large);
}

#[test]
fn truth_has_four_words_each_way() {
    for word in ["1", "yes", "true", "on"] {
        assert_eq!(truth(word), Ok(true));
    }
    for word in ["0", "no", "false", "off"] {
        assert_eq!(truth(word), Ok(false));
    }
    assert_eq!(truth("maybe"), Err(TRUTH));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Against arithmetic of whole numbers: `WHOLE.THOUSANDTHS` of a unit.
    #[test]
    fn a_number_of_units_is_exact_or_refused(
        whole in 0_u64..1 << 44,
        thousandths in 0_u64..1000,
        power in 0_u32..7,
    ) {
        let letter = ["", "k", "m", "g", "t", "p", "e"][power as usize];
        let text = format!("{whole}.{thousandths:03}{letter}");
        let exact = (u128::from(whole) * 1000 + u128::from(thousandths)) << (10 * power);
        let expected = match (exact % 1000, u64::try_from(exact / 1000)) {
            (0, Ok(bytes)) => Ok(bytes),
            (0, Err(_)) => Err(UnitError::TooLarge { unit: "bytes" }),
            _ => Err(UnitError::Fraction { unit: "bytes" }),
        };
        prop_assert_eq!(size(&text), expected, "{}", text);
    }

    #[test]
    fn what_is_written_exactly_reads_back_as_itself(
        number: u64,
        shift in 0_u32..64,
        unit in 0_usize..4,
    ) {
        let bytes = number << shift;
        prop_assert_eq!(size(&size_exact(bytes)), Ok(bytes));
        prop_assert_eq!(size(&bytes.to_string()), Ok(bytes));
        let ns = number - number % [1, 1_000, 60_000_000_000, 86_400_000_000_000][unit];
        prop_assert_eq!(duration_ns(&duration_exact(ns), SECONDS), Ok(ns));
        prop_assert_eq!(duration_ns(&number.to_string(), TimeUnit::Nanoseconds), Ok(number));
    }

    #[test]
    fn any_text_is_a_value_or_is_refused(text in "[0-9.x]{0,40} ?[a-z%/]{0,4}|\\PC{0,8}") {
        let _ = size_bytes(&text, SizeUnits::with_sectors_of(u64::MAX));
        let _ = size_bytes(&text, SizeUnits::FIO);
        let _ = rate_bytes_per_second(&text);
        let _ = duration_ns(&text, TimeUnit::Days);
        let _ = whole_number(&text);
        let _ = truth(&text);
        if let Ok(value) = probability(&text) {
            prop_assert!((0.0..=1.0).contains(&value));
        }
        if let Ok(share) = size_or_percent(&text, SizeUnits::USUAL) {
            prop_assert!(text.contains('%') == matches!(share, Size::Percent(_)));
        }
        if let Ok(value) = percent(&text) {
            prop_assert!((0.0..=100.0).contains(&value));
        }
    }
}
