//! Answers of an independent model, which GRUB agrees with wherever GRUB can read.

use super::*;
use crate::eli::keys::open_slot;
use sha2::{Digest, Sha256};

#[test]
fn user_keys_are_those_of_the_model() {
    let salt = sample(7, Cipher::AesXts, 128, None, 512).salt;
    #[rustfmt::skip]
    let rows = [
        ((true, false), -1, "62f0a4e44d42de649ab53735ebd95407d926a9adcfad89c2"),
        ((false, true), 0, "03285ddbab0d161bb5b189673f376a2641f82e35647abdc0"),
        ((false, true), 1000, "547953bd5df4dfb76cbf771720a19a819eb319e43b49ca9a"),
        ((true, true), 1000, "806b18013e929737d8cb75cbe41135dea2c212bf62f24685"),
    ];
    for ((keyfile, passphrase), iterations, expected) in rows {
        let components = components(keyfile, passphrase);
        let key = components.user_key(&salt, iterations, &KdfLimit::default());
        assert_eq!(hex(&key.expect("a key").0[..24]), expected, "{iterations}");
    }
}

/// Version, cipher, key bits, tags, sector size; size of the media, start of the SHA-256 of the
/// provider below, its first bytes.
type Row = (
    u32,
    Cipher,
    u16,
    Option<Authentication>,
    u32,
    u64,
    &'static str,
    &'static str,
);

use Authentication::{Md5, Ripemd160, Sha1, Sha256 as HmacSha256, Sha384, Sha512};
use Cipher::{AesCbc, AesXts, BlowfishCbc, CamelliaCbc, TripleDesCbc};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (7, AesXts, 128, None, 512, 1_048_064, "e4f375c4e2d2706045c342689da7a3cf", "f177e8ba77f1eb28"),
    (7, AesXts, 256, None, 4096, 1_044_480, "0f7879cc4c81d4f0aca34bb56d1df6e1", "9b3d62ffc26a51c1"),
    (6, AesXts, 128, None, 512, 1_048_064, "c7d88bf1e2c911257d2b313ce57aebb3", "9f0b3c4c832fb0ec"),
    (5, AesXts, 256, None, 4096, 1_044_480, "b6a05f0f7f894934b51f4e2e216acaef", "2c89ced620e80bc3"),
    (7, AesCbc, 256, None, 512, 1_048_064, "c791cca2799f03e695c75cb531b2c07a", "e3887b8ed9dff400"),
    (4, AesCbc, 128, None, 512, 1_048_064, "3ff95c2b0e7456fc696257acf5336b16", "b23604c03a0f8802"),
    (0, AesCbc, 128, None, 512, 1_048_064, "138d61248189ce1f543bdf55d2296fe6", "b23604c03a0f8802"),
    (3, TripleDesCbc, 192, None, 512, 1_048_064,
        "bbda3cea7426bcbc478508715cd62505", "9b9a1c65eddae43f"),
    (3, BlowfishCbc, 128, None, 512, 1_048_064,
        "ca0ed923e0560d9a771c050fea5f0ed8", "3805b398f032a93b"),
    (4, CamelliaCbc, 128, None, 512, 1_048_064,
        "123d371ba81060f5a2ce8b529b716a6c", "d356deb2549b22a4"),
    (7, AesXts, 256, Some(Md5), 4096, 929_792,
        "3fef6702fbeffe664561493a780c19bf", "3ca72657705bc188"),
    (7, AesXts, 256, Some(Sha1), 4096, 929_792,
        "4fa088cc27186e4460d8a6fac90c842e", "b07c211024448382"),
    (7, AesXts, 256, Some(Ripemd160), 4096, 929_792,
        "1b4e0d2b8f3a959f57fe72c7d9a76d6d", "89ff38e042739107"),
    (7, AesXts, 256, Some(HmacSha256), 4096, 929_792,
        "ec11ddd4c72ac6e5243de2ef9f381581", "f419f53a155d750f"),
    (7, AesXts, 256, Some(Sha384), 4096, 929_792,
        "d94af14a01e1d8d27091f889b05b8bd0", "4aaca57dbd94e13c"),
    (7, AesXts, 256, Some(Sha512), 4096, 835_584,
        "57ee15cf8cea3409c54469d8b55a0013", "8ee9ac5530a08137"),
    (6, AesCbc, 256, Some(HmacSha256), 4096, 929_792,
        "abdfdd3592f6266cb7dc5c87e038b34c", "5eb6d775d1b92944"),
    (5, AesCbc, 256, Some(HmacSha256), 4096, 929_792,
        "996885e36c3eca5001406dd9dfb06977", "5eb6d775d1b92944"),
    (1, AesCbc, 128, Some(Sha1), 4096, 929_792,
        "8c05903ab5fc1abae0f066a6a6a6c853", "e78f1cbea3ccd255"),
    (7, AesXts, 128, Some(Sha512), 512, 523_776,
        "c70d61f24b60ca05337d67af14c78d82", "465090acacdd2776"),
];

#[test]
fn providers_are_byte_for_byte_those_of_the_model() {
    let plain: Vec<u8> = (0..8192).map(|at| at as u8).collect();
    for backend in [Backend::Fastest, Backend::Portable] {
        for (version, cipher, bits, algorithm, sector, media, whole, first) in ROWS {
            let metadata = sample(*version, *cipher, *bits, *algorithm, *sector);
            let metadata = initialized(metadata);
            let what = format!("{version} {cipher} {bits} {algorithm:?} {sector} {backend:?}");
            let layout = metadata.layout(1 << 20, BELOW_BYTES).expect("a layout");
            assert_eq!(layout.media_bytes, *media, "{what}");
            let image = image(&metadata, backend, &plain);
            assert_eq!(hex(&image[..8]), *first, "{what}");
            assert_eq!(hex(&Sha256::digest(&image)[..16]), *whole, "{what}");

            let metadata = Metadata::decode(&image[image.len() - 512..]).expect("metadata");
            let (slot, key) = open_slot(&metadata, &user_key(&metadata), None).expect("opens");
            assert!(slot == 0 && *key == *master(), "{what}");
            let crypt = crypt(&metadata, backend);
            let mut read = vec![0; plain.len()];
            let (_, length) = crypt.layout().below(0, 8192);
            crypt
                .open(0, &image[..length as usize], &mut read)
                .expect("authentic");
            assert!(read == plain, "{what}");
        }
    }
}

/// Data key 1 begins at byte 536,870,912: the same sector before and behind it differs in more
/// than its tweak, and the model's keys give what this gives.
#[test]
fn data_keys_change_every_million_sectors() {
    use ugeom_machine::aes::{Sectors, XtsKey};
    let rows = [
        (7, ["66c6926146e6c852e33d36a8", "b81ec9cc51a80204667f5e5a"]),
        (6, ["32597f7f7b304ff6c21a67f2", "95780708c3edab33b4a9e384"]),
    ];
    for (version, expected) in rows {
        let base = master();
        let base = match version {
            7 => base.data_key,
            _ => base.iv_key,
        };
        let metadata = Metadata {
            provider_bytes: 2 << 30,
            ..sample(version, Cipher::AesXts, 128, None, 512)
        };
        let crypt = crypt(&metadata, Backend::Portable);
        for (number, expected) in (0_u64..).zip(expected) {
            let mut key = [0; 64];
            crate::eli::hmac_sha512::h(&base, &[b"ekey", &number.to_le_bytes()], &mut key);
            assert_eq!(hex(&key[..12]), expected, "{version} {number}");
            let offset = number << 29;
            let (plain, mut ours, mut expected) = ([5; 1024], [0; 1024], [0; 1024]);
            crypt.encrypt(offset, &plain, &mut ours).expect("keys");
            let Some(xts) = XtsKey::new(&key[..32]) else { continue };
            let sectors = Sectors {
                offset,
                sector_bytes: 512,
            };
            xts.encrypt(sectors, &plain, &mut expected);
            assert!(ours == expected, "{version} {number}");
        }
        assert_eq!(crypt.key_counts(), (4, 2));
    }
}

/// The fall-backs on processors that have fewer instructions: none for AES, SHA or vectors beyond
/// SSE2; and AES-NI with AVX2, but no VAES. qemu plays them.
#[test]
fn other_processors_give_the_same_answers() {
    let Some(qemu) = ugeom_testkit::program("qemu-x86_64") else { return };
    if cfg!(not(target_arch = "x86_64")) {
        ugeom_testkit::skip("not an x86-64 processor");
        return;
    }
    let own = std::env::current_exe().expect("the test");
    for cpu in ["qemu64", "max"] {
        let ended = std::process::Command::new(&qemu)
            .args(["-cpu", cpu])
            .arg(&own)
            .args(["--exact", "--nocapture", "--test-threads=1"])
            .args([
                "eli::tests::known::providers_are_byte_for_byte_those_of_the_model",
                "eli::tests::known::data_keys_change_every_million_sectors",
                "eli::tests::known::this_processor",
                "eli::tests::primitives::tags_of_many_are_those_of_each",
            ])
            .output()
            .expect("qemu");
        let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{cpu}: {text}");
        assert!(text.contains("4 passed"), "{cpu}: {text}");
        let fewer = match cpu {
            "qemu64" => "AES: portable; SHA-256: one message; aes false",
            _ => "AES: portable; SHA-256: one message; aes true",
        };
        assert!(
            text.contains(fewer),
            "{cpu} is not what it should be: {text}"
        );
    }
}

/// Prints which code runs here, for the test above.
#[test]
fn this_processor() {
    let wide = match ugeom_machine::aes::is_available() {
        true => "four blocks an instruction",
        false => "portable",
    };
    let pair = match ugeom_machine::sha256::is_available() {
        true => "several messages",
        false => "one message",
    };
    #[cfg(target_arch = "x86_64")]
    let aes = is_x86_feature_detected!("aes");
    #[cfg(not(target_arch = "x86_64"))]
    let aes = false;
    println!("AES: {wide}; SHA-256: {pair}; aes {aes}");
}
