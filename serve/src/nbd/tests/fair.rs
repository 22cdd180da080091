//! Clients that take without giving: they never read, never send, or stay silent, and the others
//! are served all the same, without waiting until those are left.

use super::*;

/// No time-out helps a client here.
const NEVER: Duration = Duration::from_secs(3600);

fn patient(settings: &mut Settings) {
    settings.limits.stall = NEVER;
    settings.limits.handshake = NEVER;
    settings.limits.idle = NEVER;
}

/// Sends as many of these requests as the socket takes, and reads nothing.
fn flood(client: &Client, command: u16, length_bytes: u32) {
    let request = Request {
        flags: 0,
        command,
        cookie: 7,
        offset_bytes: 0,
        length_bytes,
    };
    let batch: Vec<u8> = (0..256).flat_map(|_| request.encode()).collect();
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    while rustix::net::send(&client.stream, &batch, flags).is_ok_and(|sent| sent == batch.len()) {}
}

/// Reads and writes of every size, as a client that knows nothing of the others.
fn use_it(running: &Running, structured: bool) {
    let mut other = running.client("", structured);
    for length in [4096, 1 << 20, 9 << 20] {
        assert!(other.read(4096, length).iter().all(|&byte| byte == 0));
    }
    assert_eq!(other.write(0, 100, &vec![3; 5 << 20]).error, 0);
    assert!(other.read(100, 5 << 20).iter().all(|&byte| byte == 3));
    assert_eq!(other.write(0, 100, &vec![0; 5 << 20]).error, 0);
}

#[test]
fn clients_that_never_read_leave_the_others_their_share() {
    for (greedy, length) in [(12, 1 << 20), (64, 1 << 20), (64, 32 << 20)] {
        let running = serve("md:64m", patient);
        let clients: Vec<Client> = (0..greedy)
            .map(|number| running.client("", number % 2 == 0))
            .collect();
        for client in &clients {
            flood(client, command::READ, length);
        }
        use_it(&running, false);
        use_it(&running, true);
    }
}

#[test]
fn clients_that_come_again_and_again_and_never_read_gain_nothing() {
    let running = serve("md:64m", patient);
    let end = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !end.load(std::sync::atomic::Ordering::Relaxed) {
                    let clients: Vec<Client> = (0..8).map(|_| running.client("", false)).collect();
                    for client in &clients {
                        flood(client, command::READ, 32 << 20);
                    }
                }
            });
        }
        use_it(&running, false);
        use_it(&running, true);
        end.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn clients_that_promise_data_and_send_none_leave_the_others_their_share() {
    let running = serve("md:64m", patient);
    let mut clients: Vec<Client> = (0..64).map(|_| running.client("", false)).collect();
    for client in &mut clients {
        client.send(command::WRITE, 0, 0, 32 << 20);
    }
    use_it(&running, true);
}

#[test]
fn a_client_that_has_read_much_may_have_more_in_flight_and_keeps_no_one_out() {
    let running = serve("md:64m", |settings| {
        patient(settings);
        settings.threads = 1;
        settings.limits.bytes = 16 << 20;
        settings.limits.bytes_per_connection = 16 << 20;
    });
    let mut clients: Vec<Client> = (0..8).map(|_| running.client("", true)).collect();
    for client in &mut clients {
        client.read(0, 32 << 20);
        flood(client, command::READ, 1 << 20);
    }
    use_it(&running, false);
    use_it(&running, true);
}

#[test]
fn a_new_client_is_served_beside_more_silent_ones_than_may_be() {
    let running = serve("md:1m", |settings| {
        patient(settings);
        settings.limits.connections = 64;
        settings.limits.connections_per_peer = 32;
    });
    // Some have shaken hands, some have not.
    let shaken: Vec<Client> = (0..20).map(|_| running.client("", false)).collect();
    let silent: Vec<UnixStream> = (0..100).map(|_| running.connect()).collect();
    let mut client = running.client("", false);
    assert_eq!(client.read(0, 512), [0; 512]);
    running.wait_for("makes room");
    drop((shaken, silent));
}

#[test]
fn who_has_something_in_the_stack_makes_no_room_for_others() {
    let running = serve("md:1m | nop:delay=300ms", |settings| {
        patient(settings);
        settings.limits.connections = 3;
        settings.limits.connections_per_peer = 2;
    });
    let silent = running.client("", false);
    let mut busy = running.client("", false);
    let cookie = busy.send(command::READ, 0, 0, 512);
    let mut other = running.client("", false);
    assert_eq!(silent.until_closed(), 0, "the silent one had to go");
    assert_eq!(busy.receive(0, 512).0, cookie);
    assert_eq!(other.read(0, 512), [0; 512]);
}
