//! Each cipher and tag against OpenSSL, and each combination against a round trip.

use super::*;
use crate::eli::cipher::{IvKey, SectorKey};
use crate::eli::crypt::CryptError;
use crate::eli::kdf;
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};
use ugeom_machine::aes::Sectors;
use ugeom_testkit::begins;

/// The result of `openssl` for `input`.
fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input).expect("writes");
    drop(stdin);
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success(), "openssl {arguments:?}");
    output.stdout
}

fn key() -> [u8; 64] {
    std::array::from_fn(|at| (11 * at + 5) as u8)
}

#[test]
fn cbc_ciphers_give_what_openssl_gives() {
    if ugeom_testkit::program("openssl").is_none() {
        return;
    }
    let rows = [
        (Cipher::AesCbc, 128, "-aes-128-cbc", ""),
        (Cipher::AesCbc, 192, "-aes-192-cbc", ""),
        (Cipher::AesCbc, 256, "-aes-256-cbc", ""),
        (Cipher::CamelliaCbc, 128, "-camellia-128-cbc", ""),
        (Cipher::CamelliaCbc, 192, "-camellia-192-cbc", ""),
        (Cipher::CamelliaCbc, 256, "-camellia-256-cbc", ""),
        (Cipher::TripleDesCbc, 192, "-des-ede3-cbc", ""),
        (Cipher::BlowfishCbc, 128, "-bf-cbc", "legacy"),
    ];
    let plain: Vec<u8> = (0..3 * 512).map(|at| (at * 13) as u8).collect();
    for (cipher, bits, algorithm, provider) in rows {
        for backend in [Backend::Fastest, Backend::Portable] {
            let sector_key = SectorKey::new(cipher, bits, &key(), backend).expect("a key");
            let ivs = IvKey::new(&[9; 64], false).expect("memory");
            let at = Sectors {
                offset: 1 << 33,
                sector_bytes: 512,
            };
            let mut ours = vec![0; plain.len()];
            sector_key.encrypt(&ivs, at, &plain, &mut ours);
            for (number, sector) in plain.chunks(512).enumerate() {
                use sha2::{Digest, Sha256};
                let offset = at.offset + 512 * number as u64;
                let hash = Sha256::new_with_prefix([9; 64]).chain_update(offset.to_le_bytes());
                let hash = hash.finalize();
                let block = if cipher.is_legacy() { 8 } else { 16 };
                let key = hex(&key()[..usize::from(bits) / 8]);
                let iv = hex(&hash[..block]);
                let mut arguments = vec!["enc", algorithm, "-nopad", "-K", &key, "-iv", &iv];
                if !provider.is_empty() {
                    arguments.extend(["-provider", provider, "-provider", "default"]);
                }
                let expected = openssl(&arguments, sector);
                assert!(
                    ours[512 * number..][..512] == expected,
                    "{cipher} {bits} {backend:?}"
                );
            }
            sector_key.decrypt(&ivs, at, &mut ours);
            assert!(ours == plain, "{cipher} {bits} {backend:?}");
        }
    }
}

#[test]
fn pbkdf2_gives_what_openssl_gives() {
    if ugeom_testkit::program("openssl").is_none() {
        return;
    }
    for rounds in [1, 2, 1000, 5000] {
        let ours = kdf::pbkdf2(b"pass phrase", b"some salt", rounds, &KdfLimit::default());
        let iterations = format!("iter:{rounds}");
        let arguments = [
            "kdf",
            "-binary",
            "-keylen",
            "64",
            "-kdfopt",
            "digest:SHA512",
            "-kdfopt",
            "pass:pass phrase",
            "-kdfopt",
            "salt:some salt",
            "-kdfopt",
            &iterations,
            "PBKDF2",
        ];
        let expected = openssl(&arguments, b"");
        assert_eq!(hex(&ours.expect("a key")[..]), hex(&expected), "{rounds}");
    }
}

#[test]
fn both_implementations_of_xts_agree() {
    let plain: Vec<u8> = (0..5 * 4096).map(|at| (at * 31 % 251) as u8).collect();
    let ivs = IvKey::new(&[0; 64], false).expect("memory");
    for bits in [128, 256] {
        let both = [Backend::Fastest, Backend::Portable];
        let [fastest, portable] =
            both.map(|backend| SectorKey::new(Cipher::AesXts, bits, &key(), backend));
        let (fastest, portable) = (fastest.expect("a key"), portable.expect("a key"));
        for sector_bytes in [16, 48, 512, 528, 1024, 4096] {
            let length = plain.len() / sector_bytes * sector_bytes;
            let at = Sectors {
                offset: u64::MAX - (1 << 20),
                sector_bytes,
            };
            let (mut one, mut other) = (vec![0; length], vec![0; length]);
            fastest.encrypt(&ivs, at, &plain[..length], &mut one);
            portable.encrypt(&ivs, at, &plain[..length], &mut other);
            assert!(one == other, "{bits} {sector_bytes}");
            portable.decrypt(&ivs, at, &mut one);
            fastest.decrypt(&ivs, at, &mut other);
            assert!(
                one == plain[..length] && one == other,
                "{bits} {sector_bytes}"
            );
        }
    }
}

#[test]
fn a_header_that_asks_for_half_an_hour_is_refused_at_once() {
    let limit = KdfLimit {
        time_max: std::time::Duration::from_millis(1),
        ..KdfLimit::default()
    };
    let salt = [0; 64];
    let error = components(false, true).user_key(&salt, i32::MAX, &limit);
    let error = error.expect_err("refused").to_string();
    begins(&error, "2147483647 iterations of PBKDF2 would take about");
    ugeom_testkit::has(&error, "--max-kdf-time");
}

#[test]
fn deriving_a_key_can_be_cancelled() {
    let limit = KdfLimit {
        time_max: std::time::Duration::MAX,
        is_cancelled: &|| true,
    };
    let error = components(false, true).user_key(&[0; 64], i32::MAX, &limit);
    assert_eq!(error.expect_err("cancelled").to_string(), "interrupted");
}

/// HMAC mode: each single flipped bit of a sector is noticed, in its tag and in its ciphertext.
#[test]
fn ten_thousand_flipped_bits_are_refused() {
    let metadata = sample(7, Cipher::AesXts, 256, Some(Authentication::Sha256), 4096);
    let crypt = crypt(&metadata, Backend::Fastest);
    let plain: Vec<u8> = (0..8192).map(|at| (at * 3) as u8).collect();
    let sub = crypt.layout().sub_sectors.expect("tags");
    let mut sealed = vec![0; 2 * crypt.layout().stride_bytes() as usize];
    crypt.seal(4096, &plain, &mut sealed).expect("keys");
    let mut read = vec![0; plain.len()];
    let mut random = fastrand::Rng::with_seed(19);
    let mut flipped = 0;
    while flipped < 10_000 {
        let at = random.usize(..sealed.len());
        let (number, within) = (at / 512, at % 512);
        let carried = sub.carried_bytes(number as u32 % sub.count);
        if within >= (sub.tag_bytes + carried) as usize {
            // Behind the data: no part of the sector.
            continue;
        }
        let bit = 1 << random.u8(..8);
        sealed[at] ^= bit;
        let wrong = crypt.open(4096, &sealed, &mut read);
        let expected = 4096 * (1 + (number as u64 / u64::from(sub.count)));
        assert!(
            matches!(wrong, Err(CryptError::Authentication { offset, length: 4096 })
                if offset == expected),
            "byte {at} bit {bit}: {wrong:?}"
        );
        sealed[at] ^= bit;
        flipped += 1;
    }
    crypt.open(4096, &sealed, &mut read).expect("whole again");
    assert!(read == plain);
}

/// `integrity_copy_test.sh`: a sector that is copied elsewhere is not authentic there.
#[test]
fn a_sector_at_another_place_is_refused() {
    for algorithm in Authentication::ALL {
        let metadata = sample(7, Cipher::AesCbc, 128, Some(algorithm), 512);
        let crypt = crypt(&metadata, Backend::Fastest);
        let mut sealed = vec![0; crypt.layout().stride_bytes() as usize];
        crypt.seal(512, &[7; 512], &mut sealed).expect("keys");
        let mut read = [0; 512];
        crypt.open(512, &sealed, &mut read).expect("authentic");
        assert!(crypt.open(0, &sealed, &mut read).is_err(), "{algorithm}");
        // Never written.
        assert!(
            crypt.open(512, &vec![0; sealed.len()], &mut read).is_err(),
            "{algorithm}"
        );
    }
}

#[test]
fn old_providers_of_big_endian_machines_need_their_byte_order() {
    let below = (1 << 20, BELOW_BYTES);
    for (version, differs) in [(3, true), (4, false)] {
        let metadata = sample(version, Cipher::AesCbc, 128, None, 512);
        let make =
            |order| Crypt::new(&metadata, below, &master(), order, Backend::Fastest).expect("keys");
        let [little, big] = [ByteOrder::Little, ByteOrder::Big].map(|order| {
            let mut out = [0; 1024];
            make(order)
                .encrypt(1024, &[1; 1024], &mut out)
                .expect("keys");
            out
        });
        assert_eq!(little != big, differs, "{version}");
    }
}

prop_compose! {
    fn any_provider()(
        version in 0_u32..=7,
        cipher in 0_usize..6,
        bits in 0_usize..11,
        algorithm in proptest::option::of(0_usize..6),
        sector_log in 9_u32..=13,
    ) -> Metadata {
        let known = |cipher: &Cipher| cipher.since_version() <= version;
        let ciphers: Vec<Cipher> = Cipher::ALL.into_iter().filter(known).collect();
        let cipher = ciphers[cipher % ciphers.len()];
        let all: Vec<u16> = (8..=512).step_by(8).filter(|b| cipher.allows_key_bits(*b)).collect();
        let algorithm = algorithm.filter(|_| version > 0).map(|at| Authentication::ALL[at]);
        sample(version, cipher, all[bits % all.len()], algorithm, 1 << sector_log)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_combination_comes_back_as_it_was(
        metadata in any_provider(), start in 0_u64..8, count in 1_usize..8, seed: u64,
    ) {
        let sector = metadata.sector_bytes as usize;
        let mut plain = vec![0; count * sector];
        fastrand::Rng::with_seed(seed).fill(&mut plain);
        let [fastest, portable] =
            [Backend::Fastest, Backend::Portable].map(|backend| crypt(&metadata, backend));
        let offset = start * sector as u64;
        let (_, length) = fastest.layout().below(offset, plain.len() as u64);
        let [mut one, mut other] = [vec![1; length as usize], vec![2; length as usize]];
        fastest.seal(offset, &plain, &mut one).expect("keys");
        portable.seal(offset, &plain, &mut other).expect("keys");
        prop_assert!(one == other);
        let mut read = vec![0; plain.len()];
        portable.open(offset, &one, &mut read).expect("authentic");
        prop_assert!(read == plain);
    }
}

/// Sectors side by side have the tags that each has alone, which is the work of the crates: 16 and
/// 2 at a time, and one that is left.
#[test]
fn tags_of_many_are_those_of_each() {
    use crate::eli::tag::TagKey;
    const COUNT: usize = 19;
    let master = master();
    for algorithm in [Authentication::Sha256, Authentication::Sha512] {
        for big_endian in [false, true] {
            let key = |backend| TagKey::new(algorithm, &master.data_key, big_endian, backend);
            let (fast, portable) = (key(Backend::Fastest), key(Backend::Portable));
            let (fast, portable) = (fast.expect("memory"), portable.expect("memory"));
            for length in (1..70).chain([119, 120, 128, 256, 480]) {
                let data: Vec<Vec<u8>> = (0..COUNT)
                    .map(|seed| {
                        let mut bytes = vec![0; length];
                        fastrand::Rng::with_seed(seed as u64).fill(&mut bytes);
                        bytes
                    })
                    .collect();
                let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
                let offsets: Vec<u64> = (0..COUNT as u64)
                    .map(|n| (length as u64 * 512).wrapping_sub(n * 512))
                    .collect();
                let (mut all, mut alone) = ([[0; 64]; COUNT], [[0; 64]; COUNT]);
                fast.tags(&offsets, &data, &mut all);
                for ((offset, data), tag) in offsets.iter().zip(&data).zip(&mut alone) {
                    portable.tag(*offset, data, tag);
                }
                assert_eq!(all, alone, "{algorithm:?} {length}");
            }
        }
    }
}
