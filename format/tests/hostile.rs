//! Hostile bytes: the functions that the fuzz targets call, with random input
//! that looks enough like each format to be taken seriously.

#[path = "../../fuzz/src/compressed.rs"]
mod compressed;
#[path = "../../fuzz/src/content.rs"]
mod content_target;
#[path = "../../fuzz/src/image_tables.rs"]
mod image_tables;
#[path = "../../fuzz/src/reached.rs"]
mod reached;
#[path = "../../fuzz/src/search.rs"]
mod search_target;
#[path = "../../fuzz/src/format.rs"]
mod targets;

use proptest::prelude::*;
use ugeom_format::crash_log;

/// Random bytes with a few signatures and small numbers put in, so that more
/// than the first check is reached.
fn disk(length: usize) -> impl Strategy<Value = Vec<u8>> {
    let patch = (0..length, any::<[u8; 4]>());
    let sparse = proptest::collection::vec(patch, 0..40).prop_map(move |patches| {
        let mut bytes = vec![0; length];
        for (at, value) in patches {
            for (place, byte) in bytes[at..].iter_mut().zip(value) {
                *place = byte;
            }
        }
        bytes
    });
    let dense = proptest::collection::vec(any::<u8>(), 0..=length);
    prop_oneof![sparse, dense]
}

fn patched(mut bytes: Vec<u8>, patches: &[(usize, &[u8])]) -> Vec<u8> {
    for (at, value) in patches {
        if let Some(place) = bytes.get_mut(*at..*at + value.len()) {
            place.copy_from_slice(value);
        }
    }
    bytes
}

/// A target with the bytes that its format begins with, at their places.
type Patched = (fn(&[u8]), &'static [(usize, &'static [u8])]);

const MAGIC: &[u8] = &[0x57, 0x45, 0x56, 0x82];

proptest! {
    #[test]
    fn an_mbr(bytes in disk(1024)) {
        targets::mbr(&bytes);
        let flags = [446, 462, 478, 494].map(|at| (at, &[0x80_u8][..]));
        let signed = patched(bytes, &[(510, &[0x55, 0xaa])]);
        targets::mbr(&patched(signed, &flags));
    }

    #[test]
    fn a_saved_table(
        scheme in "(APM|BSD|BSD64|EBR|GPT|LDM|MBR|PC98|VTOC8)( [0-9]{1,4})?",
        lines in proptest::collection::vec(
            "[0-9]{1,2} (!?[0-9]{1,3}|!Other|freebsd|freebsd-ufs|efi) [0-9]{1,5} [0-9]{1,5}\
             ( \\PC{0,5})?( \\[(active|bootme|bootonce),?\\])?",
            0..6,
        ),
    ) {
        let text = format!("{scheme}\n{}\n", lines.join("\n"));
        targets::part_backup(text.as_bytes());
    }

    #[test]
    fn tables_of_other_machines(bytes in disk(4096), choice in any::<u8>()) {
        let chosen = |bytes: &[u8]| [&[choice], bytes].concat();
        let patches: [Patched; 5] = [
            (targets::vtoc8, &[(508, &[0xda, 0xbe])]),
            (targets::pc98, &[(4, b"IPL1"), (510, &[0x55, 0xaa])]),
            (targets::sgi, &[(0, &[0x0b, 0xe5, 0xa9, 0x41])]),
            (targets::amiga, &[(0, b"RDSK"), (16, &[0, 0, 2, 0])]),
            (targets::atari, &[(0x1c2, &[0xff; 4]), (0x1c6, b"\x01GEM"), (0x1d2, b"\x01XGM")]),
        ];
        for (target, patch) in patches {
            target(&bytes);
            target(&patched(bytes.clone(), patch));
        }
        targets::bsd64(&chosen(&bytes));
        targets::bsd64(&chosen(&patched(bytes.clone(), &[(512, &[0x59, 0x4c, 0x46, 0xc4])])));
        targets::ldm(&chosen(&bytes));
    }

    #[test]
    fn a_message_of_nbd(bytes in disk(200)) {
        targets::wire_nbd(&bytes);
        let magics = [
            &b"IHAVEOPT"[..],
            b"NBDMAGICIHAVEOPT",
            &[0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9],
            &[0x25, 0x60, 0x95, 0x13],
            &[0x67, 0x44, 0x66, 0x98],
            &[0x66, 0x8e, 0x33, 0xef],
        ];
        for magic in magics {
            for length in [12, 16, 18, 20, 200] {
                let message = patched(bytes.clone(), &[(0, magic)]);
                targets::wire_nbd(&message[..message.len().min(length)]);
            }
        }
    }

    #[test]
    fn a_message_of_fuse(bytes in disk(400), opcode in 0_u32..55) {
        targets::wire_fuse(&bytes);
        for length in [40, 41, 48, 80, 128, 168, 400] {
            let head = [(length as u32).to_ne_bytes(), opcode.to_ne_bytes()].concat();
            let message = patched(bytes.clone(), &[(0, &head)]);
            targets::wire_fuse(&message[..message.len().min(length)]);
        }
    }

    #[test]
    fn a_chain_of_extended_boot_records(bytes in disk(8 + 6 * 512)) {
        let mut bytes = bytes;
        for record in 0..6 {
            let at = 8 + 512 * record;
            let ends: &[(usize, &[u8])] =
                &[(at + 446, &[0]), (at + 462, &[0]), (at + 466, &[5]), (at + 478, &[0]),
                  (at + 494, &[0]), (at + 510, &[0x55, 0xaa])];
            bytes = patched(bytes, ends);
        }
        targets::ebr(&bytes);
    }

    #[test]
    fn a_crash_log(
        bytes in disk(64),
        kind in 0_u8..9,
        words in [0_u64..4096, 0_u64..4096],
        stored in 0_u8..40,
    ) {
        targets::crash_log(&bytes);
        let header = crash_log::Header { media_bytes: 1 << 20, sector_bytes: 512 }.encode();
        targets::crash_log(&[&header, &bytes[..]].concat());
        let mut bytes = bytes;
        bytes.resize(64, 1);
        let data = &bytes[..usize::from(stored)];
        let [first, second] = words.map(|word| (word * 512).to_le_bytes());
        let mut record = bytes[..32].to_vec();
        record[..8].copy_from_slice(&[kind, bytes[1] & 1, 0, 0, stored, 0, 0, 0]);
        record[8..16].copy_from_slice(&first);
        record[16..24].copy_from_slice(&second);
        record[24..28].copy_from_slice(&crc32fast::hash(data).to_le_bytes());
        let crc = crc32fast::hash(&record[..28]);
        record[28..].copy_from_slice(&crc.to_le_bytes());
        targets::crash_log(&[&header, &record[..], data].concat());
    }

    #[test]
    fn a_file_of_requests(choice in any::<u8>(), bytes in disk(40 * 16)) {
        targets::raidtest(&[&[choice], &bytes[..]].concat());
        let mut bytes = bytes;
        for (at, byte) in bytes.iter_mut().enumerate() {
            if at % 16 == 12 {
                *byte &= 1;
            }
            // Offsets and lengths of no more than some MiB, in whole sectors.
            if matches!(at % 16, 0 | 3..=8 | 11) {
                *byte = 0;
            }
        }
        targets::raidtest(&[&[choice], &bytes[..]].concat());
        bytes.truncate(bytes.len() / 16 * 16);
        targets::raidtest(&[&[choice & 1], &bytes[..]].concat());
    }

    #[test]
    fn a_map_of_a_disk_with_faults(text in "0 \\+ 1\n([0-9]{1,3} [0-9]{1,3} [-+?*/]\n){0,5}") {
        targets::ddrescue(text.as_bytes());
    }

    #[test]
    fn a_verify_state(bytes in disk(400), length in 0_u64..380) {
        let bytes = [&3_u64.to_le_bytes()[..], &length.to_le_bytes(), &bytes].concat();
        targets::verify_state(&bytes);
    }

    #[test]
    fn a_trace(head in 0_usize..5, text in "([0-9]{0,21}[ ,]?|f|read|wait|add|Read|R|\n){0,40}") {
        let heads = [
            "fio version 2 iolog\n",
            "fio version 3 iolog\n",
            "1,h,0,Read,0,1,2\n",
            "1,R,0,1,2\n",
            "",
        ];
        targets::trace(format!("{}{text}", heads[head]).as_bytes());
    }

    #[test]
    fn a_descriptor_of_an_image(
        text in "((RW|RDONLY|#|\"x|RW8)?[ \n\r\t\x0b\0]{0,2}(8|-8|\\+8|0)?[ \n\t]{0,2}\
                 (FLAT|SPARSE|ZERO)?[ \n\t]{0,2}(\"[a\r\n]{0,2}\")?( 0)?\n){0,6}",
    ) {
        reached::vmdk(text.as_bytes());
        reached::vmdk(format!("KDMV{text}").as_bytes());
    }

    #[test]
    fn a_uri(
        text in "nbds?(\\+unix)?://[a:\\[\\]0-9]{0,6}/(%[0-9a-f]{2}|[/a?=])*(\n\n/[a%20]{0,4})?",
    ) {
        reached::nbd_uri(text.as_bytes());
    }

    #[test]
    fn a_header_of_an_image(bytes in disk(1024), version in 0_u8..4, bits in 0_u8..25) {
        image_tables::qcow2(&bytes);
        let mut bytes = bytes;
        bytes.resize(1024, 0);
        bytes[..8].copy_from_slice(&[b'Q', b'F', b'I', 0xfb, 0, 0, 0, version]);
        let name = [bytes[14] & 3, bytes[15], bytes[19]];
        bytes[8..20].copy_from_slice(&[0, 0, 0, 0, 0, 0, name[0], name[1], 0, 0, 0, name[2]]);
        bytes[20..24].copy_from_slice(&[0, 0, 0, bits]);
        bytes[100..104].copy_from_slice(&[0, 0, 0, 104]);
        image_tables::qcow2(&bytes);
    }

    #[test]
    fn tables_of_a_sparse_extent(bytes in disk(4096), grain in 0_u8..9, entries in 0_u8..9) {
        image_tables::vmdk_tables(&bytes);
        let mut bytes = bytes;
        bytes.resize(4096, 0);
        bytes[..4].copy_from_slice(b"KDMV");
        let word = |bytes: &mut [u8], at: usize, value: u8| {
            bytes[at..at + 8].copy_from_slice(&u64::from(value).to_le_bytes());
        };
        // 40 sectors; directories in sectors 1 and 2, tables where the random bytes say.
        word(&mut bytes, 12, 40);
        word(&mut bytes, 20, grain);
        word(&mut bytes, 48, 2);
        word(&mut bytes, 56, 1);
        bytes[44..48].copy_from_slice(&[entries, 0, 0, 0]);
        image_tables::vmdk_tables(&bytes);
    }

    #[test]
    fn a_compressed_file(bytes in disk(300), frames in 0_u8..4) {
        compressed::gzip(&bytes);
        compressed::xz(&bytes);
        compressed::zstd(&bytes);
        compressed::gzip(&patched(bytes.clone(), &[(0, &[0x1f, 0x8b, 8])]));
        compressed::xz(&patched(bytes.clone(), &[(0, b"\xfd7zXZ\0\0"), (7, &[4])]));
        compressed::zstd(&patched(bytes.clone(), &[(0, b"\x28\xb5\x2f\xfd")]));
        let mut bytes = bytes;
        bytes.extend([frames, 0, 0, 0, 0, 0xb1, 0xea, 0x92, 0x8f]);
        compressed::zstd(&bytes);
    }

    #[test]
    fn a_disklabel(bytes in disk(1 + 8192), count in 0_u8..30, at in prop_oneof![
        Just(64_usize), Just(512), Just(4096)
    ]) {
        targets::bsd(&bytes);
        let at = at + 1;
        let label = patched(bytes, &[(at, MAGIC), (at + 132, MAGIC), (at + 138, &[count, 0])]);
        targets::bsd(&label);
        targets::bsd(&patched(label, &[(at + 40, &[0, 16, 0, 0])]));
    }

    #[test]
    fn metadata_of_geli(bytes in disk(9 + 1024)) {
        targets::eli(&bytes);
    }

    #[test]
    fn a_gpt(bytes in disk(1 + 24 * 512), fields in any::<[u8; 4]>()) {
        targets::gpt(&bytes);
        let header = 1 + 512;
        let [count, first, last, table] = fields;
        let plausible = patched(bytes, &[
            (0, &[2]),
            (header, b"EFI PART\0\0\x01\0\x5c\0\0\0"),
            (header + 24, &[1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 0, 0, 0, 0]),
            (header + 40, &[first % 24, 0, 0, 0, 0, 0, 0, 0, last % 24, 0, 0, 0, 0, 0, 0, 0]),
            (header + 72, &[table % 24, 0, 0, 0, 0, 0, 0, 0, count % 16, 0, 0, 0, 128, 0, 0, 0]),
        ]);
        targets::gpt(&plausible);
        let disk = plausible.get(1..).unwrap_or_default();
        targets::plan(&[&[2, first, last, table, count], disk].concat());
    }

    #[test]
    fn an_apple_map(bytes in disk(1 + 16 * 512), blocks in 0_u8..20) {
        content_target::content(&content_target::input(&bytes));
        search_target::search(&bytes);
        targets::apm(&bytes);
        let mut bytes = patched(bytes, &[(0, &[0]), (1, b"ER\x02\0")]);
        for number in 1..16 {
            bytes = patched(bytes, &[(1 + 512 * number, &[b'P', b'M', 0, 0, 0, 0, 0, blocks])]);
        }
        targets::apm(&bytes);
    }

    #[test]
    fn counters_of_devices(bytes in disk(400), text in "([0-9]{1,22}[ \n]{0,2}[a-z ]{0,3}){0,40}") {
        targets::dm_table(&bytes);
        targets::btf(&bytes);
        targets::diskstats(&bytes);
        targets::diskstats(text.as_bytes());
    }

    #[test]
    fn edits_of_any_table(bytes in disk(5 + 40 * 512), count in 0_u8..23) {
        targets::plan(&bytes);
        let at = 5 + 512;
        let label = patched(bytes, &[
            (5 + 446, &[0]), (5 + 462, &[0]), (5 + 478, &[0]), (5 + 494, &[0]),
            (5 + 510, &[0x55, 0xaa]),
            (at, MAGIC), (at + 132, MAGIC), (at + 138, &[count, 0]),
            (at + 40, &[0, 2, 0, 0]),
        ]);
        targets::plan(&label);
    }
}
