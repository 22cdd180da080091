//! Wrong targets: each gives a clear error and the right exit code, and never a panic or a hang.

use crate::disks;
use crate::run::{UGEOM, command, end, has, run, ugeom, ugeom_with};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use ugeom_testkit::begins;

#[test]
fn an_empty_file_is_refused() {
    let (_folder, path) = disks::empty_image(0);
    let path = disks::text(&path);
    for name in ["show", "diskinfo", "read"] {
        let error = ugeom(&[name, &path]).failed(1);
        assert_eq!(error, format!("ugeom: {path}: is empty: 0 bytes\n"));
    }
}

#[test]
fn what_is_no_disk_is_called_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = disks::text(folder.path());
    let error = ugeom(&["show", &path]).failed(1);
    assert_eq!(
        error,
        format!("ugeom: {path}: is a directory, not an image or a block device\n")
    );
    let error = ugeom(&["show", "/dev/null"]).failed(1);
    begins(&error, "ugeom: /dev/null: is a character device, not ");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = ugeom(&["show", "/no/such/disk"]).failed(1);
    assert_eq!(error, "ugeom: /no/such/disk: No such file or directory\n");
}

#[test]
fn every_command_names_a_missing_file_in_the_same_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let (missing, here) = ("/no/such/x", disks::text(folder.path()));
    let map = format!("{here}/no/x");
    let operands: &[&[&str]] = &[
        &["show", missing],
        &["read", missing],
        &["write", missing],
        &["diskinfo", missing],
        &["part", "show", missing],
        &["part", "search", missing],
        &["lab", "sweep", missing],
        &["lab", "cached", missing],
        &["lab", "engines", missing],
        &["compare", missing],
        &["report", missing],
        &["ministat", missing],
        &["run", missing],
        &["show", "--kernel", missing],
    ];
    for arguments in operands {
        let error = ugeom(arguments).failed(1);
        let last = error.lines().last().unwrap_or_default();
        assert_eq!(
            last, "ugeom: /no/such/x: No such file or directory",
            "{arguments:?}"
        );
    }
    let outputs: &[&[&str]] = &[
        &["report", missing, "-o", &map],
        &["lab", "layers", "--json", &map],
        &["show", &format!("md:1m | crash:log={map}")],
    ];
    for arguments in outputs {
        let error = ugeom(arguments).failed(1);
        let form = format!("ugeom: {map}: No such file or directory");
        assert!(error.contains(&form), "{arguments:?}: {error}");
    }
}

#[test]
fn a_missing_file_beside_one_whose_name_it_begins_with_is_named() {
    let (_folder, path) = disks::partitioned_image(2048, 63, 100);
    let missing = format!("{}x", disks::text(&path));
    let error = ugeom(&["show", &missing]).failed(2);
    let text = "x: no such file or directory, and disk.img has no provider `x`";
    has(&error, &disks::text(&path));
    has(&error, text);
}

#[test]
fn a_wrong_address_lists_the_right_ones() {
    let (_folder, path) = disks::partitioned_image(2048, 63, 100);
    let error = ugeom(&["show", &format!("{}@s2", disks::text(&path))]).failed(2);
    has(&error, "there is no provider `s2` or `disk.imgs2`");
    has(&error, "the providers are: disk.img, disk.imgs1");
}

#[test]
fn an_image_that_is_no_whole_sectors_is_read_to_its_last_byte_with_a_warning() {
    let (_folder, path) = disks::empty_image(1_000_300);
    std::fs::write(&path, vec![7; 1_000_300]).expect("an image");
    let target = disks::text(&path);
    let warning = "not a multiple of its sector size, 512: the last sector is padded with 148 zero";
    let shown = ugeom(&["show", &target]);
    let tree = shown.text();
    has(&tree, "padded with 148 zero bytes");
    let read = ugeom(&["read", &target]);
    has(&read.stderr, warning);
    let mut expected = vec![7; 1_000_300];
    expected.resize(1_000_448, 0);
    assert!(read.stdout == expected);
    let info = ugeom(&["diskinfo", &target]);
    has(&info.text(), "1000448");
    has(&info.stderr, warning);
    let direct = format!("{target}?direct=1");
    for writing in [
        &["part", "create", "-s", "mbr", &target][..],
        &["serve", &direct, "--rw", "--run", "true"],
    ] {
        let error = ugeom(writing).failed(1);
        has(&error, "make no whole sector of 512");
    }
}

#[test]
fn a_table_that_cannot_be_used_is_said_and_the_rest_is_shown() {
    let (_folder, path) = disks::partitioned_image(2048, 1, 2047);
    let mut image = std::fs::read(&path).expect("the image");
    image[450] = 0xee;
    std::fs::write(&path, &image).expect("the image");
    let shown = ugeom(&["show", &disks::text(&path)]);
    assert_eq!(shown.code, 0);
    assert_eq!(shown.text().lines().count(), 2);
    let start = "ugeom: warning: GPT on disk.img: the MBR in sector 0 is a protective one, but";
    assert!(shown.stderr.starts_with(start), "{}", shown.stderr);
}

#[test]
fn a_label_cannot_speak_to_the_terminal() {
    let Some(sgdisk) = ugeom_testkit::program("sgdisk") else { return };
    let (_folder, path) = disks::empty_image(1 << 20);
    let path = disks::text(&path);
    let name = "--change-name=1:\u{1b}[31mred\u{202e}";
    crate::run::other(sgdisk, &["--new=1:64:128", name, &path]);
    let tree = ugeom(&["show", &path]).quiet();
    has(&tree, "\\x1b[31mred\\u{202e}");
    assert!(!tree.contains(['\u{1b}', '\u{202e}']), "{tree:?}");
}

#[test]
fn an_image_that_shrinks_while_it_is_read_is_an_error_that_says_so() {
    let (_folder, path, content) = disks::random_image(32 << 20, 9);
    let mut reader = command(UGEOM, &["read", &disks::text(&path)]);
    let mut child = reader.spawn().expect("it starts");
    // The pipe holds 64 KiB and the program reads at most a few MiB ahead of it.
    let mut first = vec![0; 1 << 20];
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut first).expect("the first MiB");
    assert!(first == content[..1 << 20]);
    File::options()
        .write(true)
        .open(&path)
        .and_then(|f| f.set_len(2 << 20))
        .expect("shrinks");
    let ended = end(child);
    assert_eq!(ended.code, 1);
    let shorter = "the file ends here: it has become shorter since it was opened";
    has(&ended.stderr, shorter);
    has(&ended.stderr, "of disk.img: ");
    assert!(
        content[1 << 20..].starts_with(&ended.stdout),
        "what came before the fault is right"
    );
}

#[test]
fn a_second_writer_is_kept_out_while_the_first_writes() {
    let (_folder, path) = disks::empty_image(64 << 20);
    let target = disks::text(&path);
    let mut first = command(UGEOM, &["write", &target])
        .spawn()
        .expect("it starts");
    let mut stdin = first.stdin.take().expect("a pipe");
    // More than the pipe holds: when this returns the first writer has begun.
    stdin
        .write_all(&vec![1; 4 << 20])
        .expect("the first writer reads");
    let second = ugeom_with(&["write", &target], b"x").failed(1);
    let expected =
        format!("ugeom: {target}: another program has it open for writing (it is locked)\n");
    assert_eq!(second, expected);
    let beside = ugeom(&["diskinfo", &target]);
    assert_eq!(beside.text(), "disk.img\t512\t67108864\t131072\t0\t0\n");
    has(&beside.stderr, "its data may change while it is read");
    drop(stdin);
    assert_eq!(end(first).code, 0);
    ugeom_with(&["write", &target], b"x").quiet();
}

#[test]
fn no_permission_is_said_with_the_path() {
    let (folder, path) = disks::empty_image(1 << 20);
    let target = disks::text(&path);
    let denied = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(&path, denied).expect("permissions");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("permissions");
    let Some(command) = unprivileged(&[UGEOM, "show", &target]) else { return };
    let error = run(command, b"").failed(1);
    assert_eq!(error, format!("ugeom: {target}: Permission denied\n"));
}

#[test]
fn threads_that_cannot_be_started_are_an_error_and_not_a_panic() {
    if ugeom_testkit::program("prlimit").is_none() {
        return;
    }
    let job = "run --name=j --filename=md:1m --size=1m --rw=read";
    for command in [
        &format!("{job} --numjobs=3") as &str,
        &format!("{job} --ioengine=guasi"),
        "lab layers --budget 1s",
        "lab scaling --workers 1,2 --budget 1s",
        "lab engines --depth 4 --size 1m --budget 1s",
        "serve md:1m --nbd tcp:127.0.0.1:0 --run true",
    ] {
        let mut arguments = vec!["prlimit", "--nproc=1", UGEOM];
        arguments.extend(command.split(' '));
        let Some(mut program) = unprivileged(&arguments) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), open).expect("permissions");
        program.current_dir(folder.path());
        let ended = run(program, b"");
        let told = &ended.stderr;
        assert_eq!(ended.code, 1, "{command}: {told}");
        assert!(!told.contains("panicked"), "{command}: {told}");
        let cause = "Resource temporarily unavailable";
        assert!(told.contains(cause), "{command}: {told}");
    }
}

/// A command run as a user without privileges; `None`, with a visible skip, where that is not
/// possible.
fn unprivileged(arguments: &[&str]) -> Option<Command> {
    let me = std::fs::metadata("/proc/self").expect("proc").uid();
    if me != 0 {
        return Some(command(arguments[0], &arguments[1..]));
    }
    let setpriv = ugeom_testkit::program("setpriv")?;
    let mut nobody: Vec<&str> = vec!["--reuid=65534", "--regid=65534", "--clear-groups"];
    let probe = run(
        command(&setpriv, &[&nobody[..], &[UGEOM, "-V"]].concat()),
        b"",
    );
    if probe.code != 0 {
        ugeom_testkit::skip("this is root, and no other user may start the program");
        return None;
    }
    nobody.extend(arguments);
    Some(command(setpriv, &nobody))
}
