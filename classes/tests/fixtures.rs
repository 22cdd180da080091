//! Real disks of 2001 and 2002 against the listings that GEOM's author recorded for them, line for
//! line: the same providers, sector sizes, media sizes, sectors and geometry, and no others.

mod common;

use common::{add, diskinfo, recorded, tables};
use std::path::PathBuf;

fn disks(test: &str) -> Vec<PathBuf> {
    let Some(folder) = ugeom_testkit::shared(test, "fixtures/phk-disks") else {
        return Vec::new();
    };
    let files = std::fs::read_dir(folder).expect("the folder of recorded disks");
    let paths = files.map(|file| file.expect("a file").path());
    let mut disks: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "xml"))
        .collect();
    disks.sort();
    assert!(disks.len() >= 8, "{disks:?}");
    disks
}

#[test]
fn every_recorded_disk_lists_what_geom_listed() {
    for path in disks("every_recorded_disk_lists_what_geom_listed") {
        let disk = recorded(&path);
        let stack = tables();
        add(
            &stack,
            "md34",
            disk.mediasize_bytes,
            disk.sectorsize_bytes,
            disk.memory,
        );
        let reference = std::fs::read_to_string(path.with_extension("ref")).expect("a listing");
        let expected: Vec<&str> = reference.lines().collect();
        assert_eq!(diskinfo(&stack), expected, "{}", path.display());
        assert_eq!(stack.taste_errors(), [], "{}", path.display());
        assert_eq!(stack.defects(), 0);
    }
}
