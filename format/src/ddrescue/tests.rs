//! Maps against an array of one status a byte. `tests/tests/e2e/rescue.rs` compares with
//! `ddrescuelog`.

use super::*;
use proptest::prelude::*;

#[test]
fn a_map_of_ddrescue_is_read() {
    let text = "# Mapfile. Created by GNU ddrescue version 1.27\n\
                # current_pos  current_status  current_pass\n\
                0x00010000     ?               1\n\
                #      pos        size  status\n\
                0x00000000  0x00010000  +\n\
                0x00010000  0x00000200  -\n\
                66048 512 ?\n";
    let map = Map::parse(text).expect("a map");
    assert_eq!(map.bytes(Status::Done), 0x10000);
    assert_eq!(map.with(Status::Bad).first(), Some(&(0x10000..0x10200)));
    assert_eq!(map.with(Status::Untried).first(), Some(&(0x10200..0x10400)));
    assert_eq!(Map::parse(&map.to_string()), Ok(map));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let error = Map::parse("0 + 1\n0 512 +\n1024 512 +\n").expect_err("a gap");
    assert_eq!(error.line, 3);
    assert_eq!(
        Map::parse("0 + 1\n0 512 x\n").expect_err("a status").line,
        2
    );
    assert_eq!(
        Map::parse("0 + 1\n\n0 0 +\n").expect_err("no bytes").line,
        3
    );
}

fn statuses() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL.map(|(_, status)| status).to_vec())
}

proptest! {
    #[test]
    fn a_map_is_one_status_for_each_byte(
        sets in prop::collection::vec((0_u64..60, 1_u64..20, statuses()), 1..40),
    ) {
        let mut map = Map::default();
        let mut model = [None; 80];
        for (start, length, status) in sets {
            map.set(start..start + length, status);
            model[start as usize..][..length as usize].fill(Some(status));
        }
        let first = model.iter().position(Option::is_some).unwrap_or(0) as u64;
        let last = model.iter().rposition(Option::is_some).unwrap_or(0) as u64;
        let mut at = first;
        for (range, status) in map.blocks() {
            prop_assert_eq!(range.start, at);
            for byte in range.clone() {
                prop_assert_eq!(model[byte as usize].unwrap_or(Status::Untried), status);
            }
            at = range.end;
        }
        prop_assert_eq!(at, last + 1);
        for (_, status) in Status::ALL {
            let sum: u64 = map.with(status).iter().map(|it| it.end - it.start).sum();
            prop_assert_eq!(map.bytes(status), sum);
        }
        prop_assert_eq!(Map::parse(&map.to_string()), Ok(map));
    }
}
