//! The fuzz target for whole images: any bytes are a disk, all classes taste it, and everything
//! that they list is read and shown.
//!
//! `classes/tests/hostile.rs` calls this with damaged tables, so that a machine without cargo-fuzz
//! covers it too.

use std::sync::Arc;
use ugeom_classes::part::edit::{self, found};
use ugeom_classes::registry;
use ugeom_format::plan::Column;
use ugeom_stack::{
    Command, Cx, Delta, Errno, Geom, Next, Plan, ProviderPlan, Request, Stack, StackKnobs, conf,
};

/// Bytes that a table of its own needs at the most: both copies of the largest GPT, with headers.
const TABLE_BYTES: u64 = (2 << 20) + (16 << 10);
/// Sectors that the tasting of one provider reads beside its table: 0, 1 and the last.
const PROBED_SECTORS: u64 = 4;
/// Records that four chains of logical partitions have at the most.
const CHAIN_SECTORS: u64 = 4 * 1024;

/// A disk that cannot be written to; past the bytes that there are it reads as zeros.
struct Image(Vec<u8>);

impl Geom for Image {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        if request.command() != Command::Read {
            return request.done(Err(Errno::OPNOTSUPP));
        }
        let start = request.offset();
        request.fill(|at, piece| {
            let from = usize::try_from(start + at).unwrap_or(usize::MAX);
            let there = self.0.get(from..).unwrap_or(&[]);
            let count = there.len().min(piece.len());
            piece[..count].copy_from_slice(&there[..count]);
            piece[count..].fill(0);
        });
        request.done_in_full()
    }
}

/// A byte for the size of a sector, one for the length of the disk, then its bytes. Answers with
/// the number of providers that were found.
pub fn taste(data: &[u8]) -> u64 {
    let Some(([choice, longer], bytes)) = data.split_first_chunk::<2>() else { return 0 };
    let sector: u32 = if choice & 1 == 0 { 512 } else { 4096 };
    let unit = u64::from(sector);
    let sectors = (bytes.len() as u64).div_ceil(unit) + u64::from(*longer);
    let stack = Stack::new(StackKnobs::default(), registry::tasting()).expect("a stack");
    let provider = ProviderPlan::new("md0", sectors * unit, sector);
    let geom = Arc::new(Image(bytes.to_vec()));
    let plan = Plan::of(provider, geom);
    let disk = stack.create("MD", plan, &[]).expect("a disk")[0];
    let tree = stack.tree();
    let count = tree.providers().count() as u64;
    let read = stack.statistics(disk).expect("statistics").bytes[Command::Read as usize];
    let most = TABLE_BYTES + (PROBED_SECTORS * count + CHAIN_SECTORS) * unit;
    assert!(
        read <= most,
        "{read} bytes read for {count} providers, at most {most} are enough"
    );
    read_everything(&stack);
    let _ = (
        conf::confxml(&tree),
        conf::confdot(&tree),
        stack.taste_errors(),
    );
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack.open(disk, Delta::READ).expect("open for reading");
    if let Ok(tables) = edit::show(&mut channel, &opened) {
        for table in tables {
            let _ = table.show("md0", Column::Provider);
        }
    }
    found::look(&mut channel, &opened).expect("reading does not fail");
    assert_eq!(stack.defects(), 0);
    count - 1
}

/// The first and the last sector of each provider: all there, or an error where the disk ends.
fn read_everything(stack: &Stack) {
    let mut channel = stack.channel(1).expect("a channel");
    for provider in stack.tree().providers() {
        let unit = u64::from(provider.sectorsize_bytes);
        let Some(last) = (provider.mediasize_bytes / unit).checked_sub(1) else { continue };
        // A label may count in sectors that no machine has memory for.
        if unit > 1 << 20 {
            continue;
        }
        let opened = stack
            .open(provider.id, Delta::READ)
            .expect("open for reading");
        let mut sector = vec![0; unit as usize];
        for offset in [0, last * unit] {
            match channel.read(&opened, offset, &mut sector) {
                Ok(read) => assert_eq!(read, sector.len(), "{}", provider.name),
                Err(error) => {
                    let said = error.reason.contains("past the end of the media");
                    assert!(said && error.errno == Errno::IO, "{error}");
                }
            }
        }
    }
}
