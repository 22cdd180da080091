//! A small BTF made here, the running kernel's, and arbitrary bytes.

use super::*;
use proptest::prelude::*;

/// Types and strings as they are added.
#[derive(Default)]
struct Made {
    types: Vec<u8>,
    strings: Vec<u8>,
}

impl Made {
    fn name(&mut self, text: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        if text.is_empty() {
            return 0;
        }
        let at = self.strings.len() as u32;
        self.strings.extend(text.bytes().chain([0]));
        at
    }

    fn add(&mut self, name: &str, kind: u8, refers: u32, data: &[[u32; 3]], words: usize) {
        let name = self.name(name);
        let info = u32::from(kind) << 24 | data.len() as u32;
        for word in [name, info, refers] {
            self.types.extend(word.to_le_bytes());
        }
        for entry in data {
            for word in &entry[..words] {
                self.types.extend(word.to_le_bytes());
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types, types, strings] {
            bytes.extend(word.to_le_bytes());
        }
        [bytes, self.types.clone(), self.strings.clone()].concat()
    }
}

fn example() -> Vec<u8> {
    let mut made = Made::default();
    let names = ["a", "inner", "b", "data", "it"].map(|name| made.name(name));
    // 1: struct outer { int a; struct { struct inner inner; }; }; 2: anonymous; 3: inner
    made.add("outer", STRUCT, 16, &[[names[0], 0, 0], [0, 2, 64]], 3);
    made.add("", STRUCT, 8, &[[names[1], 3, 32]], 3);
    made.add("inner", STRUCT, 4, &[[names[2], 0, 16]], 3);
    // 4: const struct outer, 5: pointer to it, 6: function(void *, outer *), 7, 8: its typedef
    made.add("", 10, 1, &[], 0);
    made.add("", POINTER, 4, &[], 0);
    made.add("", FUNCTION, 0, &[[names[3], 0, 0], [names[4], 5, 0]], 2);
    made.add("", POINTER, 6, &[], 0);
    made.add("btf_trace_it", TYPEDEF, 7, &[], 0);
    made.bytes()
}

#[test]
fn members_are_found_through_structs_without_names() {
    let bytes = example();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.types(), 8);
    assert_eq!(btf.member("outer", "a"), Some(0));
    assert_eq!(btf.member("outer", "inner.b"), Some(8 + 4 + 2));
    assert_eq!(btf.member("outer", "inner.c"), None);
    assert_eq!(btf.member("other", "a"), None);
}

#[test]
fn arguments_of_a_tracepoint_are_found_by_their_types() {
    let bytes = example();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.typedef("btf_trace_it"), Some(8));
    assert_eq!(btf.argument("btf_trace_it", "outer"), Some(0));
    assert_eq!(btf.argument("btf_trace_it", "inner"), None);
}

#[test]
fn what_is_no_btf_is_refused_with_the_place() {
    assert_eq!(Btf::parse(b"ELF").unwrap_err(), BtfError::Magic(0x4c45));
    let mut bytes = example();
    let length = bytes.len();
    assert_eq!(
        Btf::parse(&bytes[..length - 1]).unwrap_err(),
        BtfError::Section("strings", length - 1)
    );
    bytes[24 + 7] = 31;
    let error = Btf::parse(&bytes).unwrap_err().to_string();
    assert_eq!(error, "type 1: kind 31 at byte 0 of the types is not known");
}

#[test]
fn this_kernels_structs_are_those_of_its_headers() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        return ugeom_testkit::skip("this kernel shows no BTF");
    };
    let btf = Btf::parse(&bytes).unwrap();
    // The first members of struct bio and struct list_head, in every version.
    assert_eq!(btf.member("bio", "bi_next"), Some(0));
    assert_eq!(btf.member("list_head", "prev"), Some(8));
    assert_eq!(btf.member("bvec_iter", "bi_size"), Some(8));
    assert!(btf.typedef("btf_trace_block_bio_queue").is_some());
    assert_eq!(
        btf.argument("btf_trace_sched_switch", "task_struct"),
        Some(1)
    );
}

proptest! {
    #[test]
    fn any_bytes_are_a_btf_or_an_error(data: Vec<u8>, at in 0_usize..200, with: u8) {
        let _ = Btf::parse(&data);
        let mut bytes = example();
        let length = bytes.len();
        bytes[at % length] = with;
        if let Ok(btf) = Btf::parse(&bytes) {
            let _ = btf.member("outer", "inner.b");
            let _ = btf.argument("btf_trace_it", "outer");
        }
    }
}
