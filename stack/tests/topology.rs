//! Attaching, access counts, spoiling, orphaning, withering, resizing, tasting.

mod common;

use common::{Memory, Slicer, pile, plan, stack, user};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ugeom_stack::{
    Class, Cx, Delta, Errno, Geom, MAX_DEPTH, Next, Plan, ProviderId, ProviderPlan, Request, Stack,
    StackError, StackKnobs, TasteError, Taster,
};

const SIZE: u64 = 64 * 512;

/// Why an open is refused.
fn refusal(stack: &Stack, provider: ProviderId, delta: Delta) -> Errno {
    stack.open(provider, delta).err().expect("refused").errno()
}

/// Puts a slice `PARENTx` on every provider whose first byte is `X`.
#[derive(Default)]
struct Marked {
    tasted: AtomicUsize,
}

impl Class for Marked {
    fn name(&self) -> &'static str {
        "MARKED"
    }

    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        self.tasted.fetch_add(1, Ordering::Relaxed);
        if taster.geom().class == "MARKED" {
            return Ok(None);
        }
        let first = taster.sector(0).unwrap_or_default();
        match first.first() {
            Some(b'X') => {
                let size = taster.mediasize_bytes() - 512;
                Ok(Some(plan(
                    &format!("{}x", taster.name()),
                    size,
                    Slicer::new(512),
                )))
            }
            Some(b'?') => Err(TasteError {
                class: "MARKED",
                provider: taster.name().into(),
                problem: "a question mark at byte 0".into(),
            }),
            _ => Ok(None),
        }
    }
}

fn marked_stack(first: u8) -> (Stack, ugeom_stack::ProviderId, Arc<Marked>) {
    let class = Arc::new(Marked::default());
    let stack = Stack::new(StackKnobs::default(), vec![class.clone()]).expect("a stack");
    let memory = Memory::new(SIZE as usize);
    memory.0.lock().expect("memory")[0] = first;
    let provider = stack
        .create("MEM", plan("mem", SIZE, memory), &[])
        .expect("mem")[0];
    (stack, provider, class)
}

fn names(stack: &Stack) -> Vec<String> {
    stack
        .tree()
        .providers()
        .map(|provider| provider.name.clone())
        .collect()
}

#[test]
fn a_new_provider_is_tasted_by_every_class_and_so_is_what_they_make() {
    let (stack, _, class) = marked_stack(b'X');
    assert_eq!(names(&stack), ["mem", "memx"]);
    assert_eq!(class.tasted.load(Ordering::Relaxed), 2);
    let (stack, ..) = marked_stack(0);
    assert_eq!(names(&stack), ["mem"]);
}

#[test]
fn what_a_class_cannot_use_is_reported_and_stops_nobody() {
    let (stack, ..) = marked_stack(b'?');
    assert_eq!(names(&stack), ["mem"]);
    let errors = stack.taste_errors();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0].to_string(),
        "MARKED on mem: a question mark at byte 0"
    );
}

#[test]
fn a_writer_spoils_what_stands_on_the_provider_and_its_close_brings_a_new_taste() {
    let (stack, provider, _) = marked_stack(b'X');
    let writer = stack.open(provider, Delta::READ_WRITE).expect("open");
    assert_eq!(names(&stack), ["mem"], "spoiled");
    let mut channel = stack.channel(1).expect("a channel");
    channel.write(&writer, 0, &[0; 512]).expect("write");
    drop(writer);
    assert_eq!(names(&stack), ["mem"], "the mark is gone");
    let writer = stack.open(provider, Delta::READ_WRITE).expect("open");
    channel.write(&writer, 0, &[b'X'; 512]).expect("write");
    drop(writer);
    assert_eq!(names(&stack), ["mem", "memx"], "tasted again");
}

#[test]
fn an_open_slice_keeps_writers_off_its_parent() {
    let (stack, provider, _) = marked_stack(b'X');
    let slice = stack.find("memx").expect("memx");
    let reader = stack.open(slice, Delta::READ).expect("open");
    let refused = stack.open(provider, Delta::READ_WRITE);
    let refused = refused.err().expect("refused");
    assert_eq!(refused.errno(), Errno::PERM);
    assert!(
        refused.to_string().starts_with("cannot open mem r1w1e0: "),
        "{refused}"
    );
    let tree = stack.tree();
    assert_eq!(
        tree.provider("mem").expect("mem").mode.to_string(),
        "r1w0e1"
    );
    drop(reader);
    assert_eq!(
        stack.tree().provider("mem").expect("mem").mode.to_string(),
        "r0w0e0"
    );
    drop(stack.open(provider, Delta::READ_WRITE).expect("free again"));
}

#[test]
fn exclusive_and_writers_refuse_each_other() {
    let stack = stack(StackKnobs::default());
    let provider = stack.create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[]);
    let provider = provider.expect("mem")[0];
    let exclusive = stack.open(provider, Delta::EXCLUSIVE).expect("open");
    assert!(
        stack.open(provider, Delta::READ).is_ok(),
        "readers are welcome"
    );
    assert_eq!(refusal(&stack, provider, Delta::READ_WRITE), Errno::PERM);
    drop(exclusive);
    let writer = stack.open(provider, Delta::READ_WRITE).expect("open");
    assert!(
        stack.open(provider, Delta::READ_WRITE).is_ok(),
        "two writers may share"
    );
    assert_eq!(refusal(&stack, provider, Delta::EXCLUSIVE), Errno::PERM);
    assert_eq!(
        stack.tree().provider("mem").expect("mem").mode.to_string(),
        "r1w1e0"
    );
    drop(writer);
}

#[test]
fn a_failed_open_leaves_no_counts_behind() {
    /// Refuses to be opened for writing.
    struct ReadOnly;
    impl Geom for ReadOnly {
        fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
            request.forward(0)
        }
        fn access(&self, change: &ugeom_stack::AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
            if change.delta.write > 0 {
                Err(Errno::ROFS)
            } else {
                Ok(change.exclusive_while_open())
            }
        }
    }
    let stack = stack(StackKnobs::default());
    let memory = stack.create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[]);
    let memory = memory.expect("mem")[0];
    let middle = stack
        .create("RO", plan("ro", SIZE, Arc::new(ReadOnly)), &[memory])
        .expect("ro")[0];
    let top = pile(&stack, middle, SIZE, 2, false);
    assert_eq!(refusal(&stack, top, Delta::READ_WRITE), Errno::ROFS);
    for provider in stack.tree().providers() {
        assert_eq!(provider.mode.to_string(), "r0w0e0", "{}", provider.name);
    }
    assert!(
        stack.tree().geoms.iter().all(|geom| geom.class != "DEV"),
        "no handle is left"
    );
}

#[test]
fn ranks_grow_from_the_bottom() {
    let stack = stack(StackKnobs::default());
    let memory = stack.create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[]);
    pile(&stack, memory.expect("mem")[0], SIZE, 4, false);
    let ranks: Vec<u32> = stack.tree().geoms.iter().map(|geom| geom.rank).collect();
    assert_eq!(ranks, [1, 2, 3, 4, 5]);
}

#[test]
fn a_stack_deeper_than_a_path_is_refused() {
    let stack = stack(StackKnobs::default());
    let memory = stack.create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[]);
    let top = pile(&stack, memory.expect("mem")[0], SIZE, MAX_DEPTH - 1, false);
    let mut channel = stack.channel(1).expect("a channel");
    let opened = stack
        .open(top, Delta::READ)
        .expect("the deepest that works");
    assert_eq!(channel.read(&opened, 0, &mut [0; 512]).expect("read"), 512);
    drop(opened);
    let higher = stack.create("SLICE", plan("higher", SIZE, Slicer::new(0)), &[top]);
    let higher = higher.expect("one more geom fits")[0];
    let refused = stack.open(higher, Delta::READ).err().expect("refused");
    assert!(matches!(refused, StackError::TooDeep { .. }), "{refused}");
}

#[test]
fn names_are_unique() {
    let stack = stack(StackKnobs::default());
    stack
        .create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[])
        .expect("mem");
    let twice = stack.create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[]);
    assert!(matches!(twice, Err(StackError::NameTaken(name)) if name == "mem"));
    assert_eq!(stack.tree().geoms.len(), 1, "nothing is left of the second");
}

#[test]
fn an_unknown_provider_is_named_with_those_that_exist() {
    let (stack, ..) = marked_stack(b'X');
    let error = stack.find("memy").expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "no such provider: memy (there are: mem, memx)"
    );
}

#[test]
fn an_orphaned_provider_takes_everything_on_it_with_it_when_the_holders_let_go() {
    let (stack, provider, _) = marked_stack(b'X');
    let (slice, mut channel) = user(&stack, stack.find("memx").expect("memx"), Delta::READ, 1);
    assert!(channel.read(&slice, 0, &mut [0; 512]).is_ok());
    stack.orphan(provider, Errno::NXIO).expect("orphan");
    let error = channel.read(&slice, 0, &mut [0; 512]).expect_err("gone");
    assert_eq!(error.errno, Errno::NXIO);
    assert_eq!(names(&stack), ["mem", "memx"], "still held");
    drop(slice);
    assert_eq!(names(&stack), ["mem"]);
    assert!(stack.open(provider, Delta::READ).is_err());
}

#[test]
fn destroy_refuses_what_is_in_use_unless_forced() {
    let (stack, provider, _) = marked_stack(b'X');
    let geom = stack.tree().provider("mem").expect("mem").geom;
    assert!(matches!(stack.destroy(geom), Err(StackError::Busy(..))));
    let opened = stack.open(provider, Delta::READ).expect("open");
    stack.destroy_forced(geom).expect("forced");
    let mut channel = stack.channel(1).expect("a channel");
    let error = channel.read(&opened, 0, &mut [0; 512]);
    let error = error.expect_err("gone");
    assert_eq!(error.errno, Errno::NXIO);
    assert!(error.to_string().contains("mem"), "{error}");
    drop(opened);
    assert!(names(&stack).is_empty());
    let error = stack.open(provider, Delta::READ).err().expect("gone");
    assert!(error.to_string().contains("mem (destroyed)"), "{error}");
    assert!(stack.tree().geoms.is_empty());
}

#[test]
fn what_a_change_took_away_is_freed_when_the_last_request_is_home() {
    let stack = stack(StackKnobs::default());
    let parker = Arc::new(common::Parker::default());
    let provider = stack
        .create("PARK", plan("park", SIZE, parker.clone()), &[])
        .expect("park")[0];
    let (opened, mut channel) = user(&stack, provider, Delta::READ, 2);
    let draft = channel
        .bio()
        .expect("a bio")
        .read(0, ugeom_machine::buffer::Buffer::new(512));
    channel.submit(&opened, draft);
    stack
        .destroy_forced(stack.tree().geoms[0].id)
        .expect("destroy");
    drop(opened);
    assert!(stack.tree().geoms.is_empty());
    channel.poll();
    assert_eq!(Arc::strong_count(&parker), 2, "the request still needs it");
    let bio = parker.held.lock().expect("held").pop().expect("parked");
    bio.complete(Ok(512));
    assert_eq!(channel.wait(None), 1);
    assert_eq!(channel.finished().expect("home").result(), Ok(512));
    assert_eq!(Arc::strong_count(&parker), 1, "it is not needed any more");
}

#[test]
fn a_provider_that_shrinks_orphans_what_cannot_resize_and_is_tasted_again() {
    let (stack, provider, _) = marked_stack(b'X');
    assert_eq!(
        stack.tree().provider("memx").expect("memx").mediasize_bytes,
        SIZE - 512
    );
    stack.resize(provider, SIZE / 2).expect("shrink");
    assert_eq!(
        stack.tree().provider("memx").expect("memx").mediasize_bytes,
        SIZE / 2 - 512
    );
    let held = stack
        .open(stack.find("memx").expect("memx"), Delta::READ)
        .expect("open");
    stack.resize(provider, SIZE).expect("grow");
    assert_eq!(
        stack.tree().provider("memx").expect("memx").mediasize_bytes,
        SIZE / 2 - 512
    );
    let mut channel = stack.channel(1).expect("a channel");
    assert!(
        channel.read(&held, 0, &mut [0; 512]).is_ok(),
        "growing spoils no consumer"
    );
}

#[test]
fn a_geom_that_resizes_passes_the_new_size_on() {
    struct Follows;
    impl Geom for Follows {
        fn start(&self, request: Request<'_>, _: &mut Cx) -> Next {
            request.forward(0)
        }
        fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
            Some(vec![(mediasize_bytes, Some("followed".into()))])
        }
    }
    let stack = stack(StackKnobs::default());
    let memory = stack.create("MEM", plan("mem", SIZE, Memory::new(SIZE as usize)), &[]);
    let memory = memory.expect("mem")[0];
    let top = stack
        .create("F", plan("top", SIZE, Arc::new(Follows)), &[memory])
        .expect("top")[0];
    let opened = stack.open(top, Delta::READ).expect("open");
    stack.resize(memory, 4096).expect("shrink");
    let view = opened.view().expect("still there");
    assert_eq!(
        (view.mediasize_bytes, view.mark.as_deref()),
        (4096, Some("followed"))
    );
}

#[test]
fn a_plan_with_a_sector_size_of_zero_is_refused() {
    let stack = stack(StackKnobs::default());
    let provider = ProviderPlan {
        name: "zero".into(),
        mediasize_bytes: 1,
        ..Default::default()
    };
    let plan = Plan::of(provider, Slicer::new(0));
    assert!(matches!(
        stack.create("MEM", plan, &[]),
        Err(StackError::Invalid(_))
    ));
}

#[test]
fn the_configuration_dumps_name_everything() {
    let (stack, provider, _) = marked_stack(b'X');
    let _held = stack.open(provider, Delta::READ).expect("open");
    let tree = stack.tree();
    let xml = ugeom_stack::conf::confxml(&tree);
    for part in [
        "<mesh>",
        "<name>MARKED</name>",
        "<mode>r1w0e0</mode>",
        "<mediasize>32768</mediasize>",
    ] {
        assert!(xml.contains(part), "{part} in\n{xml}");
    }
    let dot = ugeom_stack::conf::confdot(&tree);
    assert!(
        dot.contains("shape=box,label=\"MARKED\\nmemx\\nr#2\""),
        "{dot}"
    );
    assert!(dot.contains("shape=hexagon,label=\"mem\\nr1w0e0\\nerr#0\\nsector=512\\nstripe=0\""));
}
