//! Targets over a partitioned image: the provider of an address, and a table class that is written
//! as a layer.

mod common;

use common::disks::{label_of, mbr_of};
use ugeom_classes::{Target, TargetError, TargetOptions, open_target};
use ugeom_stack::{Delta, StackKnobs};

/// An image with one slice from sector 63 on and a label with the partition `a` in it, whose first
/// sector says so.
struct Image {
    folder: tempfile::TempDir,
}

const SLICE: u32 = 63;
const PARTITION: u32 = 16;

impl Image {
    fn new() -> Self {
        let mut bytes = vec![0; 2 << 20];
        let mut put = |sector: u32, data: &[u8]| {
            let at = sector as usize * 512;
            bytes[at..at + data.len()].copy_from_slice(data);
        };
        put(0, &mbr_of(&[(0xa5, SLICE, 3000)]));
        put(
            SLICE + 1,
            &label_of(512, 8, &[(0, PARTITION, 1000), (2, 0, 3000)]),
        );
        put(SLICE + PARTITION, b"here is a");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("d.img"), bytes).expect("writes");
        Self { folder }
    }

    /// The target with the path in place of `D`.
    fn text(&self, target: &str) -> String {
        let path = self.folder.path().join("d.img").display().to_string();
        target.replacen('D', &path, 1)
    }

    fn try_open(&self, target: &str, taste: bool) -> Result<Target, TargetError> {
        let options = TargetOptions {
            knobs: StackKnobs {
                taste,
                ..StackKnobs::default()
            },
            ..TargetOptions::default()
        };
        open_target(&self.text(target), &options)
    }

    fn open(&self, target: &str, taste: bool) -> Target {
        let opened = self.try_open(target, taste);
        opened.unwrap_or_else(|error| panic!("{target}: {error}"))
    }
}

fn names(target: &Target) -> Vec<String> {
    let tree = target.stack.tree();
    tree.providers()
        .map(|provider| provider.name.clone())
        .collect()
}

#[test]
fn an_address_is_the_end_of_a_name_or_all_of_it() {
    let image = Image::new();
    for (target, name) in [
        ("D", "d.img"),
        ("D@s1", "d.imgs1"),
        ("D@s1a", "d.imgs1a"),
        ("D@d.imgs1a", "d.imgs1a"),
        ("D@s1 | nop", "d.imgs1.nop"),
        ("D@s1 | nop@a", "d.imgs1.nopa"),
        ("D@s1 | nop@d.imgs1a", "d.imgs1a"),
    ] {
        assert_eq!(image.open(target, true).name, name, "{target}");
    }
}

#[test]
fn the_provider_that_is_addressed_is_the_one_that_is_read() {
    let image = Image::new();
    for target in [
        "D@s1a",
        "D | nop@s1a",
        "D@s1 | nop | bsd@a",
        "D | mbr@s1 | bsd@a",
    ] {
        let opened = image.open(target, true);
        let handle = opened.open(Delta::READ).expect("opens");
        let mut channel = opened.stack.channel(1).expect("a channel");
        let mut sector = [0; 512];
        channel.read(&handle, 0, &mut sector).expect("reads");
        assert_eq!(&sector[..9], b"here is a", "{target}");
    }
}

#[test]
fn an_address_above_a_layer_means_what_is_found_through_it() {
    let image = Image::new();
    let opened = image.open("D | nop | mbr@s1", true);
    assert_eq!(opened.name, "d.img.nops1");
    // GEOM tastes d.img, too: both are there, and only one of them is meant.
    assert!(names(&opened).contains(&"d.imgs1".to_owned()));
}

#[test]
fn a_table_that_tasting_has_made_is_not_made_again() {
    let image = Image::new();
    let opened = image.open("D | mbr", true);
    let tree = opened.stack.tree();
    assert_eq!(
        tree.geoms.iter().filter(|geom| geom.class == "MBR").count(),
        1
    );
    assert_eq!(
        opened.name, "d.img",
        "without an address, what the table lies on"
    );
}

#[test]
fn without_tasting_a_table_class_still_does_its_work_and_it_alone() {
    let image = Image::new();
    let opened = image.open("D | mbr@s1", false);
    assert_eq!(names(&opened), ["d.img", "d.imgs1"]);
    let opened = image.open("D | mbr@s1 | bsd@a", false);
    assert_eq!(opened.name, "d.imgs1a");
}

/// Targets that are refused: whether the classes taste, and what the error says.
#[rustfmt::skip]
const REFUSED: &[(&str, bool, &[&str])] = &[
    ("D@s1", false, &["the providers are: d.img (tasting is off)"]),
    // Two tables can be asked for on one provider; here only one is there.
    ("D | mbr | gpt", true, &["GPT on d.img: neither sector 1 nor the last one", "^^^"]),
    ("D | mbr | nop", true, &["nop can attach to any provider of mbr: name one",
        "as in mbr@d.imgs1 | nop"]),
    ("md:1m | mbr", true, &["column 9",
        "MBR on md0: no boot signature at byte 510: found 0x0000, expected 0xaa55"]),
    ("D@s2 | nop", true, &["there is no provider `s2` or `d.imgs2`",
        "d.img, d.imgs1, d.imgs1a, d.imgs1c"]),
    ("D | mbr:active=1", true, &["mbr has no option `active`"]),
    // Taken for D@x, because d.img is a file.
    ("Dx", true, &["d.imgx: no such file or directory, and d.img has no provider `x`"]),
];

#[test]
fn a_target_that_is_refused_names_the_place_and_what_there_is() {
    let image = Image::new();
    for (target, taste, words) in REFUSED {
        let error = image
            .try_open(target, *taste)
            .err()
            .expect(target)
            .to_string();
        for words in *words {
            assert!(error.contains(words), "{target}: {error}");
        }
    }
}

#[test]
fn a_target_is_read_only_unless_writing_is_asked_for() {
    let image = Image::new();
    let opened = image.open("D@s1a", true);
    assert!(opened.open(Delta::READ_WRITE).is_err());
    let options = TargetOptions::default().for_writing();
    let opened = open_target(&image.text("D@s1a"), &options);
    let opened = opened.unwrap_or_else(|error| panic!("{error}"));
    assert!(opened.open(Delta::READ_WRITE).is_ok());
}
