//! Tests of opening targets: where layers land, what addresses mean, what errors say.

use super::*;
use ugeom_stack::{Channel, Delta, Opened};
use ugeom_testkit::has;

/// A target, its top provider opened for reading and writing, and a channel for that many requests
/// in flight.
pub(crate) fn opened(
    text: &str,
    options: &TargetOptions,
    requests: usize,
) -> (Target, Channel, Opened) {
    let target = open_target(text, options).unwrap_or_else(|error| panic!("{text}: {error}"));
    let channel = target.stack.channel(requests).expect("a channel");
    let opened = target.open(Delta::READ_WRITE);
    (target, channel, opened.expect("opens"))
}

fn open(text: &str) -> Target {
    open_target(text, &TargetOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Each target is refused where it is written, with these words.
pub(crate) fn refuses(rows: &[(&str, &str)]) {
    for (text, words) in rows {
        let error = refused(text);
        assert!(
            error.contains(words) && error.contains("column"),
            "{text}: {error}"
        );
    }
}

fn refused(text: &str) -> String {
    match open_target(text, &TargetOptions::default()) {
        Ok(target) => panic!("{text} opened as {}", target.name),
        Err(error) => error.to_string(),
    }
}

#[test]
fn layers_stand_on_each_other_from_the_left() {
    let target = open("md:1m | nop | nop:offset=512");
    assert_eq!(target.name, "md0.nop.nop");
    let tree = target.stack.tree();
    let names: Vec<_> = tree.providers().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["md0", "md0.nop", "md0.nop.nop"]);
    assert_eq!(tree.provider("md0").map(|p| p.id), Some(target.bottom));
    let sizes: Vec<_> = tree.providers().map(|p| p.mediasize_bytes).collect();
    assert_eq!(sizes, [1 << 20, 1 << 20, (1 << 20) - 512]);
}

#[test]
fn what_is_written_through_the_top_lies_at_the_bottom() {
    let target = open("md:1m | nop:offset=1k");
    let stack = &target.stack;
    let mut channel = stack.channel(1).expect("a channel");
    let top = stack.open(target.top, Delta::READ_WRITE).expect("opens");
    assert_eq!(channel.write(&top, 512, &[7; 512]).expect("writes"), 512);
    drop(top);
    let bottom = stack.open(target.bottom, Delta::READ).expect("opens");
    let mut sector = [0; 512];
    channel.read(&bottom, 1536, &mut sector).expect("reads");
    assert_eq!(sector, [7; 512]);
}

#[test]
fn an_address_names_any_provider_by_its_name() {
    assert_eq!(open("md:1m | nop@md0").name, "md0");
    assert_eq!(open("md:1m@md0 | nop").name, "md0.nop");
    assert_eq!(open("md:1m | nop | nop@md0.nop").name, "md0.nop");
}

#[test]
fn an_address_that_names_nothing_lists_what_there_is() {
    let error = refused("md:1m | nop@s1a");
    has(&error, "`s1a` or `md0.nops1a`");
    has(&error, "column 13");
    has(&error, "the providers are: md0, md0.nop");
}

#[test]
fn a_bottom_class_cannot_stand_on_another() {
    let error = refused("md:1m | zero");
    has(&error, "zero can only be the first layer");
    has(&error, "column 9");
}

#[test]
fn a_layer_needs_something_below() {
    let error = refused("nop:delay=1ms");
    has(&error, "nop needs a device below it");
}

#[test]
fn a_stack_file_says_how_it_is_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stacks.toml");
    let text = "[stack.quiet]\nlayers = [\"md:1m\", \"nop\"]\nstatistics = \"off\"\n\
                dispatch = \"queued\"\ntaste = false\n";
    std::fs::write(&path, text).expect("writes");
    let target = open(&format!("{}#quiet", path.display()));
    let options = target.stack.options();
    assert_eq!(target.name, "md0.nop");
    assert_eq!(options.statistics, Statistics::Off);
    assert_eq!(
        options.dispatch,
        Dispatch::Queued {
            spin_ns: QUEUED_SPIN_NS
        }
    );
    assert!(!options.taste);
}

#[test]
fn a_stack_file_that_is_not_there_is_named() {
    let error = refused("/nonexistent/stacks.toml#x");
    has(&error, "the stack file cannot be read");
}

#[test]
fn a_target_that_is_read_once_knows_its_file_and_its_address() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let stacks = folder.path().join("s.toml");
    let text =
        "[stack.disk]\nlayers = [\"disk.img\", \"nop\"]\n[stack.bare]\nlayers = [\"a.img\"]\n";
    std::fs::write(&stacks, text).expect("a stack file");
    let stacks = stacks.display();
    for (text, bottom, single, addressed) in [
        ("disk.img", Some("disk.img"), Some("disk.img"), false),
        (
            "disk.img?direct=1",
            Some("disk.img"),
            Some("disk.img"),
            false,
        ),
        ("disk.img@s1", Some("disk.img"), None, true),
        ("disk.img | nop", Some("disk.img"), None, false),
        ("md:1m@md0", None, None, true),
        ("md:1m", None, None, false),
        (&format!("{stacks}#disk"), Some("disk.img"), None, false),
        (&format!("{stacks}#disk@s1"), Some("disk.img"), None, true),
        (
            &format!("{stacks}#bare"),
            Some("a.img"),
            Some("a.img"),
            false,
        ),
    ] {
        let target = TargetText::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(target.bottom_path(), bottom, "{text}");
        assert_eq!(target.single_path(), single, "{text}");
        assert_eq!(target.addressed, addressed, "{text}");
    }
    assert!(open("md:1m@md0").addressed && !open("md:1m").addressed);
}

#[test]
fn a_provider_is_found_by_the_name_that_show_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let mut disk = vec![0; 64 << 10];
    // A table with one slice: Linux, 16 sectors from sector 8 on.
    disk[446 + 4] = 0x83;
    disk[446 + 8] = 8;
    disk[446 + 12] = 16;
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    std::fs::write(&path, disk).expect("a disk");
    let path = path.display();
    assert_eq!(open(&format!("{path}s1")).name, "disk.imgs1");
    assert!(open(&format!("{path}s1")).addressed);
    assert_eq!(open(&format!("{path}s1 | nop")).name, "disk.imgs1.nop");
    let target = TargetText::parse(&format!("{path}s1")).expect("parses");
    assert_eq!(target.bottom_path(), Some(path.to_string().as_str()));
    assert_eq!(target.single_path(), None);
    // What only begins like a file is no provider of it.
    for text in [
        format!("{path}.old"),
        format!("{path}s1/x"),
        format!("{path}1"),
    ] {
        assert!(refused(&text).contains("No such file"), "{text}");
    }
    assert!(refused(&format!("{path}s7")).contains("disk.imgs1"));
    // A file with the whole name comes first.
    std::fs::write(format!("{path}s1"), [0; 512]).expect("a file");
    assert!(!open(&format!("{path}s1")).addressed);
}
