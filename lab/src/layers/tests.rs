//! The whole experiment with a tiny budget: that it runs and that everything is there. Nothing here
//! says how fast anything is.

use super::*;
use ugeom_experiment::run_here;
use ugeom_harness::{Ended, Machine};
use ugeom_testkit::has;

fn tiny(options: &LayersOptions) -> Document {
    let mut control = Control::silent();
    let mut options = options.clone();
    options.common.budget_ns = Some(1);
    run_here::<Layers>(&options, &Machine, &mut control).unwrap()
}

#[test]
fn the_whole_experiment_runs_and_leaves_nothing_out() {
    let document = tiny(&LayersOptions::default());
    let measured = &document.processes[0];
    let expected = (10, Ended::RoundsMax);
    assert_eq!((measured.rounds.len(), measured.ended), expected);
    for id in [
        "geom.cost",
        "geom.share",
        "geom.share.disk",
        "control",
        "layer.md0s1",
        "layer.md0s1c",
        "layer.mean",
        "layer.share.disk",
        "plain.md0s1c",
        "size.131072",
        "slope.slicers.off",
        "slope.slicers.counts",
        "slope.hooks.off",
        "slope.nops.off",
        "statistics.time",
        "queued.cost",
        "queued.scaling",
        "cpu.queued.helpers",
        "null.read",
        "null.scaling",
        "delay.all",
        "floor.calls",
        "floor.loop",
        "floor.clock",
    ] {
        assert!(document.figure(id).is_some(), "there is no figure {id}");
    }
    assert!(document.noise.is_some());
    let text = document.to_json().unwrap();
    assert!(Document::from_json(&text, EXPERIMENT).unwrap() == document);
}

#[test]
fn faithful_runs_have_the_loops_of_2002() {
    let document = tiny(&LayersOptions {
        faithful: true,
        ..LayersOptions::default()
    });
    let measured = &document.processes[0];
    let fixed = |name: &&String| name.starts_with("direct/") || name.starts_with("call/");
    assert_eq!(measured.cases.iter().filter(fixed).count(), 6);
    assert!(!measured.shortened.any(), "nothing is shortened");
    assert_eq!(measured.rounds.len(), 10, "ten runs, as in 2002");
    for (case, name) in measured
        .cases
        .iter()
        .enumerate()
        .filter(|(_, name)| fixed(name))
    {
        assert_eq!(
            measured.rounds[0].samples[case].iterations, 100_000,
            "{name}"
        );
    }
}

#[test]
fn a_target_is_measured_along_its_deepest_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.img");
    std::fs::write(&path, stacks::image().unwrap()).unwrap();
    let target = Some(format!("{} | nop", path.display()));
    let document = tiny(&LayersOptions {
        target,
        ..LayersOptions::default()
    });
    let names: Vec<&str> = document
        .subject
        .chain
        .iter()
        .map(|link| link.provider.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "disk.img",
            "disk.img.nop",
            "disk.img.nops1",
            "disk.img.nops1a"
        ]
    );
    assert_eq!(document.subject.chain[3].layers, "dev, bsd, mbr, nop, disk");
    for id in [
        "geom.cost",
        "layer.disk.img.nops1",
        "layer.mean",
        "statistics.time",
        "queued.cost",
        "size.65536",
    ] {
        assert!(document.figure(id).is_some(), "there is no figure {id}");
    }
    let measured = document.subject.disk != Disk::assumed();
    let left_out = document.subject.left_out.join("; ");
    assert!(
        measured || left_out.contains("the disk's own time"),
        "left out: {left_out}"
    );
    let text = page(&document).to_text(100);
    has(&text, "disk.img.nops1a");
    has(&text, "3 layers");
}

#[test]
fn the_image_of_the_experiment_is_the_one_of_2002() {
    let image = stacks::image().unwrap();
    let sectors = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap());
    assert_eq!(
        (image.len(), &image[510..512]),
        (1 << 20, &[0x55, 0xAA][..])
    );
    assert_eq!(
        (image[450], sectors(454)),
        (165, 63),
        "one FreeBSD slice from sector 63 on"
    );
    assert_eq!(
        sectors(64 * 512),
        0x8256_4557,
        "the label in sector 1 of the slice"
    );
}

#[test]
fn the_deepest_provider_is_read_through_servers_where_they_serve() {
    let document = tiny(&LayersOptions {
        target: Some("md:1m | nop".to_owned()),
        servers: crate::served_tests::SERVERS.to_vec(),
        ..LayersOptions::default()
    });
    assert_eq!(document.subject.through, ["COPY"]);
    let left_out = document.subject.left_out.join("; ");
    has(
        &left_out,
        "reads through NONE (this program cannot serve it)",
    );
    for id in ["through.COPY", "through.COPY.stack"] {
        assert!(document.figure(id).is_some(), "there is no figure {id}");
    }
    let text = page(&document).to_text(100);
    let words = "Served to another program, one read of md0.nop at a time";
    has(&text, words);
    has(&text, "through COPY");
}

/// A file of holes, or in memory, says nothing about a disk.
#[test]
fn no_conclusion_about_a_disk_is_drawn_without_a_device() {
    let file = tempfile::NamedTempFile::new_in(".").unwrap();
    file.as_file().set_len(64 << 20).unwrap();
    let document = tiny(&LayersOptions {
        target: Some(file.path().display().to_string()),
        ..LayersOptions::default()
    });
    let page = page(&document);
    let words = "No device served these reads: ";
    has(&page.answer, words);
    has(&page.answer, "no conclusion about a disk");
    assert!(!page.answer.contains("of a disk's"), "{}", page.answer);
    assert_eq!(document.subject.disk, Disk::assumed());
}
