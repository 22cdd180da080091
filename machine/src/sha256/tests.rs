//! Known answers. `classes` compares every length with another implementation.

use super::*;

/// The state behind the bytes 0, 1, ... 63.
const BEFORE: State = [
    0xfc99_a2df,
    0x88f4_2a7a,
    0x7bb9_d180,
    0x33cd_c6a2,
    0x0256_755f,
    0x9d5b_9a50,
    0x44a9_cc31,
    0x5abe_84a7,
];

/// HMACs of Python's `hmac` with the key `sha256(0, 1, ... 63, 0, 1, ... 7)`: the length of a
/// message whose byte i is 7i + 3, and the first half of its HMAC.
const ANSWERS: [(usize, &str); 11] = [
    (0, "1bd5ee3fdb4bc9a8c3fac4a4895e35f4"),
    (1, "13679372913349d1ea7faf16215573db"),
    (55, "ecfd61a8d1c3b2acef219a19f9455924"),
    (56, "a24546f7dca95f2bcc091c2618af302e"),
    (63, "87078a492c600818f3b9e03afe2cc492"),
    (64, "64a254c851d3b188b1ddc002c9e4e6d3"),
    (119, "94df587037f84fb438ca3cf7c652af28"),
    (120, "4db94ec23c09d78e6803bd619061798f"),
    (256, "789f3dc706f27c20205ce9e8cca05e5e"),
    (448, "d9a576ca5d104a65fbf501c9e2322d2d"),
    (480, "a5ad509a0d4b58d1d9f9c5478fd28849"),
];

fn hex(tag: &[u8; HASH_BYTES]) -> String {
    tag.map(|byte| format!("{byte:02x}")).concat()
}

#[test]
fn each_of_two_gives_the_answers_of_another_implementation() {
    for (length, expected) in ANSWERS {
        let message: Vec<u8> = (0..length).map(|i| (7 * i + 3) as u8).collect();
        let other = vec![7; length];
        let suffixes = [[0, 1, 2, 3, 4, 5, 6, 7], [9; 8]];
        let first = hmacs(&BEFORE, &suffixes, &[&message, &other]);
        let second = hmacs(&BEFORE, &[suffixes[1], suffixes[0]], &[&other, &message]);
        let (Some(first), Some(second)) = (first, second) else {
            println!("SKIP sha256: this processor has no instructions for it");
            return;
        };
        assert_eq!(first[0], second[1]);
        assert_eq!(first[1], second[0]);
        let found = hex(&first[0]);
        assert!(found.starts_with(expected), "{length}: {found}");
    }
}

#[test]
fn each_of_sixteen_gives_the_answers_of_another_implementation() {
    for (length, expected) in ANSWERS {
        let message: Vec<u8> = (0..length).map(|i| (7 * i + 3) as u8).collect();
        for lane in 0..LANES {
            let others: Vec<_> = (0..LANES).map(|n| vec![n as u8; length]).collect();
            let mut messages: [&[u8]; LANES] = std::array::from_fn(|n| others[n].as_slice());
            messages[lane] = &message;
            let mut suffixes = [[9; 8]; LANES];
            suffixes[lane] = [0, 1, 2, 3, 4, 5, 6, 7];
            let Some(tags) = hmacs(&BEFORE, &suffixes, &messages) else {
                println!("SKIP sha256: this processor has no AVX-512");
                return;
            };
            let found = hex(&tags[lane]);
            assert!(
                found.starts_with(expected),
                "{length}, lane {lane}: {found}"
            );
        }
    }
}

#[test]
#[should_panic(expected = "not of one length")]
fn messages_of_different_lengths_are_refused() {
    let _ = hmacs(&INITIAL, &[[0; 8]; 2], &[&[0; 64], &[0; 128]]);
}
