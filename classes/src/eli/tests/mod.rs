//! Tests of `eli`: known answers, every combination against a round trip, and the class itself.

mod admin;
mod class;
mod known;
mod memory;

mod primitives;

use super::crypt::{Backend, ByteOrder, Crypt};
use super::kdf::KdfLimit;
use super::keys::{KeyComponents, MasterKey, UserKey, fill_slot};
use super::passphrase;
use ugeom_format::eli::{
    Authentication, Cipher, EliFlags, MASTER_KEYS_BYTES, Metadata, SALT_BYTES,
};
use ugeom_machine::secret::Secret;

/// The passphrase of the known answers.
const PASSPHRASE: &[u8] = b"correct horse";
/// The keyfile of the known answers.
const KEYFILE: &[u8] = b"key file\n";
/// Sector size of the providers below, bytes.
const BELOW_BYTES: u32 = 512;

/// A provider of the known answers: salt 0, 1, 2, ...; no flags but AUTH.
fn sample(
    version: u32,
    cipher: Cipher,
    key_bits: u16,
    algorithm: Option<Authentication>,
    sector_bytes: u32,
) -> Metadata {
    Metadata {
        version,
        flags: EliFlags::default().with(EliFlags::AUTH, algorithm.is_some()),
        cipher_number: cipher.number(),
        key_bits,
        authentication_number: algorithm.map_or(0, Authentication::number),
        provider_bytes: 1 << 20,
        sector_bytes,
        keys: 0,
        iterations: 1000,
        salt: std::array::from_fn::<u8, SALT_BYTES, _>(|at| at as u8),
        master_keys: [0; MASTER_KEYS_BYTES],
    }
}

/// Master key of the known answers: byte i is 7 i + 3.
fn master() -> Secret<MasterKey> {
    let bytes = std::array::from_fn(|at| (7 * at + 3) as u8);
    MasterKey::from_bytes(&bytes).expect("memory")
}

fn components(keyfile: bool, passphrase: bool) -> KeyComponents {
    let mut components = KeyComponents::new().expect("memory");
    if keyfile {
        components.add_keyfile(KEYFILE).expect("a keyfile");
    }
    if passphrase {
        let mut text = passphrase::empty().expect("memory");
        passphrase::add_line(&mut text, PASSPHRASE, "a test").expect("short");
        components.set_passphrase(text);
    }
    components
}

fn user_key(metadata: &Metadata) -> Secret<UserKey> {
    let limit = KdfLimit::default();
    let user = components(true, true).user_key(&metadata.salt, metadata.iterations, &limit);
    user.expect("a key")
}

/// Metadata with slot 0 filled.
fn initialized(mut metadata: Metadata) -> Metadata {
    let user = user_key(&metadata);
    fill_slot(&mut metadata, &user, &master(), 0).expect("a slot");
    metadata
}

fn crypt(metadata: &Metadata, backend: Backend) -> Crypt {
    let below = (metadata.provider_bytes, BELOW_BYTES);
    let crypt = Crypt::new(metadata, below, &master(), ByteOrder::Little, backend);
    crypt.expect("keys")
}

/// All of a provider below, zeroed, with its metadata and `plain` written at offset 0.
fn image(metadata: &Metadata, backend: Backend, plain: &[u8]) -> Vec<u8> {
    let crypt = crypt(metadata, backend);
    let mut image = vec![0; metadata.provider_bytes as usize];
    let encoded = metadata.encode();
    let at = image.len() - BELOW_BYTES as usize;
    image[at..at + encoded.len()].copy_from_slice(&encoded);
    let (start, length) = crypt.layout().below(0, plain.len() as u64);
    let place = &mut image[start as usize..(start + length) as usize];
    crypt.seal(0, plain, place).expect("keys");
    image
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
