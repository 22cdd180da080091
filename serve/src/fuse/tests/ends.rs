//! Permissions, files that come and go, and the end of a mount.

use super::*;
use std::time::Instant;
use ugeom_stack::Delta;

#[test]
fn nobody_writes_to_a_mount_that_is_read_only() {
    let only_reads = |settings: &mut Settings| settings.writable = false;
    each_transport("md:1m", only_reads, |running| {
        let path = running.path("md0");
        assert_eq!(std::fs::read(&path).expect("data").len(), 1 << 20);
        let refused = OpenOptions::new().write(true).open(&path);
        let refused = refused.expect_err("a refusal").kind();
        assert_eq!(refused, ErrorKind::ReadOnlyFilesystem);
        let mode = std::fs::metadata(&path).expect("its facts").mode();
        assert_eq!(mode & 0o777, 0o400);
    });
}

#[test]
fn the_directory_holds_what_the_stack_has_and_nothing_else() {
    each_as_usual("md:1m | nop", |running| {
        assert_eq!(running.names(), ["md0", "md0.nop"]);
        let missing = File::open(running.path("md1")).expect_err("no file");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        for refused in [
            File::create_new(running.path("new")).map(drop),
            std::fs::remove_file(running.path("md0")),
            std::fs::create_dir(running.path("new")),
            std::fs::rename(running.path("md0"), running.path("new")),
        ] {
            let kind = refused.expect_err("a refusal").kind();
            assert_eq!(kind, ErrorKind::PermissionDenied);
        }
        assert_eq!(running.names(), ["md0", "md0.nop"]);
    });
}

#[test]
fn a_file_whose_writer_would_destroy_a_named_layer_is_only_read() {
    each_as_usual("md:4m | cache:1m", |running| {
        let below = running.path("md0");
        let refused = OpenOptions::new().write(true).open(&below);
        let error = refused.expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        let log = running.log.lock().expect("the log").join("\n");
        assert!(log.contains("would destroy md0.cache"), "{log}");
        assert_eq!(std::fs::read(&below).expect("data").len(), 4 << 20);
        let top = OpenOptions::new()
            .write(true)
            .open(running.path("md0.cache"));
        top.expect("the layer is there");
    });
}

#[test]
fn who_may_open_what_follows_geom() {
    each_as_usual("md:1m", |running| {
        let provider = running.stack.tree().provider("md0").expect("md0").id;
        let alone = Delta {
            exclusive: 1,
            ..Delta::READ
        };
        let held = running
            .stack
            .open(provider, alone)
            .expect("md0, exclusively");
        let refused = OpenOptions::new().write(true).open(running.path("md0"));
        let error = refused.expect_err("a refusal");
        let number = error.raw_os_error().map(Errno::from_raw_os_error);
        assert!(matches!(number, Some(Errno::PERM | Errno::BUSY)), "{error}");
        let log = running.log.lock().expect("the log").join("\n");
        assert!(log.contains("md0 cannot be opened"), "{log}");
        drop(held);
        running.open("md0");
    });
}

#[test]
fn partitions_come_and_go_with_the_table() {
    each_as_usual("md:1m", |running| {
        assert_eq!(running.names(), ["md0"]);
        let disk = running.open("md0");
        disk.write_all_at(&mbr(64, 1000), 0).expect("a table");
        drop(disk);
        assert_eq!(running.names(), ["md0", "md0s1"]);
        let partition = running.open("md0s1");
        partition.write_all_at(b"inside", 0).expect("data");
        // While a partition is open for writing, its disk cannot be.
        assert!(
            OpenOptions::new()
                .write(true)
                .open(running.path("md0"))
                .is_err()
        );
        drop(partition);
        let disk = running.open("md0");
        let mut found = [0; 6];
        disk.read_exact_at(&mut found, 64 * 512).expect("data");
        assert_eq!(&found, b"inside");
        disk.write_all_at(&[0; 512], 0).expect("no table");
        drop(disk);
        assert_eq!(running.names(), ["md0"]);
        let gone = File::open(running.path("md0s1")).expect_err("no file");
        assert_eq!(gone.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_server_that_stops_leaves_an_empty_directory() {
    each_as_usual("md:1m", |mut running| {
        running
            .open("md0")
            .write_all_at(&[1; 512], 0)
            .expect("data");
        running.stop();
        assert_eq!(running.names(), [""; 0]);
        let log = running.log.lock().expect("the log").join("\n");
        assert_eq!(log, "");
        assert_eq!(running.ended.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_mount_that_is_in_use_is_taken_away_all_the_same() {
    each_as_usual("md:1m | nop:delay=1ms", |mut running| {
        let file = Arc::new(running.open("md0.nop"));
        let clients = (0..4_u64).map(|number| {
            let file = Arc::clone(&file);
            std::thread::spawn(move || {
                let writes = || file.write_all_at(&[7; 4096], number * 4096);
                while writes().is_ok() {}
            })
        });
        let clients: Vec<_> = clients.collect();
        std::thread::sleep(Duration::from_millis(20));
        running.stop();
        assert_eq!(running.names(), [""; 0]);
        // The clients end, since what they have open fails.
        for client in clients {
            client.join().expect("a client");
        }
        let dead = file.read_at(&mut [0; 1], 0).expect_err("no server");
        assert_eq!(dead.raw_os_error(), Some(Errno::NOTCONN.raw_os_error()));
        let log = running.log.lock().expect("the log").join("\n");
        assert!(log.contains("was still in use"), "{log}");
    });
}

#[test]
fn a_killed_writer_to_a_slow_device_ends_at_once() {
    each_as_usual("md:1m | nop:delay=600s,wdelay=1", |mut running| {
        let path = running.path("md0.nop");
        let mut writer = std::process::Command::new("dd")
            .args(["if=/dev/zero", "bs=4k", "count=1", "conv=notrunc"])
            .arg(format!("of={}", path.display()))
            .spawn()
            .expect("a writer");
        // Once it has the file open and sleeps, it waits for its write.
        let place = PathBuf::from(format!("/proc/{}", writer.id()));
        let waits = || {
            let state = std::fs::read_to_string(place.join("stat")).unwrap_or_default();
            let sleeps = state.contains(") S ") || state.contains(") D ");
            let open = std::fs::read_dir(place.join("fd")).is_ok_and(|mut it| {
                it.any(|fd| {
                    let target = fd.and_then(|fd| std::fs::read_link(fd.path()));
                    target.is_ok_and(|it| it == path)
                })
            });
            open && sleeps
        };
        while !waits() {
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.kill().expect("killed");
        let began = Instant::now();
        writer.wait().expect("its end");
        assert!(began.elapsed() < Duration::from_secs(120));
        running.stop();
        assert!(began.elapsed() < Duration::from_secs(300));
    });
}
