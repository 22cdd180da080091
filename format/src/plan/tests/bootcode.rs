//! Boot code goes around a table, which stays.

use super::*;

/// A written table with boot code on it: the disk before and after, and the
/// table that is read back.
fn boot(scheme: Scheme, code: &[u8], keep_serial: bool) -> (Vec<u8>, Vec<u8>, Table) {
    let mut table = new(scheme);
    table.add(&sized(kind(scheme), 2016)).unwrap();
    let mut disk = Vec::new();
    let table = written(&table, &mut disk).unwrap();
    let before = disk.clone();
    for write in table.boot_code(code, keep_serial).unwrap() {
        disk[write.lba as usize * 512..][..write.data.len()].copy_from_slice(&write.data);
        let back = load(scheme, MEDIA, &disk).unwrap();
        assert_eq!(
            back.parts(),
            table.parts(),
            "{scheme} after sector {}",
            write.lba
        );
    }
    let back = load(scheme, MEDIA, &disk).unwrap();
    assert_eq!((back.parts(), back.damage()), (table.parts(), vec![]));
    (before, disk, back)
}

#[test]
fn an_mbr_keeps_its_serial_number_unless_told_not_to() {
    let code = [0x90; 512];
    let (before, after, _) = boot(Scheme::Mbr, &code, true);
    assert_eq!(
        (&after[..440], &after[440..444]),
        (&code[..440], &before[440..444])
    );
    assert_eq!(before[440..444], [7; 4], "there is a number to keep");
    let (before, after, _) = boot(Scheme::Mbr, &code, false);
    assert_eq!(
        (&after[..446], &after[446..]),
        (&code[..446], &before[446..])
    );
}

/// gpart keeps a number of zero for none: boot0 has flags in those bytes.
#[test]
fn an_mbr_without_a_serial_number_takes_all_of_the_code() {
    let mut table = new(Scheme::Mbr);
    table.add(&sized(kind(Scheme::Mbr), 2016)).unwrap();
    let mut disk = Vec::new();
    written(&table, &mut disk).unwrap();
    disk[440..444].fill(0);
    let table = load(Scheme::Mbr, MEDIA, &disk).unwrap();
    let writes = table.boot_code(&[0x90; 512], true).unwrap();
    assert_eq!(writes[0].data[..446], [0x90; 446]);
}

#[test]
fn a_gpt_has_its_code_in_the_protective_mbr() {
    let (before, after, _) = boot(Scheme::Gpt, &[0x90; 100], true);
    assert_eq!(
        (&after[..100], &after[100..446]),
        (&[0x90; 100][..], &[0; 346][..])
    );
    assert!(after[446..] == before[446..]);
}

#[test]
fn a_disklabel_has_code_on_both_sides() {
    let (before, after, _) = boot(Scheme::Bsd, &[0x90; 8192], true);
    assert_eq!(
        (&after[..512], &after[1024..8192]),
        (&[0x90; 512][..], &[0x90; 7168][..])
    );
    assert!(after[512..788] == before[512..788] && after[8192..] == before[8192..]);
}

#[test]
fn a_pc98_keeps_its_signature_and_its_table() {
    let mut code = [0x90; 8192];
    code[4..8].copy_from_slice(b"IPL1");
    let (before, after, _) = boot(Scheme::Pc98, &code, true);
    assert_eq!(
        (&after[..510], &after[1024..8192]),
        (&code[..510], &code[1024..])
    );
    assert_eq!(after[510..1024], before[510..1024]);
    let (before, after, _) = boot(Scheme::Pc98, &code[..512], true);
    assert!(
        after[512..] == before[512..],
        "short code is for the boot sector only"
    );
}

#[test]
fn too_much_code_and_schemes_without_room_are_refused() {
    for (scheme, most) in [(Scheme::Mbr, 512), (Scheme::Bsd, 8192)] {
        let error = new(scheme).boot_code(&vec![0; most + 1], true).unwrap_err();
        let found = most + 1;
        assert_eq!(error, Error::BootCodeSize { found, most });
    }
    for scheme in [Scheme::Apm, Scheme::Bsd64, Scheme::Ebr, Scheme::Vtoc8] {
        let error = new(scheme).boot_code(&[0], true).unwrap_err();
        assert_eq!(error, Error::NoBootCode(scheme));
    }
}

#[test]
fn every_name_of_a_type_is_understood() {
    for scheme in EVERY {
        let types = scheme.types();
        assert!(!types.is_empty(), "{scheme}");
        for named in types {
            for text in [named.name.clone(), format!("!{}", named.value)] {
                let mut table = new(scheme);
                table.add(&sized(&text, 2016)).unwrap();
                assert_eq!(table.parts()[0].kind, named.name, "{scheme} {text}");
            }
        }
    }
}
