//! A stack of md, nop and mbr: write a partition table, then read the first sector of its slice.
//!
//! `cargo run -p ugeom-classes --example first_sector`

use std::error::Error;
use ugeom_classes::{TargetOptions, open_target};
use ugeom_stack::Delta;

fn main() -> Result<(), Box<dyn Error>> {
    // A memory disk of 1 MiB under a layer that hides its first 64 KiB.
    let target = open_target("md:1m | nop:offset=64k", &TargetOptions::default())?;
    let stack = &target.stack;

    // An MBR with one slice: sectors 8 to 71, type 165 (FreeBSD).
    let mut table = [0; 512];
    table[450] = 165;
    table[454..458].copy_from_slice(&8_u32.to_le_bytes());
    table[458..462].copy_from_slice(&64_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    let whole = stack.open(target.top, Delta::READ_WRITE)?;
    let mut channel = stack.channel(8)?;
    channel.write(&whole, 0, &table)?;
    channel.write(&whole, 8 * 512, &[b'x'; 512])?;
    // The class `mbr` looks at what was written when its provider is closed.
    whole.close()?;

    let slice = stack.find("md0.nops1")?;
    let opened = stack.open(slice, Delta::READ)?;
    let mut sector = [0; 512];
    channel.read(&opened, 0, &mut sector)?;
    println!("md0.nops1 begins with {:?}", char::from(sector[0]));
    Ok(())
}
