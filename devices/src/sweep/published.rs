//! The publication of 26 September 2004, as data.
//!
//! Source: Matthew Dillon, "ATA disk performance", to current@freebsd.org: `time dd if=/dev/ad0
//! bs=... of=/dev/null` for 67,108,864 bytes in each block size. Rows of the `iostat` beside it
//! that straddle two block sizes are left out here.

use ugeom_measure::limits::Fitted;

/// The output of dd and csh for one block size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Bytes of one block.
    pub block_bytes: u64,
    /// The time that dd printed, seconds.
    pub seconds: f64,
    /// The user time that csh printed, seconds.
    pub user_seconds: f64,
    /// The same in the kernel.
    pub system_seconds: f64,
}

/// The bytes of each row.
pub const BYTES: u64 = 67_108_864;

const fn row(block_bytes: u64, seconds: f64, user_seconds: f64, system_seconds: f64) -> Row {
    Row {
        block_bytes,
        seconds,
        user_seconds,
        system_seconds,
    }
}

/// The rows, in the order of the mail.
pub const ROWS: [Row; 11] = [
    row(512, 8.996482, 0.007, 3.412),
    row(1 << 10, 4.563335, 0.000, 1.608),
    row(2 << 10, 2.430306, 0.000, 0.773),
    row(4 << 10, 1.538318, 0.000, 0.312),
    row(8 << 10, 1.264007, 0.015, 0.132),
    row(16 << 10, 1.174806, 0.000, 0.093),
    row(32 << 10, 1.208589, 0.000, 0.046),
    row(64 << 10, 1.241938, 0.000, 0.007),
    row(128 << 10, 1.208579, 0.007, 0.015),
    row(256 << 10, 1.183573, 0.000, 0.007),
    row(512 << 10, 1.200243, 0.000, 0.015),
];

/// The limits of the drive, fitted to the rows; times in ns, sizes in bytes.
pub fn limits() -> Option<Fitted> {
    let sizes = ROWS.map(|row| row.block_bytes as f64);
    let times = ROWS.map(|row| row.seconds * 1e9 * row.block_bytes as f64 / BYTES as f64);
    Fitted::of(&sizes, &times).ok()
}
