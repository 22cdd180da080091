//! Hostile encrypted sectors: the fuzz target with random bytes.

#[path = "../../fuzz/src/eli.rs"]
mod target;

use proptest::prelude::*;

proptest! {
    #[test]
    fn nothing_is_authentic_that_the_layer_has_not_written(
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
    ) {
        target::sectors(&bytes);
    }
}
