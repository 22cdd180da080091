//! Reading of rigid disk blocks and their chains, and refusals.

use super::*;
use proptest::prelude::*;

fn sign(block: &mut [u8], words: u32) {
    bytes::put_u32_be(block, 4, words);
    bytes::put_u32_be(block, 8, 0);
    let covered = block[..words as usize * 4].chunks_exact(4);
    let sum = covered.fold(0_u32, |sum, word| sum.wrapping_add(bytes::u32_be(word, 0)));
    bytes::put_u32_be(block, 8, sum.wrapping_neg());
}

fn root(first: u32) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..4].copy_from_slice(b"RDSK");
    bytes::put_u32_be(&mut block, 16, 512);
    bytes::put_u32_be(&mut block, 28, first);
    sign(&mut block, 64);
    block
}

fn part(next: u32, name: &str, cylinders: (u32, u32)) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..4].copy_from_slice(b"PART");
    bytes::put_u32_be(&mut block, 16, next);
    bytes::put_u32_be(&mut block, 20, 1);
    block[36] = name.len() as u8;
    block[37..37 + name.len()].copy_from_slice(name.as_bytes());
    for (word, value) in [(3, 4), (5, 32), (9, cylinders.0), (10, cylinders.1)] {
        bytes::put_u32_be(&mut block, 128 + 4 * word, value);
    }
    bytes::put_u32_be(&mut block, 192, 0x444f_5303);
    sign(&mut block, 64);
    block
}

const MEDIA: Media = Media::of_512(100_000);

fn read(blocks: &[(u64, Vec<u8>)]) -> Result<Table, Error> {
    Table::read(MEDIA, &mut |lba, _| {
        let block = blocks.iter().find(|block| block.0 == lba);
        Ok(block.map_or_else(|| vec![0; 512], |block| block.1.clone()))
    })
}

#[test]
fn partitions_are_listed_in_the_order_of_the_chain() {
    let blocks = [
        (2, root(5)),
        (5, part(3, "DH0", (2, 99))),
        (3, part(END_OF_CHAIN, "DH1", (100, 100))),
    ];
    let table = read(&blocks).unwrap();
    assert_eq!((table.sector, table.broken), (2, None));
    let listed: Vec<(&str, u64, u64)> = table
        .partitions
        .iter()
        .map(|part| (part.name.as_str(), part.start, part.sectors))
        .collect();
    assert_eq!(listed, [("DH0", 256, 98 * 128), ("DH1", 12_800, 128)]);
    assert_eq!(table.partitions[0].dos_type.to_string(), "DOS\\3");
    assert_eq!(DosType(0x5046_5300).to_string(), "PFS\\0");
    assert_eq!(DosType(0x0102_0304).to_string(), "0x01020304");
}

#[test]
fn a_chain_that_breaks_gives_what_comes_before() {
    let broken = |last: (u64, Vec<u8>)| {
        let table = read(&[(0, root(5)), (5, part(3, "DH0", (2, 99))), last]).unwrap();
        assert_eq!(table.partitions.len(), 1);
        table.broken.unwrap()
    };
    assert_eq!(
        broken((9, Vec::new())),
        Error::Magic {
            sector: 3,
            found: [0; 4],
            expected: "PART"
        }
    );
    let mut wrong = part(END_OF_CHAIN, "DH1", (1, 2));
    wrong[130] ^= 1;
    assert!(matches!(
        broken((3, wrong)),
        Error::Checksum { sector: 3, .. }
    ));
    let looped = read(&[(0, root(5)), (5, part(5, "DH0", (2, 99)))]).unwrap();
    assert_eq!(looped.broken, Some(Error::Loop { block: 5 }));
    let far = read(&[(0, root(200_000))]).unwrap();
    assert!(matches!(
        far.broken,
        Some(Error::Read(Unreadable {
            sector: 200_000,
            ..
        }))
    ));
}

#[test]
fn a_disk_without_a_block_says_so() {
    assert_eq!(read(&[]), Err(Error::NotFound));
    assert_eq!(read(&[(16, root(5))]), Err(Error::NotFound));
    let mut blocks = root(5);
    bytes::put_u32_be(&mut blocks, 16, 100);
    sign(&mut blocks, 64);
    assert_eq!(
        read(&[(0, blocks)]),
        Err(Error::BlockSize {
            sector: 0,
            found: 100
        })
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(
        blocks in proptest::collection::vec(
            (0..20_u64, any::<bool>(), proptest::collection::vec(any::<u8>(), 512), 3..128_u32),
            1..8,
        ),
    ) {
        let blocks: Vec<(u64, Vec<u8>)> = blocks
            .into_iter()
            .map(|(at, is_root, mut bytes, words)| {
                bytes[..4].copy_from_slice(if is_root { b"RDSK" } else { b"PART" });
                bytes[16..19].fill(0);
                bytes[28..31].fill(0);
                bytes[19] %= 20;
                sign(&mut bytes, words);
                (at, bytes)
            })
            .collect();
        if let Ok(table) = read(&blocks) {
            prop_assert!(table.partitions.len() <= MAX_PARTITIONS);
        }
    }
}
