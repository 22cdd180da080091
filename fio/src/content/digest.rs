//! The digests of fio's verify header, as its files have them.
//!
//! Three differ from what their names say (fio 3.33, crc/). SHA-1 has its words in the order of the
//! processor. SHA-256 counts its length with the lowest byte first, and keeps the lowest byte of
//! each of the eight words and behind these what was left in its buffer. SHA-512 is never finished:
//! its field holds the beginning of the content, overwritten by what did not fill a block of 128
//! bytes. CRCs begin with 0 and are not inverted, except for CRC-32C, which begins with all bits
//! set.

use crc::{Algorithm, CRC_7_MMC, CRC_16_ARC, CRC_64_REDIS, Crc};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use twox_hash::XxHash32;

use ugeom_job::settings::Verify;
use ugeom_machine::sha256::INITIAL;

/// The longest digest: that of SHA-512, bytes.
const DIGEST_BYTES_MAX: usize = 128;

/// CRC-32/CKSUM without its inversion at the end.
const CRC_32_FIO: Algorithm<u32> = Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0x89a1_897f,
    residue: 0,
};

static CRC_7: Crc<u8> = Crc::<u8>::new(&CRC_7_MMC);
static CRC_16: Crc<u16> = Crc::<u16>::new(&CRC_16_ARC);
static CRC_32: Crc<u32> = Crc::<u32>::new(&CRC_32_FIO);
static CRC_64: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);

/// The digest of a block, as long as its method makes it.
pub struct Digest {
    bytes: [u8; DIGEST_BYTES_MAX],
    length: usize,
}

impl Digest {
    fn new(bytes: &[u8]) -> Self {
        let mut all = [0; DIGEST_BYTES_MAX];
        all[..bytes.len()].copy_from_slice(bytes);
        Self {
            bytes: all,
            length: bytes.len(),
        }
    }

    /// As it stands in a header.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The digest of `data`; an empty one for kinds that have none.
pub fn of(verify: Verify, data: &[u8]) -> Digest {
    match verify {
        Verify::Md5 => Digest::new(&Md5::digest(data)),
        Verify::Crc64 => Digest::new(&CRC_64.checksum(data).to_le_bytes()),
        Verify::Crc32 => Digest::new(&CRC_32.checksum(data).to_le_bytes()),
        Verify::Crc32c => Digest::new(&checksum(data).to_le_bytes()),
        Verify::Crc16 => Digest::new(&CRC_16.checksum(data).to_le_bytes()),
        Verify::Crc7 => Digest::new(&[CRC_7.checksum(data)]),
        Verify::Xxhash => Digest::new(&XxHash32::oneshot(1, data).to_le_bytes()),
        Verify::Sha1 => {
            let mut words: [u8; 20] = Sha1::digest(data).into();
            words.chunks_exact_mut(4).for_each(<[u8]>::reverse);
            Digest::new(&words)
        }
        Verify::Sha256 => Digest::new(&sha256(data)),
        Verify::Sha512 => Digest::new(&sha512(data)),
        Verify::Sha3(224) => Digest::new(&Sha3_224::digest(data)),
        Verify::Sha3(256) => Digest::new(&Sha3_256::digest(data)),
        Verify::Sha3(384) => Digest::new(&Sha3_384::digest(data)),
        Verify::Sha3(_) => Digest::new(&Sha3_512::digest(data)),
        Verify::No | Verify::Header | Verify::PatternHeader | Verify::Pattern | Verify::Null => {
            Digest::new(&[])
        }
    }
}

/// The name in errors.
pub fn name(verify: Verify) -> &'static str {
    match verify {
        Verify::Md5 => "MD5 of the content",
        Verify::Crc64 => "CRC-64 of the content",
        Verify::Crc32 => "CRC-32 of the content",
        Verify::Crc32c => "CRC-32C of the content",
        Verify::Crc16 => "CRC-16 of the content",
        Verify::Crc7 => "CRC-7 of the content",
        Verify::Xxhash => "xxHash of the content",
        Verify::Sha1 => "SHA-1 of the content",
        Verify::Sha256 => "SHA-256 of the content",
        Verify::Sha512 => "SHA-512 of the content",
        Verify::Sha3(_) => "SHA-3 of the content",
        _ => "digest of the content",
    }
}

/// CRC-32C (Castagnoli) as fio has it: without the inversion at the end that RFC 3720 asks for.
pub fn checksum(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

/// fio's SHA-256: see the head of this file.
fn sha256(data: &[u8]) -> [u8; 64] {
    let mut state = INITIAL;
    let (blocks, rest) = data.as_chunks::<64>();
    sha2::block_api::compress256(&mut state, blocks);
    let mut last = [0; 128];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let used = if rest.len() < 56 { 64 } else { 128 };
    last[used - 8..used].copy_from_slice(&((data.len() as u64) << 3).to_le_bytes());
    let (blocks, _) = last[..used].as_chunks::<64>();
    sha2::block_api::compress256(&mut state, blocks);
    let mut field = blocks[blocks.len() - 1];
    for (byte, word) in field.iter_mut().zip(state) {
        *byte = word as u8;
    }
    field
}

/// fio's field of SHA-512: see the head of this file.
fn sha512(data: &[u8]) -> [u8; 128] {
    let mut field = [0; 128];
    let first = data.len().min(field.len());
    field[..first].copy_from_slice(&data[..first]);
    let rest = data.len() % field.len();
    if data.len() >= field.len() {
        field[..rest].copy_from_slice(&data[data.len() - rest..]);
    }
    field
}
