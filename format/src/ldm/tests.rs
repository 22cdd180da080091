//! Reading of databases of dynamic disks, and refusals.

use super::*;
use proptest::prelude::*;

#[path = "../../tests/common/ldm.rs"]
mod made;

const SECTORS: u64 = 20_000;
const MEDIA: Media = Media {
    sector_size_bytes: SECTOR_BYTES,
    sectors: SECTORS,
};

fn volumes() -> Vec<made::NewVolume<'static>> {
    let pieces = vec![(1, 6000, 0, 100), (2, 0, 0, 100)];
    made::volumes(("Stripe", 7, 200, vec![(1, pieces)]))
}

fn bytes_of(writes: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut disk = vec![0; (SECTORS * 512) as usize];
    for (sector, data) in writes {
        let at = *sector as usize * 512;
        disk[at..at + data.len()].copy_from_slice(data);
    }
    disk
}

fn read(disk: &[u8], place: Place) -> Result<Database, Error> {
    Database::read(MEDIA, place, &mut |lba, count| {
        let at = lba as usize * 512;
        Ok(disk[at..at + count as usize * 512].to_vec())
    })
}

#[test]
fn volumes_are_listed_with_their_places() {
    let disk = bytes_of(&made::disk(SECTORS, &volumes()));
    let database = read(&disk, Place::Mbr).unwrap();
    assert_eq!(database.header.group_name, "Group0");
    assert_eq!(database.header.start, 63);
    let names: Vec<&str> = database.volumes.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["Simple", "Spanned", "Mirror", "Stripe"]);
    let extents = |volume: usize, component: usize| {
        let component = &database.volumes[volume].components[component];
        let extents = component.extents.iter();
        let places = extents.map(|e| (e.start, e.sectors, e.volume_offset, e.is_here));
        (component.layout, places.collect::<Vec<_>>())
    };
    let spanned = Layout::Spanned;
    assert_eq!(extents(0, 0), (spanned, vec![(63, 1000, 0, true)]));
    assert_eq!(
        extents(1, 0),
        (spanned, vec![(2063, 300, 0, true), (3063, 200, 300, true)])
    );
    assert_eq!(extents(2, 1), (spanned, vec![(9, 100, 0, false)]));
    assert_eq!(extents(3, 0).0, Layout::Striped);
    assert_eq!(database.volumes[2].kind, 0x83);
}

#[test]
fn the_headers_at_the_end_count_where_the_first_one_is_damaged() {
    let mut disk = bytes_of(&made::disk(SECTORS, &volumes()));
    disk[6 * 512..7 * 512].fill(0);
    assert_eq!(read(&disk, Place::Mbr).unwrap().volumes.len(), 4);
    let database = SECTORS - DATABASE_SECTORS;
    assert_eq!(
        read(&disk, Place::Gpt { database }).unwrap().volumes.len(),
        4
    );
    for offset in HEADERS {
        let at = ((database + offset) * 512) as usize;
        disk[at..at + 512].fill(0);
    }
    let error = read(&disk, Place::Mbr).unwrap_err();
    let expected = "sector 6: it begins with zeroes, not with \"PRIVHEAD\"";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_is_wrong_is_named() {
    let good = bytes_of(&made::disk(SECTORS, &volumes()));
    let config = ((SECTORS - DATABASE_SECTORS + 17) * 512) as usize;
    let damaged = |at: usize, value: u8| {
        let mut disk = good.clone();
        disk[at] = value;
        read(&disk, Place::Mbr).unwrap_err()
    };
    assert_eq!(damaged(config + 17, 2), Error::State { found: 2 });
    assert!(matches!(damaged(config + 21, 9), Error::Version { .. }));
    assert!(matches!(damaged(config + 4, 255), Error::Records { .. }));
    assert!(matches!(
        damaged(config + 512, 0),
        Error::Record { number: 0, .. }
    ));
    let length = config + 512 + 16 + 8;
    assert!(matches!(damaged(length, 9), Error::Record { .. }));
    let disk = config + 512 + 128 + 16 + 8 + 2 + 6 + 1;
    assert_eq!(damaged(disk, b'b'), Error::NoDisk);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_database_is_read_or_refused(
        patches in proptest::collection::vec((0..6000_usize, any::<u8>()), 1..20),
        headers in proptest::collection::vec((0..512_usize, any::<u8>()), 0..3),
    ) {
        let mut disk = bytes_of(&made::disk(SECTORS, &volumes()));
        let database = ((SECTORS - DATABASE_SECTORS) * 512) as usize;
        for (at, value) in patches {
            disk[database + 17 * 512 + at] = value;
        }
        for (at, value) in headers {
            for place in [6 * 512, database + 1856 * 512, database + 2047 * 512] {
                disk[place + at] = value;
            }
        }
        if let Ok(found) = read(&disk, Place::Mbr) {
            let extents = found.volumes.iter().flat_map(|v| &v.components).flat_map(|c| &c.extents);
            for extent in extents {
                prop_assert!(extent.start.checked_add(extent.sectors).is_some());
            }
        }
    }
}
