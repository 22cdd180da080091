//! Servers that say anything: no request of the class `nbd` is without an end, and nothing panics.

#[path = "../../fuzz/src/client.rs"]
mod target;

use proptest::prelude::*;

#[test]
fn a_success_that_tells_no_extent_is_a_failure() {
    // Chunks were agreed on; READ and BLOCK_STATUS are answered by a plain success.
    target::nbd_client(&[27, 8, 24, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn a_server_that_says_anything_ends_nothing(
        manner in any::<u8>(),
        said in prop::collection::vec(prop_oneof![0..16_u8, any::<u8>()], 0..200),
    ) {
        target::nbd_client(&[&[manner][..], &said].concat());
    }
}
