//! Metadata of every version, every bound, and the sizes that FreeBSD's own tests expect.

use super::*;
use proptest::prelude::*;

fn sample(version: u32) -> Metadata {
    let mut salt = [0; SALT_BYTES];
    let mut master_keys = [0; MASTER_KEYS_BYTES];
    for (at, byte) in salt.iter_mut().chain(&mut master_keys).enumerate() {
        *byte = (at * 7 + 3) as u8;
    }
    Metadata {
        version,
        flags: EliFlags::BOOT,
        cipher_number: Cipher::AesCbc.number(),
        key_bits: 128,
        authentication_number: 0,
        provider_bytes: 1 << 20,
        sector_bytes: 512,
        keys: 1,
        iterations: 1000,
        salt,
        master_keys,
    }
}

fn authenticated(algorithm: Authentication, sector_bytes: u32) -> Metadata {
    Metadata {
        flags: EliFlags::AUTH,
        authentication_number: algorithm.number(),
        sector_bytes,
        ..sample(7)
    }
}

/// Writes a field of the struct and mends its MD5.
fn damaged(version: u32, at: usize, value: &[u8]) -> Vec<u8> {
    use md5::{Digest, Md5};
    let mut bytes = sample(version).encode();
    bytes[at..at + value.len()].copy_from_slice(value);
    let body = bytes.len() - 16;
    let checksum: [u8; 16] = Md5::digest(&bytes[..body]).into();
    bytes[body..].copy_from_slice(&checksum);
    bytes
}

#[test]
fn fields_lie_where_freebsd_puts_them() {
    for (version, length, provsize) in [(0, 509, 28), (1, 511, 30), (7, 511, 30)] {
        let metadata = sample(version);
        let bytes = metadata.encode();
        assert_eq!(bytes.len(), length);
        assert!(bytes.starts_with(b"GEOM::ELI\0\0\0\0\0\0\0"));
        assert_eq!(bytes[16..20], version.to_le_bytes());
        assert_eq!(bytes[20..24], [2, 0, 0, 0]);
        assert_eq!(bytes[24..28], [11, 0, 128, 0]);
        assert_eq!(bytes[provsize..provsize + 8], (1_u64 << 20).to_le_bytes());
        assert_eq!(bytes[provsize + 8..provsize + 12], 512_u32.to_le_bytes());
        assert_eq!(bytes[provsize + 12], 1);
        assert_eq!(bytes[provsize + 13..provsize + 17], 1000_i32.to_le_bytes());
        assert_eq!(bytes[provsize + 17..provsize + 81], metadata.salt);
        assert_eq!(bytes[provsize + 81..length - 16], metadata.master_keys);
        assert_eq!(bytes[length - 16..], metadata.checksum());
    }
}

#[test]
fn what_is_not_metadata_is_refused_with_the_reason() {
    let good = sample(7).encode();
    assert!(matches!(Metadata::decode(&[]), Err(EliError::Short { .. })));
    assert!(matches!(
        Metadata::decode(&good[..510]),
        Err(EliError::Short {
            found: 510,
            expected: 511
        })
    ));
    assert!(matches!(
        Metadata::decode(&[0; 512]),
        Err(EliError::Magic { .. })
    ));
    assert_eq!(
        Metadata::decode(&damaged(7, 16, &8_u32.to_le_bytes())),
        Err(EliError::TooNew { version: 8 })
    );
    let mut flipped = good;
    flipped[100] ^= 1;
    assert!(matches!(
        Metadata::decode(&flipped),
        Err(EliError::Checksum { .. })
    ));
}

#[test]
fn every_field_is_bounded() {
    let refused = |at: usize, value: &[u8]| {
        let metadata = Metadata::decode(&damaged(7, at, value)).expect("consistent");
        metadata.layout(1 << 20, 512).expect_err("out of bounds")
    };
    assert!(matches!(refused(24, &[1, 0]), EliError::Cipher { .. }));
    assert!(matches!(refused(26, &[64, 0]), EliError::KeyBits { .. }));
    for size in [0_u32, 1, 511, 513, 1000, u32::MAX, 2 << 20] {
        let error = refused(38, &size.to_le_bytes());
        assert!(matches!(error, EliError::SectorSize { .. }), "{size}");
    }
    assert!(matches!(refused(42, &[4]), EliError::Keys { found: 4 }));
    let error = refused(43, &(-2_i32).to_le_bytes());
    assert!(matches!(error, EliError::Iterations { found: -2 }));
    let error = refused(20, &EliFlags::AUTH.0.to_le_bytes());
    assert!(matches!(error, EliError::Authentication { .. }));
}

#[test]
fn a_cipher_is_refused_before_the_version_that_has_it() {
    for cipher in Cipher::ALL {
        for version in 0..=VERSION_MAX {
            let metadata = Metadata {
                cipher_number: cipher.number(),
                key_bits: cipher.default_key_bits(),
                ..sample(version)
            };
            let known = version >= cipher.since_version();
            assert_eq!(metadata.cipher().is_ok(), known, "{cipher} {version}");
        }
    }
}

#[test]
fn a_tag_that_leaves_no_room_for_data_is_refused() {
    let metadata = authenticated(Authentication::Sha512, 64);
    assert!(matches!(
        metadata.layout(1 << 20, 64),
        Err(EliError::NoRoom { .. })
    ));
    assert!(matches!(
        metadata.layout(1 << 20, 0),
        Err(EliError::SectorSize { .. })
    ));
    let metadata = authenticated(Authentication::Sha512, 512);
    assert!(matches!(
        metadata.layout(1024, 512),
        Err(EliError::TooSmall { .. })
    ));
}

/// Sizes from `tests/sys/geom/class/eli/online_resize_test.sh` and `g_eli_integrity.c`.
#[test]
fn media_sizes_are_those_that_freebsd_expects() {
    const MIB: u64 = 1 << 20;
    let plain = |sector_bytes| Metadata {
        sector_bytes,
        ..sample(7)
    };
    let sha256 = |sector_bytes| authenticated(Authentication::Sha256, sector_bytes);
    let rows = [
        (plain(512), [10_485_248, 20_971_008, 31_456_768]),
        (plain(4096), [10_481_664, 20_967_424, 31_453_184]),
        (sha256(512), [5_242_368, 10_485_248, 15_728_128]),
        (sha256(4096), [9_318_400, 18_640_896, 27_959_296]),
    ];
    for (metadata, expected) in rows {
        let sizes = [10, 20, 30].map(|mib| {
            let layout = metadata.layout(mib * MIB, 512).expect("a layout");
            layout.media_bytes
        });
        assert_eq!(sizes, expected);
    }
    let large = [
        (plain(512), 11_258_999_068_425_728),
        (plain(4096), 11_258_999_068_422_144),
        (sha256(512), 5_629_499_534_212_608),
        (sha256(4096), 10_007_999_171_932_160),
    ];
    for (metadata, expected) in large {
        let layout = metadata.layout(10 << 50, 512).expect("a layout");
        assert_eq!(layout.media_bytes, expected);
    }
}

#[test]
fn sub_sectors_carry_the_data_that_freebsd_gives_them() {
    // (algorithm, sector size, component sector size, data each, count, data of the last)
    let rows = [
        (Authentication::Sha256, 4096, 512, 480, 9, 256),
        (Authentication::Sha256, 512, 512, 480, 2, 32),
        (Authentication::Sha512, 4096, 512, 448, 10, 64),
        (Authentication::Md5, 4096, 512, 496, 9, 128),
        (Authentication::Sha1, 4096, 512, 480, 9, 256),
        (Authentication::Sha384, 4096, 512, 464, 9, 384),
        (Authentication::Sha256, 4096, 4096, 4064, 2, 32),
    ];
    for (algorithm, sector, below, data, count, last) in rows {
        let layout = authenticated(algorithm, sector).layout(1 << 30, below);
        let sub = layout.expect("a layout").sub_sectors.expect("tags");
        let found = (sub.data_bytes, sub.count, sub.last_bytes);
        assert_eq!(found, (data, count, last), "{algorithm} {sector}");
        let carried: u32 = (0..count).map(|number| sub.carried_bytes(number)).sum();
        assert_eq!(carried, sector);
    }
}

#[test]
fn names_of_algorithms_are_those_of_geli() {
    for (text, cipher) in [
        ("aes", Cipher::AesXts),
        ("AES-XTS", Cipher::AesXts),
        ("aes-cbc", Cipher::AesCbc),
        ("null", Cipher::Null),
        ("camellia", Cipher::CamelliaCbc),
        ("3des-cbc", Cipher::TripleDesCbc),
        ("blowfish", Cipher::BlowfishCbc),
    ] {
        assert_eq!(Cipher::parse(text), Some(cipher));
    }
    for algorithm in Authentication::ALL {
        let lower = algorithm.name().to_lowercase();
        assert_eq!(Authentication::parse(&lower), Some(algorithm));
    }
    assert_eq!(Cipher::parse("des"), None);
    assert_eq!(Authentication::parse("hmac"), None);
    let flags = EliFlags::BOOT.with(EliFlags::RO, true);
    assert_eq!(flags.to_string(), "BOOT, READ-ONLY");
    assert_eq!(EliFlags::default().to_string(), "NONE");
}

prop_compose! {
    fn any_metadata()(
        version in 0..=VERSION_MAX,
        flags: u32,
        numbers: (u16, u16, u16),
        provider_bytes: u64,
        sector_bytes: u32,
        keys: u8,
        iterations: i32,
        seed: u8,
    ) -> Metadata {
        Metadata {
            version,
            flags: EliFlags(flags),
            cipher_number: numbers.0,
            key_bits: numbers.1,
            authentication_number: if version == 0 { 0 } else { numbers.2 },
            provider_bytes,
            sector_bytes,
            keys,
            iterations,
            salt: [seed; SALT_BYTES],
            master_keys: [!seed; MASTER_KEYS_BYTES],
        }
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_as_it_was(metadata in any_metadata(), tail in 0_usize..64) {
        let mut bytes = metadata.encode();
        bytes.resize(bytes.len() + tail, 0);
        prop_assert_eq!(Metadata::decode(&bytes), Ok(metadata));
    }

    #[test]
    fn one_flipped_bit_is_always_noticed(metadata in any_metadata(), bit in 0_usize..509 * 8) {
        let mut bytes = metadata.encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Metadata::decode(&bytes).is_err());
    }

    #[test]
    fn sectors_lie_inside_the_provider_and_apart(
        algorithm in proptest::option::of(0_usize..6),
        sector_log in 4_u32..=17,
        below_log in 4_u32..=13,
        provider_bytes in 0_u64..1 << 44,
    ) {
        let tag = algorithm.map(|at| Authentication::ALL[at].tag_bytes());
        let (sector, below) = (1 << sector_log, 1 << below_log);
        let Ok(layout) = EliLayout::new(provider_bytes, sector, below, tag) else { return Ok(()) };
        let length = u64::from(sector);
        let last = layout.media_bytes - length;
        let (start, size) = layout.below(last, length);
        prop_assert_eq!(size, layout.stride_bytes());
        prop_assert!(start + size <= provider_bytes);
        prop_assert!(start + 2 * size > provider_bytes);
        prop_assert_eq!(layout.below(0, layout.media_bytes), (0, start + size));
    }
}
