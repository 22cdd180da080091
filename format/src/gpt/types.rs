//! Partition types of a GPT and gpart's names for them.
//!
//! Source: FreeBSD `sys/sys/disk/gpt.h`; the names are those of gpart(8).

use super::guid::Guid;

/// gpart's name for a type, if it has one.
pub fn alias(kind: Guid) -> Option<&'static str> {
    TYPES
        .iter()
        .find(|known| known.1 == kind)
        .map(|known| known.0)
}

/// gpart's form of a type: the name, or `!` and the GUID.
pub fn name(kind: Guid) -> String {
    alias(kind).map_or_else(|| format!("!{kind}"), str::to_owned)
}

/// Understands gpart's names in any case, `!GUID`, and a plain GUID.
///
/// The GUID of zeros is refused: it means that the entry is unused.
pub fn parse(text: &str) -> Option<Guid> {
    let known = TYPES
        .iter()
        .find(|known| known.0.eq_ignore_ascii_case(text));
    let written = || text.strip_prefix('!').unwrap_or(text).parse().ok();
    known
        .map(|known| known.1)
        .or_else(written)
        .filter(|kind| !kind.is_unused())
}

/// gpart's names and their types, in the order of the names.
pub fn all() -> impl Iterator<Item = (&'static str, Guid)> {
    TYPES.iter().copied()
}

/// The type of a partition that the firmware starts programs from.
pub const EFI: Guid = guid(0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b);
/// A partition with a disklabel inside; gpart calls it a slice.
pub const FREEBSD: Guid = guid(0x516e7cb4_6ecf_11d6_8ff8_00022d09712b);
/// A Linux file system.
pub const LINUX_DATA: Guid = guid(0x0fc63daf_8483_4772_8e79_3d69d8477de4);

const fn guid(written: u128) -> Guid {
    Guid::from_u128(written)
}

#[rustfmt::skip]
const TYPES: &[(&str, Guid)] = &[
    ("apple-apfs", guid(0x7c3457ef_0000_11aa_aa11_00306543ecac)),
    ("apple-boot", guid(0x426f6f74_0000_11aa_aa11_00306543ecac)),
    ("apple-core-storage", guid(0x53746f72_6167_11aa_aa11_00306543ecac)),
    ("apple-hfs", guid(0x48465300_0000_11aa_aa11_00306543ecac)),
    ("apple-label", guid(0x4c616265_6c00_11aa_aa11_00306543ecac)),
    ("apple-raid", guid(0x52414944_0000_11aa_aa22_00306543ecac)),
    ("apple-raid-offline", guid(0x52414944_5f4f_11aa_aa22_00306543ecac)),
    ("apple-tv-recovery", guid(0x5265636f_7665_11aa_aa11_00306543ecac)),
    ("apple-ufs", guid(0x55465300_0000_11aa_aa11_00306543ecac)),
    ("apple-zfs", guid(0x6a898cc3_1dd2_11b2_99a6_080020736631)),
    ("bios-boot", guid(0x21686148_6449_6e6f_744e_656564454649)),
    ("chromeos-firmware", guid(0xcab6e88e_abf3_4102_a07a_d4bb9be3c1d3)),
    ("chromeos-kernel", guid(0xfe3a2a5d_4f32_41a7_b725_accc3285a309)),
    ("chromeos-reserved", guid(0x2e0a753d_9e48_43b0_8337_b15192cb1b5e)),
    ("chromeos-root", guid(0x3cb8e202_3b7e_47dd_8a3c_7ff2a13cfcec)),
    ("dragonfly-ccd", guid(0xdbd5211b_1ca5_11dc_8817_01301bb8a9f5)),
    ("dragonfly-hammer", guid(0x61dc63ac_6e38_11dc_8513_01301bb8a9f5)),
    ("dragonfly-hammer2", guid(0x5cbb9ad1_862d_11dc_a94d_01301bb8a9f5)),
    ("dragonfly-label32", guid(0x9d087404_1ca5_11dc_8817_01301bb8a9f5)),
    ("dragonfly-label64", guid(0x3d48ce54_1d16_11dc_8696_01301bb8a9f5)),
    ("dragonfly-legacy", guid(0xbd215ab2_1d16_11dc_8696_01301bb8a9f5)),
    ("dragonfly-swap", guid(0x9d58fdbd_1ca5_11dc_8817_01301bb8a9f5)),
    ("dragonfly-ufs", guid(0x9d94ce7c_1ca5_11dc_8817_01301bb8a9f5)),
    ("dragonfly-vinum", guid(0x9dd4478f_1ca5_11dc_8817_01301bb8a9f5)),
    ("efi", guid(0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b)),
    ("freebsd", guid(0x516e7cb4_6ecf_11d6_8ff8_00022d09712b)),
    ("freebsd-boot", guid(0x83bd6b9d_7f41_11dc_be0b_001560b84f0f)),
    ("freebsd-nandfs", guid(0x74ba7dd9_a689_11e1_bd04_00e081286acf)),
    ("freebsd-swap", guid(0x516e7cb5_6ecf_11d6_8ff8_00022d09712b)),
    ("freebsd-ufs", guid(0x516e7cb6_6ecf_11d6_8ff8_00022d09712b)),
    ("freebsd-vinum", guid(0x516e7cb8_6ecf_11d6_8ff8_00022d09712b)),
    ("freebsd-zfs", guid(0x516e7cba_6ecf_11d6_8ff8_00022d09712b)),
    ("hifive-bbl", guid(0x2e54b353_1271_4842_806f_e436d6af6985)),
    ("hifive-fsbl", guid(0x5b193300_fc78_40cd_8002_e86c45580b47)),
    ("linux-data", guid(0x0fc63daf_8483_4772_8e79_3d69d8477de4)),
    ("linux-lvm", guid(0xe6d6d379_f507_44c2_a23c_238f2a3df928)),
    ("linux-raid", guid(0xa19d880f_05fc_4d3b_a006_743f0f84911e)),
    ("linux-swap", guid(0x0657fd6d_a4ab_43c4_84e5_0933c84b4f4f)),
    ("mbr", guid(0x024dee41_33e7_11d3_9d69_0008c781f39f)),
    ("ms-basic-data", guid(0xebd0a0a2_b9e5_4433_87c0_68b6b72699c7)),
    ("ms-ldm-data", guid(0xaf9b60a0_1431_4f62_bc68_3311714a69ad)),
    ("ms-ldm-metadata", guid(0x5808c8aa_7e8f_42e0_85d2_e1e90434cfb3)),
    ("ms-recovery", guid(0xde94bba4_06d1_4d40_a16a_bfd50179d6ac)),
    ("ms-reserved", guid(0xe3c9e316_0b5c_4db8_817d_f92df00215ae)),
    ("ms-spaces", guid(0xe75caf8f_f680_4cee_afa3_b001e56efc2d)),
    ("netbsd-ccd", guid(0x2db519c4_b10f_11dc_b99b_0019d1879648)),
    ("netbsd-cgd", guid(0x2db519ec_b10f_11dc_b99b_0019d1879648)),
    ("netbsd-ffs", guid(0x49f48d5a_b10e_11dc_b99b_0019d1879648)),
    ("netbsd-lfs", guid(0x49f48d82_b10e_11dc_b99b_0019d1879648)),
    ("netbsd-raid", guid(0x49f48daa_b10e_11dc_b99b_0019d1879648)),
    ("netbsd-swap", guid(0x49f48d32_b10e_11dc_b99b_0019d1879648)),
    ("openbsd-data", guid(0x824cc7a0_36a8_11e3_890a_952519ad3f61)),
    ("prep-boot", guid(0x9e1a2d38_c612_4316_aa26_8b49521e5a8b)),
    ("solaris-altsec", guid(0x6a9283a5_1dd2_11b2_99a6_080020736631)),
    ("solaris-backup", guid(0x6a8b642b_1dd2_11b2_99a6_080020736631)),
    ("solaris-boot", guid(0x6a82cb45_1dd2_11b2_99a6_080020736631)),
    ("solaris-home", guid(0x6a90ba39_1dd2_11b2_99a6_080020736631)),
    ("solaris-reserved", guid(0x6a945a3b_1dd2_11b2_99a6_080020736631)),
    ("solaris-root", guid(0x6a85cf4d_1dd2_11b2_99a6_080020736631)),
    ("solaris-swap", guid(0x6a87c46f_1dd2_11b2_99a6_080020736631)),
    ("solaris-var", guid(0x6a8ef2e9_1dd2_11b2_99a6_080020736631)),
    ("u-boot-env", guid(0x3de21764_95bd_54bd_a5c3_4abe786f38a8)),
    ("vmware-reserved", guid(0x9198effc_31c0_11db_8f78_000c2911d1b8)),
    ("vmware-vmfs", guid(0xaa31e02a_400f_11db_9590_000c2911d1b8)),
    ("vmware-vmkdiag", guid(0x9d275380_40ad_11db_bf97_000c2911d1b8)),
    ("vmware-vsanhdr", guid(0x381cfccc_7288_11e0_92ee_000c2911d0b2)),
    ("xbootldr", guid(0xbc13c2ff_59e6_4262_a352_b275fd6f7172)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_guids_are_understood() {
        assert_eq!(parse("EFI"), Some(EFI));
        assert_eq!(parse("!c12a7328-f81f-11d2-ba4b-00a0c93ec93b"), Some(EFI));
        assert_eq!(
            parse("0FC63DAF-8483-4772-8E79-3D69D8477DE4"),
            Some(LINUX_DATA)
        );
        assert_eq!(parse("!00000000-0000-0000-0000-000000000000"), None);
        assert_eq!(parse("linux"), None);
        assert_eq!(name(FREEBSD), "freebsd");
        assert_eq!(name(Guid::UNUSED), "!00000000-0000-0000-0000-000000000000");
    }

    #[test]
    fn no_name_and_no_guid_stands_twice() {
        for (index, first) in TYPES.iter().enumerate() {
            for second in &TYPES[index + 1..] {
                assert!(
                    first.0 != second.0 && first.1 != second.1,
                    "{first:?} {second:?}"
                );
            }
        }
    }
}
