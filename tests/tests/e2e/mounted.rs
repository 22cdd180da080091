//! A real block device, a file system mounted from it, and ugeom's access to them.

use crate::disks;
use crate::run::{
    UGEOM, command, end, has, other, part, run, ugeom, ugeom_with, wait_for, words_of,
};
use crate::serve::Served;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use ugeom_testkit::LoopDevice;

/// A loop device over an image with a file system; gone when dropped, with what is mounted there.
struct Loop {
    folder: tempfile::TempDir,
    image: String,
    device: String,
    _loop_device: LoopDevice,
}

impl Loop {
    /// `None`, after saying why, where block devices cannot be made.
    fn new() -> Option<Self> {
        let mkfs = ugeom_testkit::program("mkfs.ext4")?;
        ugeom_testkit::program("mount")?;
        let (folder, path) = disks::empty_image(8 << 20);
        let image = disks::text(&path);
        other(mkfs, &["-q", &image]);
        let loop_device = LoopDevice::over(&path, &[])?;
        let device = loop_device.text();
        Some(Self {
            folder,
            image,
            device,
            _loop_device: loop_device,
        })
    }

    fn mount(&self) -> Option<PathBuf> {
        let place = self.folder.path().join("mounted");
        std::fs::create_dir(&place).expect("a folder");
        let mounted = run(command("mount", &[&self.device, &disks::text(&place)]), b"");
        if mounted.code != 0 {
            ugeom_testkit::skip(&format!("no mount: {}", mounted.stderr.trim()));
            return None;
        }
        Some(place)
    }
}

#[test]
fn a_block_device_is_what_its_image_is() {
    let Some(disk) = Loop::new() else { return };
    let info = ugeom(&["diskinfo", &disk.device]).quiet();
    let name = disk.device.trim_start_matches("/dev/");
    assert_eq!(info, format!("{name}\t512\t8388608\t16384\t0\t0\n"));
    let bytes = ugeom(&words_of(&format!(
        "read {} --offset 1001 --length 70000",
        disk.device
    )));
    let image = std::fs::read(&disk.image).expect("the image");
    assert!(bytes.stdout == image[1001..71_001]);
    let refused = ugeom_with(&["write", &disk.device], b"x").failed(1);
    has(&refused, "carries an ext4 file system (at byte 1080)");
    let write = ["write", &disk.device, "--destroy", "--offset", "5m"];
    ugeom_with(&write, b"through the device").quiet();
    let image = std::fs::read(&disk.image).expect("the image");
    assert!(image[5 << 20..].starts_with(b"through the device"));
}

#[test]
fn a_block_device_is_swept_with_several_blocks_at_a_time() {
    let Some(disk) = Loop::new() else { return };
    for target in [disk.device.clone(), format!("{} | nop", disk.device)] {
        let sizes = ["--min", "4k", "--max", "32k", "--budget", "1s", "--all"];
        let sweep = [&["lab", "sweep", "--direct"], &sizes[..], &[&target]].concat();
        let report = ugeom(&sweep).text();
        has(&report, ") at 32");
        assert!(!report.contains("is in use"), "{report}");
    }
}

#[test]
fn what_is_mounted_is_not_written_to() {
    let Some(disk) = Loop::new() else { return };
    let Some(place) = disk.mount() else { return };
    for target in [&disk.device, &disk.image] {
        let place = place.display();
        let expected =
            format!("ugeom: {target} is mounted at {place}: free it first; nothing was written\n");
        assert_eq!(ugeom_with(&["write", target], b"x").failed(1), expected);
        assert_eq!(
            ugeom(&["part", "create", "-s", "gpt", target]).failed(1),
            expected
        );
    }
    let forced = ugeom_with(&["write", "--destroy", &disk.device], b"x").failed(1);
    has(&forced, &format!("is mounted at {}", place.display()));
    let shared = ugeom(&["show", &format!("{}?shared=1", disk.device)]).quiet();
    has(&shared, "  block device");
}

/// Opens with O_EXCL, which Linux grants to one holder of a block device: a mount, LVM or mkfs.
const O_EXCL: i32 = 0o200;

#[test]
fn a_device_that_a_program_holds_is_not_written_to() {
    let Some(disk) = Loop::new() else { return };
    let before = std::fs::read(&disk.image).expect("the image");
    let mut exclusive = std::fs::OpenOptions::new();
    let exclusive = exclusive.read(true).custom_flags(O_EXCL);
    let held = exclusive.open(&disk.device).expect("it is free");
    // Neither boot code nor a key is read from a device.
    let reads = |line: &str| line.contains("bootcode") || line.contains("geli");
    let commands = WRITERS.iter().filter(|(line, _)| !reads(line));
    for (line, input) in commands {
        let ended = ugeom_with(&words(line, &disk.device), input.as_bytes());
        assert_eq!(ended.code, 1, "{line}: {}", ended.stderr);
        has(&ended.stderr, "held by another process");
        assert!(std::fs::read(&disk.image).expect("the image") == before);
    }
    drop(held);
}

/// Commands that write to an image, with every flag that overwrites what it carries; the text on
/// stdin of each. `IMAGE` stands for the image.
const WRITERS: [(&str, &str); 18] = [
    ("write --destroy IMAGE", "x"),
    ("write --destroy IMAGE@p1", "x"),
    ("part create --destroy -s mbr IMAGE", ""),
    ("part add -t efi IMAGE", ""),
    ("part delete -i 1 IMAGE", ""),
    ("part modify -i 1 -t efi IMAGE", ""),
    ("part resize -i 1 -s 3m IMAGE", ""),
    ("part set -a bootme -i 1 IMAGE", ""),
    ("part unset -a bootme -i 1 IMAGE", ""),
    ("part destroy -F IMAGE", ""),
    ("part recover --destroy IMAGE", ""),
    ("part restore -F IMAGE", "MBR 4\n"),
    ("part bootcode --destroy -p IMAGE -i 1 IMAGE", ""),
    ("geli init --destroy -P -K IMAGE IMAGE@p1", ""),
    ("diskinfo -w -S --destroy IMAGE", ""),
    ("lab sweep --write --destroy --budget 1s IMAGE", ""),
    ("lab engines --destroy --budget 1s IMAGE", ""),
    (
        "run --destroy --name=x --rw=write --size=1m --filename=IMAGE",
        "",
    ),
];

fn words(line: &str, image: &str) -> Vec<String> {
    let words = line.split(' ');
    words.map(|word| word.replace("IMAGE", image)).collect()
}

#[test]
fn an_image_behind_a_loop_device_is_not_written_to() {
    let (_folder, path) = disks::empty_image(8 << 20);
    let image = disks::text(&path);
    ugeom(&["part", "create", "-s", "gpt", &image]).quiet();
    ugeom(&["part", "add", "-t", "linux-data", "-s", "2m", &image]).quiet();
    let before = std::fs::read(&path).expect("the image");
    let Some(over) = LoopDevice::over(&path, &[]) else { return };
    let attached = format!("is attached to {}", over.text());
    for (line, input) in WRITERS {
        let ended = ugeom_with(&words(line, &image), input.as_bytes());
        assert_eq!(ended.code, 1, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(&attached), "{line}: {}", ended.stderr);
        assert!(std::fs::read(&path).expect("the image") == before, "{line}");
    }
    let served = ugeom(&["serve", "--rw", "--run", "true", &image]).failed(1);
    let expected = format!("ugeom: {image} {attached}: free it first; nothing was written\n");
    assert_eq!(served, expected);
    // Through the device itself all is as before.
    part(&["modify", "-i", "1", "-t", "efi", &over.text()]);
    assert!(std::fs::read(&path).expect("the image") != before);
}

/// losetup(8) takes an image that is locked, so the writer of the device looks at the lock.
#[test]
fn a_loop_device_over_an_image_that_is_written_to_is_not_written_to() {
    let (_folder, path) = disks::empty_image(8 << 20);
    let image = disks::text(&path);
    ugeom(&["part", "create", "-s", "gpt", &image]).quiet();
    let own = tempfile::tempdir().expect("a folder");
    let mut served = Served::start(own, &image, &["--rw"]);
    let Some(over) = LoopDevice::over(&path, &[]) else { return };
    let device = over.text();
    let locked = "another program has it open and lets no other write (it is locked)";
    let expected = format!("ugeom: {device}: its file {image}: {locked}\n");
    for line in ["serve --rw --run true IMAGE", "part add -t efi IMAGE"] {
        assert_eq!(ugeom(&words(line, &device)).failed(1), expected, "{line}");
    }
    assert_eq!(ugeom(&["show", &device]).code, 0, "reading is harmless");
    served.signal("-TERM");
    // Two devices may stand on two parts of one image.
    let Some(beside) = LoopDevice::over(&path, &["--offset", "4194304"]) else { return };
    let held = ["serve", "--rw", &device, "--no-taste", "--run"];
    let inner = format!("{UGEOM} serve --rw {} --no-taste --run true", beside.text());
    assert_eq!(ugeom(&[&held[..], &[&inner]].concat()).code, 0);
}

/// The data of a VMDK image may be in files beside it.
#[test]
fn an_extent_behind_a_loop_device_is_not_written_to() {
    let Some(qemu_img) = ugeom_testkit::program("qemu-img") else {
        return;
    };
    let kinds = [
        ("monolithicFlat", "disk-flat.vmdk"),
        ("twoGbMaxExtentFlat", "disk-f001.vmdk"),
        ("twoGbMaxExtentSparse", "disk-s001.vmdk"),
    ];
    for (kind, name) in kinds {
        let folder = tempfile::tempdir().expect("a folder");
        let image = disks::at(&folder, "disk.vmdk");
        let options = format!("subformat={kind}");
        let making = ["create", "-q", "-f", "vmdk", "-o", &options, &image, "8M"];
        other(qemu_img.clone(), &making);
        let extent = folder.path().join(name);
        let before = std::fs::read(&extent).expect("the extent");
        let Some(over) = LoopDevice::over(&extent, &[]) else {
            return;
        };
        let attached = format!("{name} is attached to {}", over.text());
        let ended = ugeom_with(&words("write --destroy IMAGE", &image), &[7; 512]);
        assert_eq!(ended.code, 1, "{kind}: {}", ended.stderr);
        assert!(ended.stderr.contains(&attached), "{kind}: {}", ended.stderr);
        let served = ugeom(&["serve", "--rw", "--run", "true", &image]).failed(1);
        assert!(served.contains(&attached), "{kind}: {served}");
        let after = std::fs::read(&extent).expect("the extent");
        assert!(after == before, "{kind}");
        // Reading is harmless.
        assert_eq!(ugeom(&["show", &image]).code, 0, "{kind}");
    }
}

#[test]
fn a_mounted_image_is_not_written_to_with_the_flags_that_overwrite() {
    let Some(disk) = Loop::new() else { return };
    let Some(place) = disk.mount() else { return };
    let mounted = format!("is mounted at {}", place.display());
    let before = std::fs::read(&disk.image).expect("the image");
    for (line, input) in WRITERS.iter().filter(|(line, _)| !line.contains("@p1")) {
        let ended = ugeom_with(&words(line, &disk.image), input.as_bytes());
        assert_eq!(ended.code, 1, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(&mounted), "{line}: {}", ended.stderr);
        let after = std::fs::read(&disk.image).expect("the image");
        assert!(after == before, "{line}");
    }
}

#[test]
fn no_result_goes_into_an_image_that_is_in_use() {
    // Nothing is known of its content, which is in the way of results otherwise.
    let (_folder, path, before) = disks::random_image(1 << 20, 7);
    let image = disks::text(&path);
    let Some(over) = LoopDevice::over(&path, &[]) else { return };
    let attached = format!("is attached to {}", over.text());
    let results = [
        "lab cached --force --json IMAGE",
        "raidtest genfile -f -s 1m -n 9 IMAGE",
        "run --name=x --ioengine=null --size=4k --output=IMAGE",
    ];
    for line in results {
        let ended = ugeom(&words(line, &image));
        assert_ne!(ended.code, 0, "{line}");
        assert!(ended.stderr.contains(&attached), "{line}: {}", ended.stderr);
    }
    let shell = format!("'{UGEOM}' read md:1m 1<>'{image}'");
    let read = run(command("sh", &["-c", &shell]), b"");
    assert_eq!(read.code, 1, "{}", read.stderr);
    has(&read.stderr, &format!("stdout {attached}"));
    assert!(std::fs::read(&path).expect("the image") == before);
}

#[test]
fn every_scheduler_is_tried_and_the_first_is_put_back_also_after_ctrl_c() {
    let Some(disk) = Loop::new() else { return };
    let name = disk.device.trim_start_matches("/dev/");
    let path = format!("/sys/block/{name}/queue/scheduler");
    let scheduler = || std::fs::read_to_string(&path).unwrap_or_default();
    let before = scheduler();
    let writable = std::fs::File::options().write(true).open(&path).is_ok();
    if !writable || before.split_whitespace().count() < 2 {
        let reason = format!("{path} ({}) cannot be changed here", before.trim());
        return ugeom_testkit::skip(&reason);
    }
    let lab = words_of("lab engines --schedulers --depth 4 --size 2m");
    let whole = [
        &lab[..],
        &["--budget", "1s", "--all", "--destroy", &disk.device],
    ]
    .concat();
    let report = ugeom(&whole).text();
    for one in before.split_whitespace() {
        assert!(
            report.contains(one.trim_matches(['[', ']'])),
            "{one}: {report}"
        );
    }
    assert_eq!(scheduler(), before);

    let endless = [&lab[..], &["--destroy", &disk.device]].concat();
    let mut child = command(UGEOM, &endless).spawn().expect("it starts");
    // Until another one is set, or it has ended, which would be wrong.
    while scheduler() == before && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    other("kill", &["-INT", &child.id().to_string()]);
    let ended = end(child);
    assert_eq!(ended.code, 130, "{ended:?}");
    assert_eq!(scheduler(), before);
}

/// A FUSE server that is stopped, and a mount whose source is a path in it. Dropping it lets the
/// server end.
struct Unanswered {
    folder: tempfile::TempDir,
    server: Child,
}

impl Unanswered {
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            ugeom_testkit::skip("only root mounts without /etc/fstab");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| disks::at(&folder, name);
        let (files, other_mount) = (path("files"), path("other"));
        std::fs::create_dir(&files).expect("a folder");
        std::fs::create_dir(&other_mount).expect("a folder");
        let mut serve = command(UGEOM, &["serve", "md:1m", "--fuse", &files]);
        serve.stdout(Stdio::null()).stderr(Stdio::null());
        let server = serve.spawn().expect("a server");
        let made = Self { folder, server };
        wait_for("the server's file", || {
            Path::new(&files).join("md0").exists()
        });
        // The server is asked for a name that it does not have each time.
        let source = format!("{files}/none");
        other("mount", &["-t", "tmpfs", &source, &other_mount]);
        other("kill", &["-STOP", &made.server.id().to_string()]);
        Some(made)
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let other_mount = disks::at(&self.folder, "other");
        let server = self.server.id().to_string();
        run(command("kill", &["-CONT", &server]), b"");
        run(command("umount", &[&other_mount]), b"");
        run(command("kill", &["-TERM", &server]), b"");
        // Its exit code is of no interest here.
        let _ = self.server.wait();
    }
}

#[test]
fn a_file_system_that_does_not_answer_stops_no_write_elsewhere() {
    let Some(_unanswered) = Unanswered::new() else {
        return;
    };
    let (_folder, image) = disks::empty_image(1 << 20);
    let image = disks::text(&image);
    let ended = ugeom_with(&["write", &image], b"data");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(&std::fs::read(&image).expect("the image")[..4], b"data");
}
