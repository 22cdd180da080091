//! Known answers of FIPS 180-4. `classes` compares every length with another implementation.

use super::*;

/// The hashes of two messages of one length.
fn hashes(messages: [&[u8]; 2]) -> Option<[String; 2]> {
    let mut pair = Pair::from_state(&INITIAL)?;
    let length = messages[0].len();
    let whole = length / BLOCK_BYTES * BLOCK_BYTES;
    pair.absorb(messages.map(|message| &message[..whole]));
    let ends = messages.map(|message| {
        let mut end = message[whole..].to_vec();
        end.push(0x80);
        while end.len() % BLOCK_BYTES != BLOCK_BYTES - 8 {
            end.push(0);
        }
        end.extend((8 * length as u64).to_be_bytes());
        end
    });
    pair.absorb([&ends[0], &ends[1]]);
    let hex = |state: &State| bytes_of(state).map(|byte| format!("{byte:02x}")).concat();
    Some([hex(&pair.states()[0]), hex(&pair.states()[1])])
}

/// FIPS 180-4's examples (NIST, "SHA-256"), and a block of zeroes.
#[test]
fn each_of_two_gives_the_answers_of_nist() {
    let rows: [(&[u8], &str); 4] = [
        (
            b"abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            b"",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (
            &[0; 64],
            "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b",
        ),
    ];
    for (message, expected) in rows {
        let other = vec![7; message.len()];
        let both = (hashes([message, &other]), hashes([&other, message]));
        let (Some(first), Some(second)) = both else {
            println!("SKIP sha256: this processor has no instructions for it");
            return;
        };
        assert_eq!((&*first[0], &*second[1]), (expected, expected));
        assert_eq!(first[1], second[0]);
    }
}

#[test]
#[should_panic(expected = "no whole blocks")]
fn messages_of_different_lengths_are_refused() {
    match Pair::from_state(&INITIAL) {
        Some(mut pair) => pair.absorb([&[0; 64], &[0; 128]]),
        None => panic!("no whole blocks: this processor has no instructions for SHA-256"),
    }
}
