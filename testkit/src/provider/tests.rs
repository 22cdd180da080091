//! The suite must let a right device pass and catch wrong ones.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use ugeom_machine::region::Region;
use ugeom_stack::{Command, Cx, Extent, ExtentKind, Geom, Next, Plan, ProviderPlan, Request};

const MEDIA_BYTES: u64 = 64 << 10;

/// The fault of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    LosesTheLastSector,
    WritesTwice,
    FailsFlush,
    DropsBios,
    LiesAboutHoles,
    AnswersEverything,
}

struct Memory {
    region: Region,
    fault: Fault,
}

impl Memory {
    fn write(&self, at: u64, piece: &[u8]) {
        let end = at + piece.len() as u64;
        match self.fault {
            Fault::LosesTheLastSector if end == MEDIA_BYTES => {}
            Fault::WritesTwice if end + piece.len() as u64 <= MEDIA_BYTES => {
                self.region.write(at, piece);
                self.region.write(end, piece);
            }
            _ => self.region.write(at, piece),
        }
    }
}

impl Geom for Memory {
    fn start(&self, mut request: Request<'_>, _cx: &mut Cx) -> Next {
        let start = request.offset();
        match request.command() {
            Command::Read if self.fault == Fault::DropsBios && start == 0 => {
                let (bio, next) = request.park();
                drop(bio);
                return next;
            }
            Command::Read => request.fill(|at, piece| self.region.read(start + at, piece)),
            Command::Write => request.each(|at, piece| self.write(start + at, piece)),
            Command::Delete | Command::Zero => self.region.fill(start, request.length(), 0),
            Command::Flush if self.fault == Fault::FailsFlush => {
                return request.done(Err(Errno::OPNOTSUPP));
            }
            Command::Flush => {}
            Command::GetAttr if self.fault == Fault::AnswersEverything => {
                return request.answer(ugeom_stack::AttributeValue::Number(1));
            }
            Command::GetAttr => return request.done(Err(Errno::OPNOTSUPP)),
            Command::Extents => {
                let lies = self.fault == Fault::LiesAboutHoles;
                let kind = if lies {
                    ExtentKind::Hole
                } else {
                    ExtentKind::Data
                };
                let length_bytes = request.length();
                request.add_extent(Extent { length_bytes, kind });
                return request.finish();
            }
        }
        request.done_in_full()
    }
}

fn outcome(fault: Fault) -> Result<(), String> {
    let open = |options: StackKnobs| {
        let stack = Stack::new(options, Vec::new()).expect("a stack");
        let provider = ProviderPlan::new("memory", MEDIA_BYTES, 512);
        let region = Region::new(MEDIA_BYTES).expect("a region");
        region.fill(0, MEDIA_BYTES, 1);
        let geom = Arc::new(Memory { region, fault });
        let plan = Plan::of(provider, geom);
        let provider = stack.create("MEMORY", plan, &[]).expect("a provider")[0];
        Device {
            stack,
            provider,
            keep: Box::new(()),
        }
    };
    let subject = Subject {
        name: "memory",
        open: &open,
        promises: Promises::DISK,
    };
    catch_unwind(AssertUnwindSafe(|| check(&subject))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.unwrap_or_else(|| "another panic".into())
    })
}

#[test]
fn a_right_device_passes() {
    assert_eq!(outcome(Fault::None), Ok(()));
}

#[test]
fn each_fault_is_caught_by_the_case_that_looks_for_it() {
    for (fault, words) in [
        (Fault::LosesTheLastSector, "what was written is read"),
        (Fault::WritesTwice, "beside it"),
        (Fault::FailsFlush, "a flush succeeds"),
        (Fault::DropsBios, "a layer dropped"),
        (Fault::LiesAboutHoles, "a hole does not read as zeroes"),
        (Fault::AnswersEverything, "an unknown attribute has a value"),
    ] {
        let why = outcome(fault).expect_err("a fault that passes");
        assert!(why.contains(words), "{fault:?}: {why}");
    }
}
