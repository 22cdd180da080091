//! Sectors of encrypted providers with hostile tags.

use ugeom_classes::eli::crypt::{Backend, ByteOrder, Crypt, CryptError};
use ugeom_classes::eli::keys::MasterKey;
use ugeom_format::eli::{Authentication, Cipher, EliFlags, Metadata, VERSION_MAX};

/// Size of the providers, bytes.
const BELOW_BYTES: u64 = 1 << 20;

/// Three bytes choose the layout, two the place; the rest is what lies below there. Nothing that
/// does not come from the layer itself is authentic, and nothing panics. Data written by the layer
/// is refused when any byte of a tag or of the ciphertext is changed.
pub fn sectors(data: &[u8]) {
    let Some(([algorithm, sector, below, place, change], rest)) = data.split_first_chunk::<5>()
    else {
        return;
    };
    let algorithm = Authentication::ALL[usize::from(*algorithm) % 6];
    let below_bytes = 1 << (7 + below % 6);
    let metadata = Metadata {
        version: VERSION_MAX,
        flags: EliFlags::AUTH,
        cipher_number: Cipher::AesXts.number(),
        key_bits: 128,
        authentication_number: algorithm.number(),
        provider_bytes: BELOW_BYTES,
        sector_bytes: 1 << (7 + sector % 8),
        keys: 1,
        iterations: -1,
        salt: [0; 64],
        master_keys: [0; 384],
    };
    let key = MasterKey::from_bytes(&[7; 128]).expect("memory");
    let sizes = (BELOW_BYTES, below_bytes);
    let crypt = Crypt::new(&metadata, sizes, &key, ByteOrder::Little, Backend::Fastest);
    let Ok(crypt) = crypt else { return };
    let layout = *crypt.layout();
    let sector_bytes = u64::from(layout.sector_bytes);
    let stride = layout.stride_bytes() as usize;
    let offset = u64::from(*place) % (layout.media_bytes / sector_bytes) * sector_bytes;
    let mut plain = vec![0; sector_bytes as usize];

    let mut hostile = rest.to_vec();
    hostile.resize(stride, 0);
    let opened = crypt.open(offset, &hostile, &mut plain);
    assert!(matches!(opened, Err(CryptError::Authentication { .. })));

    let mut sealed = vec![0; stride];
    crypt.seal(offset, &plain, &mut sealed).expect("keys");
    let Some(sub) = layout.sub_sectors else { return };
    let at = rest.iter().map(|byte| usize::from(*byte)).sum::<usize>() % stride;
    let (number, within) = (at / below_bytes as usize, at % below_bytes as usize);
    let carried = sub.tag_bytes + sub.carried_bytes(number as u32);
    sealed[at] ^= change;
    let opened = crypt.open(offset, &sealed, &mut plain);
    let is_changed = *change != 0 && within < carried as usize;
    assert_eq!(opened.is_err(), is_changed);
}
