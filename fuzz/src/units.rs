//! The grammar of sizes, times and percentages.

use ugeom_measure::units::{
    Size, SizeUnits, TimeUnit, duration_exact, duration_ns, percent, probability,
    rate_bytes_per_second, size_bytes, size_exact, size_or_percent, truth, whole_number,
};

/// Any text is refused or is a value that lies in its range; sizes and times that are written
/// exactly read back as themselves.
pub fn values(text: &str) {
    for units in [
        SizeUnits::USUAL,
        SizeUnits::FIO,
        SizeUnits::with_sectors_of(4096),
    ] {
        if let Ok(bytes) = size_bytes(text, units) {
            assert_eq!(size_bytes(&size_exact(bytes), units), Ok(bytes));
            assert_eq!(size_or_percent(text, units), Ok(Size::Bytes(bytes)));
        }
        if let Ok(share) = size_or_percent(text, units) {
            assert!(share.of(1 << 20) <= 1 << 20 || matches!(share, Size::Bytes(_)));
        }
    }
    for bare in [TimeUnit::Nanoseconds, TimeUnit::Seconds, TimeUnit::Days] {
        if let Ok(ns) = duration_ns(text, bare) {
            assert_eq!(duration_ns(&duration_exact(ns), bare), Ok(ns));
        }
    }
    if let Ok(share) = probability(text) {
        assert!((0.0..=1.0).contains(&share));
    }
    if let Ok(share) = percent(text) {
        assert!((0.0..=100.0).contains(&share));
    }
    if let Ok(number) = whole_number(text) {
        assert_eq!(size_bytes(text, SizeUnits::USUAL), Ok(number));
    }
    let _ = (rate_bytes_per_second(text), truth(text));
}
