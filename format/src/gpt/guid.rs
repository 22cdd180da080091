//! GUIDs as they stand in a GPT: the first three fields little-endian, the
//! last two as written (UEFI 2.10, appendix A).

use std::fmt;
use std::str::FromStr;

/// A GUID in its on-disk byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

/// Index in the on-disk bytes of each byte of the written form.
const WRITTEN: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

impl Guid {
    /// The type of an unused entry.
    pub const UNUSED: Guid = Guid([0; 16]);

    /// From the written form taken as one number, `0xC12A7328_F81F_...`.
    pub const fn from_u128(written: u128) -> Guid {
        let bytes = written.to_be_bytes();
        let mut disk = [0; 16];
        let mut index = 0;
        while index < 16 {
            disk[WRITTEN[index]] = bytes[index];
            index += 1;
        }
        Guid(disk)
    }

    /// A version 4 GUID from 16 random bytes (RFC 9562, section 5.4).
    pub fn from_random(mut random: [u8; 16]) -> Guid {
        random[7] = (random[7] & 0x0f) | 0x40;
        random[8] = (random[8] & 0x3f) | 0x80;
        Guid(random)
    }

    /// True for the GUID of zeros.
    pub fn is_unused(&self) -> bool {
        *self == Guid::UNUSED
    }
}

/// 8-4-4-4-12 lower-case digits, as gpart prints them.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(36);
        for (place, &index) in WRITTEN.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [self.0[index] >> 4, self.0[index] & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

/// A text that is not a GUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a GUID, expected 8-4-4-4-12 hexadecimal digits")]
pub struct GuidError(String);

impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Guid, GuidError> {
        let wrong = || GuidError(text.chars().take(64).collect());
        let lengths = text.split('-').map(str::len);
        if !text.is_ascii() || !lengths.eq([8, 4, 4, 4, 12]) {
            return Err(wrong());
        }
        let digits: String = text.chars().filter(|&c| c != '-').collect();
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        u128::from_str_radix(&digits, 16)
            .map(Guid::from_u128)
            .map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_efi_system_guid_has_its_known_bytes() {
        let efi: Guid = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B".parse().unwrap();
        let bytes = [
            0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e,
            0xc9, 0x3b,
        ];
        assert_eq!(efi, Guid(bytes));
        assert_eq!(efi, Guid::from_u128(0xC12A7328_F81F_11D2_BA4B_00A0C93EC93B));
        assert_eq!(efi.to_string(), "c12a7328-f81f-11d2-ba4b-00a0c93ec93b");
    }

    #[test]
    fn what_is_not_a_guid_is_refused() {
        for text in [
            "",
            "c12a7328f81f11d2ba4b00a0c93ec93b",
            "c12a7328-f81f-11d2-ba4b-00a0c93ec93",
            "c12a7328-f81f-11d2-ba4b-00a0c93ec93g",
            "+12a7328-f81f-11d2-ba4b-00a0c93ec93b",
            "{12a7328-f81f-11d2-ba4b-00a0c93ec93}",
            "ä2a7328-f81f-11d2-ba4b-00a0c93ec93b",
        ] {
            assert!(text.parse::<Guid>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_random_guid_says_that_it_is_one() {
        let text = Guid::from_random([0xff; 16]).to_string();
        assert_eq!(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    proptest! {
        #[test]
        fn every_guid_survives_printing(bytes in any::<[u8; 16]>()) {
            let guid = Guid(bytes);
            prop_assert_eq!(guid.to_string().parse(), Ok(guid));
            prop_assert_eq!(guid.to_string().to_uppercase().parse(), Ok(guid));
        }
    }
}
