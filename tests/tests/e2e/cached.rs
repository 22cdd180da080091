//! The buffer cache wherever a target does: `disk.img | cache:256m`.

use crate::disks;
use crate::run::{has, ugeom, ugeom_with};

const MIB: usize = 1 << 20;

#[test]
fn a_cache_stands_wherever_a_target_does() {
    let (_folder, path, mut content) = disks::random_image(16 * MIB, 11);
    let target = format!("{} | cache:256m", disks::text(&path));
    assert!(ugeom(&["read", &target]).stdout == content, "read");
    ugeom_with(&["write", &target, "--offset", "4000"], &[7; 9000]).quiet();
    content[4000..13_000].fill(7);
    assert!(std::fs::read(&path).expect("the image") == content, "write");

    let shown = ugeom(&["show", "-v", &target]).quiet();
    for fact in ["size: 268435456", "write: through", "hits: ", "misses: "] {
        assert!(shown.contains(fact), "{fact}: {shown}");
    }
    let lines = ugeom(&["diskinfo", &target]).quiet();
    has(&lines, "disk.img.cache\t512\t16777216\t");

    ugeom(&["part", "create", "-s", "gpt", "--destroy", &target]).quiet();
    ugeom(&["part", "add", "-t", "freebsd-ufs", &target]).quiet();
    let inside = ugeom(&["show", &target]).quiet();
    has(&inside, "disk.img.cachep1");
    let part = format!("{target}@p1");
    let first = ugeom(&["read", &part, "--length", "4k"]).stdout;
    assert_eq!(first, content[2048 * 512..2048 * 512 + 4096], "a partition");
}
