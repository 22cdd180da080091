//! `ugeom read` and `ugeom write` against plain files, dd and mkfs.

use crate::disks;
use crate::run::{has, json_of, other, ugeom, ugeom_with};
use ugeom_testkit::begins;

const MIB: usize = 1 << 20;

fn read(target: &str, offset: usize, length: usize) -> Vec<u8> {
    let (offset, length) = (offset.to_string(), length.to_string());
    let ended = ugeom(&["read", target, "--offset", &offset, "--length", &length]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    ended.stdout
}

fn write(target: &str, offset: usize, bytes: &[u8]) {
    ugeom_with(&["write", target, "--offset", &offset.to_string()], bytes).quiet();
}

#[test]
fn any_offset_and_length_reads_what_lies_there() {
    let (_folder, path, content) = disks::random_image(11 * MIB + 512, 1);
    let path = disks::text(&path);
    for (offset, length) in [
        (0, 1),
        (0, 0),
        (511, 2),
        (MIB - 1, 2),
        (12_345, 9 * MIB + 7),
        (512, 4096),
        (content.len() - 3, 3),
        (content.len(), 0),
    ] {
        let bytes = read(&path, offset, length);
        assert!(
            bytes == content[offset..offset + length],
            "{length} bytes at {offset}"
        );
    }
    assert!(ugeom(&["read", &path]).stdout == content, "all of it");
    assert!(ugeom(&["read", &path, "--offset", "3s"]).stdout == content[1536..]);
}

#[test]
fn writing_changes_the_bytes_meant_and_no_others() {
    let (_folder, path, mut content) = disks::random_image(6 * MIB, 3);
    let target = disks::text(&path);
    let mut random = fastrand::Rng::with_seed(4);
    for (offset, length) in [
        (513, 1),
        (0, 512),
        (1000, 3 * MIB + 77),
        (2 * MIB, 2 * MIB),
        (9, 0),
    ] {
        let mut bytes = vec![0; length];
        random.fill(&mut bytes);
        write(&target, offset, &bytes);
        content[offset..offset + length].copy_from_slice(&bytes);
        let now = std::fs::read(&path).expect("the image");
        assert!(now == content, "{length} bytes at {offset}");
    }
    let json = json_of(ugeom_with(&["write", &target, "--offset", "4k", "--json"], b"abc").quiet());
    assert_eq!(json["written_bytes"], 3);
}

#[test]
fn sectors_of_4096_bytes_are_changed_in_part_as_well() {
    let (_folder, path, mut content) = disks::random_image(MIB, 5);
    let target = format!("{}?sectorsize=4k", disks::text(&path));
    write(&target, 5000, &[7; 3000]);
    content[5000..8000].fill(7);
    assert!(std::fs::read(&path).expect("the image") == content);
    assert!(read(&target, 4999, 3002) == content[4999..8001]);
}

#[test]
fn a_partition_ends_where_its_table_says() {
    let (_folder, path) = disks::partitioned_image(4096, 63, 100);
    let part = format!("{}@s1", disks::text(&path));
    write(&part, 7, b"in the partition");
    let image = std::fs::read(&path).expect("the image");
    assert_eq!(&image[63 * 512 + 7..63 * 512 + 23], b"in the partition");
    assert_eq!(read(&part, 7, 16), b"in the partition");

    let too_much = ugeom_with(&["write", &part], &vec![1; 100 * 512 + 1]).failed(1);
    let expected = "ugeom: the input is longer than the 51200 bytes up to the end of disk.imgs1, \
                    which were written\n";
    assert_eq!(too_much, expected);
    let image = std::fs::read(&path).expect("the image");
    assert!(image[63 * 512..163 * 512].iter().all(|&byte| byte == 1));
    assert!(image[163 * 512..].iter().all(|&byte| byte == 0));

    let outside = ugeom(&["read", &part, "--offset", "51200", "--length", "1"]).failed(2);
    has(
        &outside,
        "past the end of disk.imgs1, which has 51,200 bytes",
    );
}

#[test]
fn an_input_that_is_too_short_is_written_and_said() {
    let (_folder, path) = disks::empty_image(MIB as u64);
    let target = disks::text(&path);
    let short = ugeom_with(&["write", &target, "--length", "11"], b"0123456789").failed(1);
    assert_eq!(
        short,
        "ugeom: the input ended after 10 of 11 bytes, which were written\n"
    );
    let longer = ugeom_with(
        &["write", &target, "--offset", "20", "--length", "4"],
        b"abcdefgh",
    );
    assert_eq!(longer.quiet(), "");
    let image = std::fs::read(&path).expect("the image");
    assert_eq!(&image[..10], b"0123456789");
    assert_eq!(&image[20..26], b"abcd\0\0");
}

#[test]
fn a_file_system_made_inside_a_partition_is_read_whole_and_not_overwritten() {
    let Some(mkfs) = ugeom_testkit::program("mkfs.ext4") else { return };
    let Some(fsck) = ugeom_testkit::program("e2fsck") else { return };
    let (folder, path) = disks::partitioned_image(40_960, 2048, 32_768);
    let image = disks::text(&path);
    let offset = format!("offset={}", 2048 * 512);
    let mut make = vec!["-q", "-F", "-L", "inside", "-b", "1024", "-E", &offset];
    make.extend([image.as_str(), "16384"]);
    other(mkfs, &make);

    let part = format!("{image}@s1");
    let copy = disks::at(&folder, "copy");
    std::fs::write(&copy, ugeom(&["read", &part]).stdout).expect("a copy");
    other(fsck, &["-f", "-n", &copy]);
    let superblock = read(&part, 1024, 1024);
    assert_eq!(superblock[56..58], [0x53, 0xef]);
    assert_eq!(&superblock[120..126], b"inside");

    let refused = ugeom_with(&["write", &part], b"x").failed(1);
    begins(&refused, "ugeom: disk.imgs1 carries an ext4 file system");
    ugeom_with(&["write", &part, "--destroy"], &[0; 4096]).quiet();
    assert_eq!(read(&part, 0, 2048), [0; 2048]);
}

/// Written bytes count, also when the next write fails.
#[test]
fn a_write_that_fails_says_how_much_was_written() {
    for (pass, bytes) in [(2, "2,097,152"), (0, "0")] {
        let target = format!("md:4m | nop:count_until_fail={pass},error=ENOSPC");
        let arguments = ["write", &target, "--destroy", "--no-taste"];
        let said = ugeom_with(&arguments, &[7; 4 * MIB]).failed(1);
        let words = format!("ugeom: after {bytes} bytes were written: WRITE of ");
        assert!(said.starts_with(&words), "{said}");
    }
}

#[test]
fn a_cache_that_writes_back_has_written_when_the_program_ends() {
    let (_folder, path, mut content) = disks::random_image(3 * MIB, 7);
    let target = format!("{} | cache:1m,write=back", disks::text(&path));
    write(&target, 1000, &vec![7; MIB]);
    content[1000..1000 + MIB].fill(7);
    assert!(std::fs::read(&path).expect("the image") == content);
}

#[test]
fn what_a_cache_cannot_write_is_said_and_is_no_success() {
    let target = "md:1m | nop:wfail=100% | cache:1m,write=back";
    let ended = ugeom_with(&["write", target], &[7; 65536]);
    assert_eq!(ended.code, 1);
    for words in [
        "ugeom: md0.nop.cache: 65536 bytes from offset 0 on could not be written",
        "a failure injected by nop",
        "dirty data could not be written below; the cache keeps it",
        "ugeom: md0.nop.cache: 65536 bytes that were to be written from offset 0 on are lost",
    ] {
        assert!(
            ended.stderr.contains(words),
            "{words:?} in {:?}",
            ended.stderr
        );
    }
}
