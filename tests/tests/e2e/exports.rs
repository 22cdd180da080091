//! Several targets behind one `ugeom serve`, as libnbd, qemu, fio and programs that use files see
//! them.

use crate::disks;
use crate::files::Mounted;
use crate::run::{command, has, json_of, other, run, ugeom};
use crate::serve::{Served, noise};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;
use ugeom_testkit::program;

const BYTES: usize = 4 << 20;

/// The images `a/disk.img` and `b/disk.img` of a folder.
fn two_images() -> (TempDir, [String; 2], [Vec<u8>; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = [noise(1, BYTES), noise(2, BYTES / 2)];
    let paths = [("a", &data[0]), ("b", &data[1])].map(|(name, data)| {
        fs::create_dir(folder.path().join(name)).expect("a folder");
        let path = folder.path().join(name).join("disk.img");
        fs::write(&path, data).expect("an image");
        disks::text(&path)
    });
    (folder, paths, data)
}

/// Names, sizes, and whether they are read-only.
fn listed(served: &Served) -> Option<Vec<(String, u64, bool)>> {
    let info = program("nbdinfo")?;
    let list = json_of(other(&info, &["--list", "--json", &served.uri]));
    let exports = list["exports"].as_array().expect("a list").iter();
    let facts = exports.map(|it| {
        (
            it["export-name"].as_str().expect("a name").to_owned(),
            it["export-size"].as_u64().expect("a size"),
            it["is_read_only"].as_bool().expect("true or false"),
        )
    });
    Some(facts.collect())
}

fn row(name: &str, bytes: usize, read_only: bool) -> (String, u64, bool) {
    (name.to_owned(), bytes as u64, read_only)
}

#[test]
fn each_target_is_an_export_with_its_own_data_name_and_access() {
    let (Some(copy), Some(io)) = (program("nbdcopy"), program("qemu-io")) else { return };
    let (folder, [a, b], data) = two_images();
    let (named, kept) = (format!("one={a}"), format!("two:ro={b}"));
    let served = Served::start(folder, &named, &["--rw", &kept, "md:1m | nop"]);
    let Some(list) = listed(&served) else { return };
    let expected = [
        row("one", BYTES, false),
        row("two", BYTES / 2, true),
        row("md0.nop", 1 << 20, false),
        row("md0", 1 << 20, false),
    ];
    assert_eq!(list, expected);
    let copied = |name: &str| {
        let out = served.path("out.img");
        other(&copy, &[&served.export(name), &out]);
        fs::read(&out).expect("a copy")
    };
    assert!(copied("") == data[0], "the first target is the default");
    assert!(copied("one") == data[0]);
    assert!(copied("two") == data[1]);
    // One client writes to each at the same time; FLUSH makes it durable.
    for (name, pattern) in [("one", "0x31"), ("md0.nop", "0x33")] {
        let write = format!("write -P {pattern} 64k 64k");
        let uri = served.export(name);
        other(&io, &["-f", "raw", "-c", &write, "-c", "flush", &uri]);
    }
    let written = fs::read(&a).expect("the image");
    assert!(
        written[64 << 10..128 << 10]
            .iter()
            .all(|byte| *byte == 0x31)
    );
    assert!(written[..64 << 10] == data[0][..64 << 10]);
    assert!(
        copied("md0.nop")[64 << 10..128 << 10]
            .iter()
            .all(|byte| *byte == 0x33)
    );
    let uri = served.export("two");
    let refused = run(command(&io, &["-f", "raw", "-c", "write 0 4k", &uri]), b"");
    assert_ne!(refused.code, 0);
    assert!(fs::read(&b).expect("the image") == data[1]);
}

#[test]
fn targets_with_the_same_name_are_told_apart() {
    let (folder, [a, b], data) = two_images();
    let Some(copy) = program("nbdcopy") else { return };
    let served = Served::start(folder, &a, &[&b]);
    let Some(list) = listed(&served) else { return };
    let expected = [
        row("disk.img", BYTES, true),
        row("disk.img-2", BYTES / 2, true),
    ];
    assert_eq!(list, expected);
    let out = served.path("out.img");
    other(&copy, &[&served.export("disk.img-2"), &out]);
    assert!(fs::read(&out).expect("a copy") == data[1]);
    let (x, y) = (format!("x={a}"), format!("x={b}"));
    let refused = ugeom(&["serve", &x, &y, "--run", "true"]).failed(2);
    has(&refused, "two targets would be the export `x`");
    let refused = ugeom(&["serve", &a, "/no/such", "--run", "true"]).failed(1);
    has(&refused, "/no/such");
}

#[test]
fn figures_have_the_names_that_were_given() {
    let (folder, [a, b], _) = two_images();
    let control = disks::at(&folder, "control");
    let metrics = disks::at(&folder, "metrics");
    let one = format!("one={a}");
    let metrics_at = format!("unix:{metrics}");
    let more = [b.as_str(), "--control", &control, "--metrics", &metrics_at];
    let _served = Served::start(folder, &one, &more);
    let stat = |options: &[&str]| {
        let all = [&["stat", "--socket", &control, "-I", "50ms"], options].concat();
        ugeom(&all).quiet()
    };
    let table = stat(&["-b"]);
    has(&table, "  disk.img (one)\n");
    has(&table, "  disk.img-2\n");
    let json = json_of(stat(&["--json", "-b"]));
    let rows = json["rows"].as_array().expect("rows");
    let names = rows
        .iter()
        .map(|row| (row["name"].as_str(), row["export"].as_str()));
    let expected = [(Some("disk.img"), Some("one")), (Some("disk.img-2"), None)];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let info = "ugeom_export_info{export=\"one\",provider=\"disk.img\"} 1\n";
    has(&stat(&["--openmetrics"]), info);
    // What curl fetches is what promtool parses.
    let (Some(curl), Some(promtool)) = (program("curl"), program("promtool")) else { return };
    let page = other(
        &curl,
        &["-sS", "--unix-socket", &metrics, "http://u/metrics"],
    );
    has(&String::from_utf8_lossy(&page), info);
    let checked = run(command(&promtool, &["check", "metrics"]), &page);
    assert!([0, 3].contains(&checked.code), "{}", checked.stderr);
}

/// The partitions of a disk that was given without a name come and go; one with a name is alone.
#[test]
fn partitions_belong_to_their_disk() {
    let Some(sfdisk) = program("sfdisk") else { return };
    let (folder, [a, b], _) = two_images();
    for image in [&a, &b] {
        let script = b"label: dos\n64,512,83\n";
        assert_eq!(run(command(&sfdisk, &["-q", image]), script).code, 0);
    }
    let served = Served::start(folder, &a, &[&format!("two={b}"), &format!("{b}@s1")]);
    let Some(list) = listed(&served) else { return };
    let expected = [
        row("disk.img", BYTES, true),
        row("two", BYTES / 2, true),
        row("disk.img-3s1", 512 * 512, true),
        row("disk.imgs1", 512 * 512, true),
    ];
    assert_eq!(list, expected);
}

#[test]
fn rules_and_files_use_the_names_that_were_given() {
    let (folder, [a, b], data) = two_images();
    let (one, two) = (format!("one={a}"), format!("two:ro={b}"));
    let served = Served::start(
        tempfile::tempdir().expect("a folder"),
        &format!("one={a}"),
        &[&two, "--allow", "two=any"],
    );
    if let Some(list) = listed(&served) {
        assert_eq!(list, [row("two", BYTES / 2, true)]);
    }
    drop(served);
    let Some(mounted) = Mounted::start(folder, &one, &["--rw", &two]) else { return };
    let [one, two] = ["one", "two"].map(|name| mounted.file(name));
    let mode = |path: &str| {
        let metadata = fs::metadata(path).expect("a file");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!((mode(&one), mode(&two)), (0o600, 0o400));
    assert!(fs::read(&one).expect("a file") == data[0]);
    assert!(fs::read(&two).expect("a file") == data[1]);
    let refused = OpenOptions::new().write(true).open(&two);
    let refused = refused.expect_err("it is read-only").raw_os_error();
    assert_eq!(refused, Some(rustix::io::Errno::ROFS.raw_os_error()));
    OpenOptions::new().write(true).open(&one).expect("opens");
}

#[test]
fn fio_verifies_several_exports_at_once() {
    let Some(fio) = program("fio") else { return };
    let (folder, [a, b], _) = two_images();
    let (one, two) = (format!("one={a}"), format!("two={b}"));
    let served = Served::start(folder, &one, &["--rw", &two, "md:2m"]);
    let job = |name: &str| {
        let uri = served.export(name);
        [
            format!("--name={name}"),
            format!("--uri={uri}"),
            format!("--verify_pattern=\"{name}\"%o"),
        ]
    };
    let common = [
        "--ioengine=nbd",
        "--thread",
        "--rw=randwrite",
        "--bs=4k",
        "--size=1m",
        "--iodepth=8",
        "--verify=pattern",
        "--verify_fatal=1",
        "--fsync=16",
        "--verify_state_save=0",
    ];
    let common = common.map(str::to_owned).to_vec();
    let jobs = ["one", "two", "md0"].map(job).concat();
    other(&fio, &[common, jobs].concat());
}
