//! The class `nbd` on this server: a stack that stands on another.

use super::*;
use ugeom_machine::buffer::Buffer;
use ugeom_stack::{Channel, Command, Opened};

fn client_of(running: &Running) -> (Stack, Opened) {
    let socket = running.folder.path().join("s");
    let writable = TargetOptions::untasted().for_writing();
    let text = format!("nbd+unix:///md0?socket={}", socket.display());
    let target = open_target(&text, &writable).expect("a target");
    let opened = target.stack.open(target.top, Delta::READ_WRITE);
    (target.stack, opened.expect("open"))
}

fn check(channel: &mut Channel, opened: &Opened, at: u64, expected: u8) {
    let mut bytes = vec![0; 4096];
    channel.read(opened, at, &mut bytes).expect("read");
    assert!(bytes.iter().all(|&byte| byte == expected), "at {at}");
}

#[test]
fn a_stack_stands_on_another() {
    let running = serve("md:16m", |_| {});
    let (stack, opened) = client_of(&running);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (stack, opened) = (&stack, &opened);
            scope.spawn(move || {
                let mut channel = stack.channel(64).expect("a channel");
                let (mut sent, mut back) = (0_u64, 0);
                while back < 500 {
                    while sent < 500 {
                        let Some(draft) = channel.bio() else { break };
                        let buffer = Buffer::from_slice(&[(sent % 200) as u8 + 1; 4096]);
                        let at = (thread << 22) + (sent * 4096);
                        channel.submit(opened, draft.write(at, buffer));
                        sent += 1;
                    }
                    channel.wait(None);
                    while let Some(finished) = channel.finished() {
                        assert_eq!(finished.result(), Ok(4096));
                        channel.recycle(finished);
                        back += 1;
                    }
                }
                channel.flush(opened).expect("flushed");
                for number in 0..500 {
                    let at = (thread << 22) + number * 4096;
                    check(&mut channel, opened, at, (number % 200) as u8 + 1);
                }
            });
        }
    });
    let mut channel = stack.channel(1).expect("a channel");
    let zeroed = channel.discard(&opened, Command::Zero, 0, 16 << 20);
    assert_eq!(zeroed.expect("zeroed"), 16 << 20);
    let found = channel.extents(&opened, 0, 16 << 20, 10).expect("found");
    assert_eq!(found.len(), 1, "one hole: {found:?}");
    // Longer than one request may be.
    let mut all = vec![1; 12 << 20];
    channel.read(&opened, 0, &mut all).expect("read");
    assert!(all.iter().all(|&byte| byte == 0));
}

#[test]
fn requests_wait_for_a_server_that_is_started_again() {
    let running = serve("md:1m", |_| {});
    let (stack, opened) = client_of(&running);
    let mut channel = stack.channel(4).expect("a channel");
    channel.write(&opened, 0, &[8; 4096]).expect("written");
    let Running {
        server,
        stack: disk,
        folder,
        log,
        ..
    } = running;
    drop(server);
    let path = folder.path().join("s");
    let again = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        let lines = Arc::clone(&log);
        let settings = Settings {
            addresses: vec![Address::Unix(path)],
            writable: true,
            log: Arc::new(move |line| lines.lock().expect("the log").push(line.to_owned())),
            ..Settings::default()
        };
        Server::start(&disk, &Shown::all("md0"), &settings).expect("a server")
    });
    check(&mut channel, &opened, 0, 8);
    drop((channel, opened, stack));
    drop(again.join().expect("a server"));
}
