//! The memory of a provider of the class `eli`, beside its data keys.
//!
//! A test binary of its own with one test, as its allocator counts for the whole process.

use ugeom_classes::{Target, TargetOptions, open_target};
use ugeom_machine::allocations::{CountingAllocator, allocated_bytes};
use ugeom_stack::Delta;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Providers that are open together.
const PROVIDERS: u64 = 32;
/// The limit for one provider, bytes.
const BYTES_MAX: u64 = 64 << 10;

/// Locked memory of the process, bytes: where keys are.
fn locked_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    1024 * kib.expect("a figure").parse::<u64>().expect("a number")
}

/// Opens so many targets and does some I/O on each; what all of it took up.
fn taken(text: &str) -> u64 {
    let options = TargetOptions::default().for_writing();
    let before = allocated_bytes() + locked_bytes();
    let mut data = vec![7; 4096];
    let targets: Vec<Target> = (0..PROVIDERS)
        .map(|_| {
            let target = open_target(text, &options).expect("a target");
            let opened = target.open(Delta::READ_WRITE).expect("opens");
            let mut channel = target.stack.channel(1).expect("a channel");
            channel.write(&opened, 0, &data).expect("writes");
            channel.read(&opened, 0, &mut data).expect("reads");
            target
        })
        .collect();
    let after = allocated_bytes() + locked_bytes();
    drop(targets);
    after.saturating_sub(before)
}

#[test]
fn a_provider_takes_up_less_than_64_kib() {
    // One-time allocations of a process are made before counting.
    taken("md:1m | eli:onetime=1");
    let without = taken("md:1m");
    for options in ["", ",aalgo=hmac/sha256,sectorsize=4k", ",ealgo=aes-cbc"] {
        let with = taken(&format!("md:1m | eli:onetime=1{options}"));
        let each = with.saturating_sub(without) / PROVIDERS;
        println!("eli:onetime=1{options}: {each} bytes a provider");
        assert!(each < BYTES_MAX, "{options}: {each} bytes");
    }
}
