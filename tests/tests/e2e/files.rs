//! `ugeom serve --fuse` beside the programs that use files: dd, fio, mkfs and fsck on a loop
//! device, fsx, fusermount3.

use crate::disks;
use crate::run::{PATIENCE, UGEOM, command, end_within, has, other, run, ugeom, words_of};
use crate::serve::noise;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use ugeom_testkit::{LoopDevice, program, skip};

/// How kernel and server talk.
const TRANSPORTS: [&str; 2] = ["classic", "uring"];

/// A server that runs, with a folder for its mount and its image.
pub struct Mounted {
    child: Child,
    mount: PathBuf,
    folder: TempDir,
}

impl Mounted {
    /// Serves a target as files; `None`, after saying why, where this machine cannot.
    pub fn start(folder: TempDir, target: &str, arguments: &[&str]) -> Option<Self> {
        let mount = folder.path().join("mnt");
        std::fs::create_dir_all(&mount).expect("a mount point");
        let place = disks::text(&mount);
        let mut all = vec!["serve", target, "--fuse", &place];
        all.extend(arguments);
        let mut child = command(UGEOM, &all).spawn().expect("a server");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        if line.trim() == place {
            return Some(Self {
                child,
                mount,
                folder,
            });
        }
        let ended = child.wait_with_output().expect("its end");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(lacks_mounts(&said), "{line}{said}");
        skip(&format!("{arguments:?}: {}", said.trim()));
        None
    }

    pub fn file(&self, name: &str) -> String {
        disks::text(&self.mount.join(name))
    }

    pub fn signal(&mut self, signal: &str) -> std::process::ExitStatus {
        other("kill", &[signal, &self.child.id().to_string()]);
        self.child.wait().expect("it ends")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It may have ended already; a mount must not be left behind either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
        run(command("umount", &["-l", &disks::text(&self.mount)]), b"");
    }
}

/// Whether an error says that this machine cannot mount.
pub fn lacks_mounts(said: &str) -> bool {
    let lacks = ["is not available", "mounting ", "/dev/fuse"];
    lacks.iter().any(|it| said.contains(it))
}

#[test]
fn dd_reads_a_partition_of_an_image() {
    let Some(sfdisk) = program("sfdisk") else { return };
    for transport in TRANSPORTS {
        let (folder, path) = disks::empty_image(8 << 20);
        let image = disks::text(&path);
        std::fs::write(&path, noise(1, 8 << 20)).expect("an image");
        let script = b"label: dos\n2048,4096,a5\n8192,1024,83\n";
        assert_eq!(run(command(&sfdisk, &["-q", &image]), script).code, 0);
        let arguments = ["--fuse-transport", transport];
        let Some(mut served) = Mounted::start(folder, &image, &arguments) else { continue };
        let bytes = std::fs::read(&path).expect("the image");
        let name = path.file_name().and_then(|it| it.to_str()).expect("a name");
        for (slice, start, sectors) in [("s1", 2048, 4096), ("s2", 8192, 1024)] {
            let input = format!("if={}", served.file(&format!("{name}{slice}")));
            let expected = &bytes[start * 512..][..sectors * 512];
            for size in ["bs=64k", "bs=512", "bs=1000"] {
                let found = other("dd", &[&input, size, "status=none"]);
                assert!(found == expected, "{slice} {size}");
            }
        }
        assert_eq!(served.signal("-TERM").code(), Some(0));
        let left = std::fs::read_dir(&served.mount).expect("a list").count();
        assert_eq!(left, 0, "the mount is gone");
    }
}

#[test]
fn fio_finds_what_it_has_written() {
    let Some(fio) = program("fio") else { return };
    for transport in TRANSPORTS {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["--rw", "--fuse-transport", transport];
        let Some(served) = Mounted::start(folder, "md:32m", &arguments) else { continue };
        let file = format!("--filename={}", served.file("md0"));
        for (engine, direct) in [("psync", "0"), ("libaio", "1"), ("io_uring", "1")] {
            let options = [
                "--name=blocks",
                &file,
                &format!("--ioengine={engine}"),
                &format!("--direct={direct}"),
                "--rw=randwrite",
                "--bsrange=512-64k",
                "--bs_unaligned=0",
                "--blockalign=512",
                "--size=16m",
                "--iodepth=16",
                "--verify=crc32c",
                "--verify_fatal=1",
                "--verify_state_save=0",
                "--fallocate=none",
                "--thread",
            ];
            let ended = run(command(&fio, &options), b"");
            let said = format!("{}{}", ended.text(), ended.stderr);
            assert_eq!(ended.code, 0, "{transport} {engine}: {said}");
            assert!(!said.contains("verify:"), "{transport} {engine}: {said}");
        }
    }
}

#[test]
fn several_programs_use_a_file_at_a_time() {
    let Some(fio) = program("fio") else { return };
    for transport in TRANSPORTS {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["--rw", "--fuse-transport", transport];
        let target = "md:16m | nop:delay=1ms";
        let Some(served) = Mounted::start(folder, target, &arguments) else { continue };
        let file = format!("--filename={}", served.file("md0.nop"));
        let options = format!(
            "--name=several {file} --ioengine=io_uring --direct=1 --rw=randwrite --bs=4k --size=2m \
             --offset_increment=2m --numjobs=4 --iodepth=8 --verify=crc32c --verify_fatal=1 \
             --verify_state_save=0 --fallocate=none"
        );
        let options = words_of(&options);
        let ended = run(command(&fio, &options), b"");
        assert_eq!(ended.code, 0, "{}{}", ended.text(), ended.stderr);
    }
}

/// Makes a file system on a loop device over a file of a mount, fills it, and checks it, as is
/// and after it was mounted again.
fn file_system(size: &str, make: &[&str], check: &[&str]) {
    let (Some(maker), Some(checker)) = (program(make[0]), program(check[0])) else { return };
    for transport in TRANSPORTS {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["--rw", "--fuse-transport", transport];
        let target = format!("md:{size}");
        let Some(served) = Mounted::start(folder, &target, &arguments) else { continue };
        let Some(device) = LoopDevice::over(served.file("md0").as_ref(), &["--direct-io=on"])
        else {
            return;
        };
        other(&maker, &[&make[1..], &[&device.text()]].concat());
        let place = served.folder.path().join("inside");
        std::fs::create_dir(&place).expect("a folder");
        let place = disks::text(&place);
        let mounted = run(command("mount", &[&device.text(), &place]), b"");
        if mounted.code != 0 {
            return skip(&format!("no mount: {}", mounted.stderr.trim()));
        }
        let path = |number: u64| Path::new(&place).join(format!("file{number}"));
        for number in 0..20 {
            let data = noise(number, 100_000 + 1000 * number as usize);
            std::fs::write(path(number), data).expect("a file");
        }
        std::fs::remove_file(path(3)).expect("no file");
        other("umount", &[&place]);
        other(&checker, &[&check[1..], &[&device.text()]].concat());
        other("mount", &[&device.text(), &place]);
        for number in (0..20).filter(|&number| number != 3) {
            let found = std::fs::read(path(number)).expect("a file");
            assert!(found == noise(number, 100_000 + 1000 * number as usize));
        }
        // Gives what is free back, through the loop device: holes.
        other("fstrim", &[&place]);
        other("umount", &[&place]);
        other(&checker, &[&check[1..], &[&device.text()]].concat());
    }
}

#[test]
fn ext4_lives_on_a_loop_device_over_a_file() {
    let make = ["mkfs.ext4", "-q", "-F"];
    file_system("64m", &make, &["e2fsck", "-f", "-n"]);
}

#[test]
fn xfs_lives_on_a_loop_device_over_a_file() {
    let make = ["mkfs.xfs", "-q", "-f"];
    file_system("320m", &make, &["xfs_repair", "-n"]);
}

#[test]
fn btrfs_lives_on_a_loop_device_over_a_file() {
    let make = ["mkfs.btrfs", "-q", "-f"];
    let check = ["btrfs", "check", "--readonly", "--force"];
    file_system("256m", &make, &check);
}

/// Linux 6.6 and later map files that are read and written past the page cache.
fn maps_files() -> bool {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = text.split('.').map(|it| it.trim().parse::<u32>().ok());
    let release = (numbers.next().flatten(), numbers.next().flatten());
    release >= (Some(6), Some(6))
}

#[test]
fn fsx_finds_no_difference() {
    let Some(fsx) = program("fsx") else { return };
    for transport in TRANSPORTS {
        let folder = tempfile::tempdir().expect("a folder");
        let rules = folder.path().join("fsx.toml");
        // A device's size is what it is.
        let mut text = "blockmode = true\n[weights]\ntruncate = 0\nread = 10\nwrite = 10\n\
            sendfile = 2\ncopy_file_range = 2\nposix_fadvise = 0.1\npunch_hole = 1\n\
            fsync = 0.1\nfdatasync = 0.1\n"
            .to_owned();
        text += if maps_files() {
            // Few reads by mapping: fsx 0.3 never unmaps those. Each makes all later requests
            // slower, and a process can have 65,530 (vm.max_map_count).
            "mapread = 0.1\nmapwrite = 2\ninvalidate = 0.1\n"
        } else {
            "mapread = 0\nmapwrite = 0\n"
        };
        std::fs::write(&rules, text).expect("its rules");
        let (kept, rules) = (disks::text(folder.path()), disks::text(&rules));
        let arguments = ["--rw", "--fuse-transport", transport];
        let Some(served) = Mounted::start(folder, "md:256k", &arguments) else { continue };
        let file = served.file("md0");
        let count = std::env::var("UGEOM_FSX_OPERATIONS").unwrap_or("10000".to_owned());
        let options = [
            "-q", "-f", &rules, "-P", &kept, "-N", &count, "-S", "7", &file,
        ];
        let child = command(&fsx, &options).spawn().expect("fsx");
        // An operation takes a third of a millisecond on an idle machine.
        let longer = Duration::from_millis(5) * count.parse().expect("a number");
        let ended = end_within(child, PATIENCE + longer);
        assert_eq!(ended.code, 0, "{}{}", ended.text(), ended.stderr);
    }
}

#[test]
fn a_killed_server_leaves_no_mount_and_no_program_hangs() {
    for transport in TRANSPORTS {
        let (folder, path) = disks::empty_image(4 << 20);
        let image = disks::text(&path);
        let arguments = ["--rw", "--fuse-transport", transport];
        let Some(mut served) = Mounted::start(folder, &image, &arguments) else { continue };
        let name = path.file_name().and_then(|it| it.to_str()).expect("a name");
        let open = std::fs::OpenOptions::new()
            .write(true)
            .open(served.file(name));
        let file = open.expect("an open file");
        let writer = std::thread::spawn(move || {
            let mut kept = 0_u64;
            // Writes that fsync(2) has acknowledged must be in the image.
            while file.write_all_at(&(kept + 1).to_ne_bytes(), 0).is_ok()
                && file.sync_data().is_ok()
            {
                kept += 1;
            }
            kept
        });
        std::thread::sleep(Duration::from_millis(200));
        served.signal("-KILL");
        let kept = writer.join().expect("a writer that ends");
        let bytes = std::fs::read(&path).expect("the image");
        let found = u64::from_ne_bytes(*bytes.first_chunk().expect("8 bytes"));
        assert!(found >= kept, "{found} instead of {kept}");
        // Neither the lock nor the mount is in the way of the next one.
        let place = disks::text(&served.mount);
        let mut again = vec!["serve", &image, "--fuse", &place, "--run", "ls $mnt"];
        again.extend(arguments);
        let again = ugeom(&again);
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert_eq!(again.text().trim(), name);
        assert_eq!(std::fs::read_dir(&served.mount).expect("a list").count(), 0);
    }
}

/// Programs that skip zeroes where they have truncated a file leave no old data in a copy.
#[test]
fn a_copy_into_a_file_is_complete_or_fails() {
    let mut source = vec![0; 4 << 20];
    source[2_000_000..2_004_000].copy_from_slice(&noise(2, 4000));
    let copies = [
        ("cp", &["--sparse=auto"][..]),
        ("cp", &["--sparse=always"]),
        ("dd", &["bs=64k", "conv=sparse", "status=none"]),
        ("nbdcopy", &[]),
        ("qemu-img", &["convert", "-f", "raw", "-O", "raw"]),
    ];
    for (name, options) in copies {
        let Some(found) = program(name) else { continue };
        for is_new in [true, false] {
            let (folder, path) = disks::empty_image(4 << 20);
            let from = disks::at(&folder, "source");
            let sparse = std::fs::File::create(&from).expect("a file");
            sparse.set_len(source.len() as u64).expect("a size");
            sparse
                .write_all_at(&source[2_000_000..2_004_000], 2_000_000)
                .expect("data");
            if !is_new {
                std::fs::write(&path, noise(1, 4 << 20)).expect("an image");
            }
            let image = disks::text(&path);
            let options_of_server = ["--rw", "--no-taste"];
            let Some(mut served) = Mounted::start(folder, &image, &options_of_server) else {
                return;
            };
            let to = served.file("disk.img");
            let (from, to) = match name {
                "dd" => (format!("if={from}"), format!("of={to}")),
                _ => (from, to),
            };
            let ended = run(command(&found, &[options, &[&from, &to]].concat()), b"");
            assert_eq!(served.signal("-TERM").code(), Some(0));
            let bytes = std::fs::read(&path).expect("the image");
            match is_new {
                true => assert!(
                    ended.code == 0 && bytes == source,
                    "{name}: {}",
                    ended.stderr
                ),
                false => {
                    assert!(ended.code != 0, "{name} skips zeroes");
                    assert!(bytes == noise(1, 4 << 20), "{name}");
                }
            }
        }
    }
}

#[test]
fn who_is_not_root_mounts_through_fusermount3() {
    let (Some(setpriv), Some(_)) = (program("setpriv"), program("fusermount3")) else { return };
    let script = "set -e; d=$(mktemp -d); trap 'rmdir \"$d\"' EXIT; \
        \"$0\" serve md:1m --rw --fuse \"$d\" --run 'stat -c \"%n %s %a\" \"$mnt\"/md0; \
        echo data > \"$mnt\"/md0; head -c 4 \"$mnt\"/md0'; ls \"$d\"";
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let shell = command(
        setpriv,
        &[&nobody[..], &["sh", "-c", script, UGEOM]].concat(),
    );
    let ended = run(shell, b"");
    if ended.code != 0
        && [
            "setresuid",
            "not found",
            "Permission denied",
            "not permitted",
        ]
        .iter()
        .any(|it| ended.stderr.contains(it))
    {
        return skip(ended.stderr.trim());
    }
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let text = ended.text();
    has(&text, "/md0 1048576 600\n");
    assert!(text.ends_with("data"), "{text}");
}

#[test]
fn one_server_has_both_and_a_command_gets_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let mount = folder.path().join("mnt");
    std::fs::create_dir(&mount).expect("a mount point");
    let (socket, place) = (
        format!("unix:{}", folder.path().join("nbd").display()),
        disks::text(&mount),
    );
    let command = "echo \"$uri $mnt\"; stat -c %s \"$mnt\"/md0.nop";
    let arguments = [
        "serve",
        "-v",
        "md:3m | nop",
        "--nbd",
        &socket,
        "--fuse",
        &place,
        "--run",
        command,
    ];
    let ended = ugeom(&arguments);
    if ended.stderr.contains("mounting ") {
        return skip(ended.stderr.trim());
    }
    let path = folder.path().join("nbd");
    let expected = format!("nbd+unix:///?socket={} {place}\n3145728\n", path.display());
    assert_eq!(
        (ended.code, ended.text()),
        (0, expected),
        "{}",
        ended.stderr
    );
    has(&ended.stderr, "FUSE over ");
    assert_eq!(std::fs::read_dir(&mount).expect("a list").count(), 0);
}

#[test]
fn what_cannot_be_mounted_on_is_said_in_plain_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| disks::at(&folder, name);
    let refusal = |place: &str| ugeom(&["serve", "md:1m", "--fuse", place]).failed(1);
    let error = refusal(&path("none"));
    has(&error, "there is no such directory");
    std::fs::write(path("file"), b"x").expect("a file");
    let error = refusal(&path("file"));
    has(&error, "it is not a directory");
    let error = refusal(&disks::text(folder.path()));
    has(&error, "it is not empty");
    let error = refusal("/proc");
    has(&error, "is mounted here already");
    let error = ugeom(&words_of(
        "serve md:1m --nbd tcp:localhost:0 --fuse-threads 2",
    ));
    let error = error.failed(2);
    has(&error, "--fuse");
    let wrong = words_of("serve md:1m --fuse /tmp --fuse-transport pigeon");
    let error = ugeom(&wrong).failed(2);
    has(&error, "classic");
}

#[test]
fn a_mount_that_is_taken_away_ends_the_server() {
    for transport in TRANSPORTS {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["--fuse-transport", transport];
        let Some(mut served) = Mounted::start(folder, "md:1m", &arguments) else { continue };
        served.child.stderr = None;
        other("umount", &[disks::text(&served.mount)]);
        let deadline = Instant::now() + Duration::from_secs(60);
        while served.child.try_wait().expect("its state").is_none() {
            assert!(Instant::now() < deadline, "it still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(served.child.wait().expect("its end").code(), Some(0));
    }
}

#[test]
fn cp_keeps_the_holes_of_an_open_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk.img");
    let file = std::fs::File::create(&path).expect("an image");
    file.set_len(64 << 20).expect("its size");
    file.write_all_at(&noise(1, 100_000), 3 << 20)
        .expect("data");
    file.write_all_at(&noise(2, 4096), (64 << 20) - 4096)
        .expect("data");
    let image = disks::text(&path);
    for transport in TRANSPORTS {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["--fuse-transport", transport];
        let Some(served) = Mounted::start(folder, &image, &arguments) else { continue };
        let copy = served.folder.path().join("copy");
        let (from, to) = (served.file("disk.img"), disks::text(&copy));
        other("cp", &["--sparse=auto", &from, &to]);
        assert!(std::fs::read(&copy).expect("a copy") == std::fs::read(&path).expect("data"));
        use std::os::unix::fs::MetadataExt;
        let blocks = |path: &Path| std::fs::metadata(path).expect("facts").blocks();
        assert!(blocks(&copy) <= blocks(&path) + 64, "{transport}");
        let open = std::fs::File::open(&from).expect("a file");
        let facts = open.metadata().expect("facts");
        assert_eq!((facts.len(), facts.blocks()), (64 << 20, blocks(&path)));
    }
}

#[test]
fn other_users_read_the_files_only_where_they_were_let_in() {
    let Some(setpriv) = program("setpriv") else { return };
    if other("id", &["-u"]) != b"0\n" {
        return skip("only root can become another user");
    }
    for (arguments, umask, reads) in [
        (&["--allow-other"][..], "022", true),
        (&["--allow-other"], "077", false),
        (&[], "022", false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        use std::os::unix::fs::PermissionsExt;
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).expect("others may enter");
        let mount = disks::at(&folder, "mnt");
        std::fs::create_dir(&mount).expect("a directory");
        let read = format!(
            "stat -c %a \"$mnt/md0\"; {} --reuid=65534 --clear-groups head -c1 \"$mnt/md0\"",
            disks::text(&setpriv)
        );
        let script = "umask $0; exec \"$@\"";
        let mut all = vec![
            "-c", script, umask, UGEOM, "serve", "md:1m", "--fuse", &mount,
        ];
        all.extend(arguments);
        all.extend(["--rw", "--run", &read]);
        let ended = run(command("sh", &all), b"");
        if lacks_mounts(&ended.stderr) {
            return skip(ended.stderr.trim());
        }
        assert_eq!(
            ended.code,
            i32::from(!reads),
            "{arguments:?}: {}",
            ended.stderr
        );
        let shown = if reads { "644\n\0" } else { "600\n" };
        assert_eq!(ended.text(), shown, "{arguments:?}");
    }
}

/// A server with files only, which no NBD client makes ask.
#[test]
fn a_medium_that_has_grown_has_its_new_size_and_its_new_bytes() {
    for transport in TRANSPORTS {
        let (folder, path) = disks::empty_image(1 << 20);
        let arguments = ["--rw", "--fuse-transport", transport];
        let target = format!("{} | nop", disks::text(&path));
        let Some(served) = Mounted::start(folder, &target, &arguments) else { continue };
        let name = path.file_name().and_then(|it| it.to_str()).expect("a name");
        let size = |name: &str| {
            let metadata = std::fs::metadata(served.file(name));
            metadata.expect("a file").len()
        };
        let top = format!("{name}.nop");
        assert_eq!((size(name), size(&top)), (1 << 20, 1 << 20));
        let image = std::fs::File::options().write(true).open(&path);
        image.expect("the image").set_len(2 << 20).expect("grows");
        // open(2) always asks, stat(2) from time to time.
        let file = std::fs::File::options()
            .write(true)
            .open(served.file(&top))
            .expect("opens");
        file.write_all_at(&[7; 512], (2 << 20) - 512)
            .expect("written to the new end");
        assert_eq!((size(name), size(&top)), (2 << 20, 2 << 20));
        drop(file);
        let bytes = std::fs::read(&path).expect("the image");
        assert_eq!(bytes[(2 << 20) - 512..], [7; 512]);
        let image = std::fs::File::options().write(true).open(&path);
        image.expect("the image").set_len(3 << 20).expect("grows");
        let end = Instant::now() + PATIENCE;
        while size(&top) != 3 << 20 {
            assert!(Instant::now() < end, "stat(2) reports {}", size(&top));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
