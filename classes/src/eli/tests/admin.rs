//! Changes of metadata: geli's rules, and a power cut before every request of every change.

use super::*;
use crate::eli::admin::{self, AdminError, EliDisk, InitSettings, KeyChange};
use crate::eli::keys::open_slot;
use crate::{TargetOptions, open_target};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use ugeom_stack::Delta;
use ugeom_testkit::begins;

const MEDIA_BYTES: u64 = 1 << 20;
/// No change takes more requests than this.
const REQUESTS_MAX: u32 = 64;

fn key(number: u8) -> KeyComponents {
    let mut components = KeyComponents::new().expect("memory");
    components
        .add_keyfile(&[number; 64][..])
        .expect("a keyfile");
    components
}

/// Works on the metadata of an image, through layers that `text` puts on it.
fn with_disk<R>(
    path: &Path,
    layers: &str,
    work: impl FnOnce(&mut EliDisk<'_>) -> Result<R, AdminError>,
) -> Result<R, AdminError> {
    let options = TargetOptions::untasted().for_writing();
    let text = format!("{}{layers}", path.display());
    let target = open_target(&text, &options).expect("opens");
    let mut channel = target.stack.channel(1)?;
    let opened = target.open(Delta::READ_WRITE)?;
    work(&mut EliDisk::new(&mut channel, &opened)?)
}

fn settings(sector_bytes: u64, algorithm: Option<Authentication>) -> InitSettings {
    InitSettings {
        version: 7,
        flags: EliFlags::AUTORESIZE,
        cipher: Cipher::AesXts,
        key_bits: 256,
        authentication: algorithm,
        sector_bytes: Some(sector_bytes),
        iterations: None,
    }
}

/// A new image with key 1 in slot 0.
fn new_image(path: &Path) {
    fs::write(path, vec![0; MEDIA_BYTES as usize]).expect("writes");
    let made = with_disk(path, "", |disk| {
        let limit = KdfLimit::default();
        admin::initialize(disk, &settings(4096, None), &key(1), &limit)
    });
    made.expect("made");
}

/// The keys of 0 to 9 that open the image, with the metadata of a provider of that size.
fn opens(image: &[u8], size: u64) -> Vec<u8> {
    let sector = &image[size as usize - 512..size as usize];
    let Ok(metadata) = Metadata::decode(sector) else { return Vec::new() };
    if metadata.provider_bytes != size {
        return Vec::new();
    }
    let fits = |number: &u8| {
        let user = key(*number).user_key(&metadata.salt, -1, &KdfLimit::default());
        open_slot(&metadata, &user.expect("a key"), None).is_ok()
    };
    (0..10).filter(fits).collect()
}

#[derive(Clone, Copy, Debug)]
enum Change {
    /// From a key to another one, into a slot.
    SetKey(u8, u8, usize),
    DeleteKey(usize),
    Resize,
    Configure,
    Kill,
}

fn apply(disk: &mut EliDisk<'_>, change: Change) -> Result<(), AdminError> {
    match change {
        Change::SetKey(old, new, slot) => {
            let change = KeyChange {
                slot: Some(slot),
                iterations: None,
            };
            let keys = (&key(old), &key(new));
            admin::replace_key(disk, keys, change, &KdfLimit::default()).map(|_| ())
        }
        Change::DeleteKey(slot) => admin::delete_key(disk, Some(slot), false),
        Change::Resize => admin::resize(disk, MEDIA_BYTES),
        Change::Configure => admin::configure(disk, &[(EliFlags::BOOT, true)]).map(|_| ()),
        Change::Kill => disk.kill(),
    }
}

/// Makes the change, with the power cut before each of its requests in turn; what is there after
/// each cut is for `check`. Leaves the image as the whole change does.
fn cut_everywhere(path: &Path, change: Change, seed: u64, check: impl Fn(&[u8], &str)) -> bool {
    let before = fs::read(path).expect("reads");
    for request in 1..REQUESTS_MAX {
        fs::write(path, &before).expect("writes");
        let layers = format!("?engine=sync | crash:cut=op{request},seed={seed},tear=512");
        let done = with_disk(path, &layers, |disk| apply(disk, change));
        let after = fs::read(path).expect("reads");
        match done {
            Err(AdminError::Refused(_) | AdminError::WrongKey { .. }) => return false,
            Err(_) => check(&after, &format!("{change:?}, cut before request {request}")),
            Ok(()) => {
                assert!(request > 1, "{change:?} made no request");
                return true;
            }
        }
    }
    panic!("{change:?} has no end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_power_cut_never_leaves_a_provider_without_a_key(
        changes in proptest::collection::vec(
            prop_oneof![
                (1_u8..4, 1_u8..9, 0_usize..2).prop_map(|(old, new, slot)| {
                    Change::SetKey(old, new, slot)
                }),
                (0_usize..2).prop_map(Change::DeleteKey),
                Just(Change::Configure),
            ],
            1..5,
        ),
        seed: u64,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk.img");
        new_image(&path);
        for change in changes {
            let before = opens(&fs::read(&path).expect("reads"), MEDIA_BYTES);
            cut_everywhere(&path, change, seed, |after, what| {
                let now = opens(after, MEDIA_BYTES);
                assert!(!now.is_empty(), "{what}: no key opens it, before {before:?}");
                let kept = before.iter().any(|number| now.contains(number));
                let new = matches!(change, Change::SetKey(_, new, _) if now.contains(&new));
                assert!(kept || new, "{what}: {before:?} became {now:?}");
            });
            prop_assert!(!opens(&fs::read(&path).expect("reads"), MEDIA_BYTES).is_empty());
        }
    }
}

#[test]
fn a_power_cut_while_the_provider_grows_leaves_one_good_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let grown = MEDIA_BYTES + (64 << 10);
    for seed in 0..4 {
        new_image(&path);
        let mut image = fs::read(&path).expect("reads");
        image.resize(grown as usize, 0);
        fs::write(&path, &image).expect("writes");
        let done = cut_everywhere(&path, Change::Resize, seed, |after, what| {
            let (old, new) = (opens(after, MEDIA_BYTES), opens(after, grown));
            assert!(old == [1] || new == [1], "{what}: {old:?} {new:?}");
        });
        assert!(done);
        let after = fs::read(&path).expect("reads");
        assert_eq!(
            (opens(&after, MEDIA_BYTES), opens(&after, grown)),
            (vec![], vec![1])
        );
        let place = MEDIA_BYTES as usize - 512;
        assert!(after[place..place + 512].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn kill_overwrites_five_times_and_flushes_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    new_image(&path);
    let old = fs::read(&path).expect("reads");
    let place = MEDIA_BYTES as usize - 512;
    let mut seen = Vec::new();
    for flush in 1..=6 {
        fs::write(&path, &old).expect("writes");
        // A WRITE and a FLUSH each: the request behind a FLUSH is cut.
        let layers = format!("?engine=sync | crash:cut=op{},seed=1", 2 * flush + 1);
        let done = with_disk(&path, &layers, |disk| apply(disk, Change::Kill));
        assert_eq!(done.is_ok(), flush == 6, "{flush}");
        let after = fs::read(&path).expect("reads");
        let sector = after[place..].to_vec();
        assert!(
            opens(&after, MEDIA_BYTES).is_empty() && !seen.contains(&sector),
            "{flush}"
        );
        seen.push(sector);
    }
    assert!(seen[5].iter().all(|&byte| byte == 0));
    assert!(seen[4].iter().any(|&byte| byte != 0));
}

#[test]
fn keys_are_deleted_as_geli_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    new_image(&path);
    let delete = |slot, force| with_disk(&path, "", |d| admin::delete_key(d, Some(slot), force));
    let refused = |result: Result<(), AdminError>| result.expect_err("refused").to_string();
    assert_eq!(refused(delete(1, false)), "Master Key 1 is not set.");
    assert_eq!(refused(delete(2, false)), "Invalid 'keyno' argument.");
    assert_eq!(
        refused(delete(0, false)),
        "This is the last Master Key. Use '-f' option if you really want to remove it."
    );
    with_disk(&path, "", |disk| apply(disk, Change::SetKey(1, 2, 1))).expect("a second key");
    assert_eq!(opens(&fs::read(&path).expect("reads"), MEDIA_BYTES), [1, 2]);
    delete(0, false).expect("deleted");
    let image = fs::read(&path).expect("reads");
    assert_eq!(opens(&image, MEDIA_BYTES), [2]);
    let metadata = Metadata::decode(&image[MEDIA_BYTES as usize - 512..]).expect("metadata");
    assert!(metadata.slot(0).iter().all(|&byte| byte == 0));
    delete(1, true).expect("the last one");
    assert!(opens(&fs::read(&path).expect("reads"), MEDIA_BYTES).is_empty());
    let none = with_disk(&path, "", |disk| apply(disk, Change::SetKey(2, 3, 0)));
    assert_eq!(refused(none), "No valid keys on disk.img.");
}

#[test]
fn iterations_change_only_with_the_only_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    fs::write(&path, vec![0; MEDIA_BYTES as usize]).expect("writes");
    let limit = KdfLimit::default();
    let settings = InitSettings {
        iterations: Some(10),
        ..settings(512, None)
    };
    let old = components(false, true);
    let change = |slot, iterations| {
        with_disk(&path, "", |disk| {
            let change = KeyChange {
                slot: Some(slot),
                iterations: Some(iterations),
            };
            admin::replace_key(disk, (&old, &old), change, &limit).map(|_| ())
        })
    };
    with_disk(&path, "", |disk| {
        admin::initialize(disk, &settings, &old, &limit)
    })
    .expect("made");
    let error = change(1, 20).expect_err("another slot").to_string();
    begins(&error, "Only already defined key can be changed");
    change(0, 20).expect("the only key");
    change(1, 20).expect("the same number");
    let error = change(0, 30).expect_err("two keys").to_string();
    begins(&error, "To be able to use '-i' option");
}

#[test]
fn a_backup_is_restored_to_its_own_size_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    new_image(&path);
    let backup = fs::read(&path).expect("reads")[MEDIA_BYTES as usize - 512..].to_vec();
    with_disk(&path, "", |disk| disk.kill()).expect("killed");
    let restore = |force| with_disk(&path, "", |d| admin::restore(d, &backup, "backup", force));
    restore(false).expect("restored");
    assert_eq!(opens(&fs::read(&path).expect("reads"), MEDIA_BYTES), [1]);
    fs::write(&path, vec![0; 2 * MEDIA_BYTES as usize]).expect("writes");
    let error = restore(false).expect_err("another size").to_string();
    assert_eq!(error, "Provider size mismatch: wrong backup file?");
    restore(true).expect("forced");
    assert_eq!(
        opens(&fs::read(&path).expect("reads"), 2 * MEDIA_BYTES),
        [1]
    );
    let wrong = with_disk(&path, "", |d| admin::restore(d, &[0; 512], "backup", true));
    assert!(wrong.is_err());
    let mut damaged = backup.clone();
    damaged[60] ^= 1;
    let wrong = with_disk(&path, "", |d| admin::restore(d, &damaged, "backup", true));
    let wrong = wrong.expect_err("damaged").to_string();
    assert_eq!(wrong, "Inconsistent provider's backup metadata.");
}

#[test]
fn hidden_metadata_is_found_at_named_sizes_and_by_scanning() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    new_image(&path);
    let mut image = fs::read(&path).expect("reads");
    image.resize(3 * MEDIA_BYTES as usize, 0xff);
    fs::write(&path, image).expect("writes");
    let place = MEDIA_BYTES - 512;
    let found = with_disk(&path, "", |disk| {
        assert!(disk.metadata().is_err());
        let nothing = admin::candidates_at(disk, [3 * MEDIA_BYTES, 7, u64::MAX])?;
        assert!(nothing.is_empty());
        let named = admin::candidates_at(disk, [5 << 20, MEDIA_BYTES])?;
        let scanned = admin::scan(disk, 0..u64::MAX, |_| true)?;
        assert!(admin::scan(disk, 0..u64::MAX, |_| false)?.is_empty());
        assert_eq!(named, scanned);
        Ok(named)
    });
    let found = found.expect("looks");
    assert_eq!((found.len(), found[0].offset), (1, place));
    assert!(found[0].is_in_place(512));
}

#[test]
fn a_dump_has_the_lines_of_geli() {
    let sha256 = Some(Authentication::Sha256);
    let metadata = initialized(sample(7, Cipher::AesXts, 256, sha256, 4096));
    let dump = admin::dump(&metadata);
    let lines: Vec<&str> = dump.lines().collect();
    let expected = [
        "     magic: GEOM::ELI",
        "   version: 7",
        "     flags: 0x10",
        "     ealgo: AES-XTS",
        "    keylen: 256",
        "     aalgo: HMAC/SHA256",
        "  provsize: 1048576",
        "sectorsize: 4096",
        "      keys: 0x01",
        "iterations: 1000",
    ];
    assert_eq!(lines[..10], expected);
    assert!(lines[10].starts_with("      Salt: 000102030405"));
    assert_eq!(lines[11].len(), "Master Key: ".len() + 768);
    assert_eq!(
        lines[12],
        format!("  MD5 hash: {}", hex(&metadata.checksum()))
    );
}
