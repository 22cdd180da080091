//! The view without a terminal: figures and keys in, pages out.

use super::*;
use ugeom_serve::control::{Counted, Layer, OperationTotals, Spread, Times, Timing};
use ugeom_testkit::begins;

fn layer(id: u64, name: &str, below: &[u64], reads: u64, own_ns: u64) -> Layer {
    Layer {
        id,
        name: name.to_owned(),
        below: below.to_vec(),
        rank: below.len() as u32 + 1,
        counted: Counted {
            read: OperationTotals {
                operations: reads,
                bytes: reads * 4096,
            },
            ..Counted::default()
        },
        times: Times {
            read: Spread {
                samples: reads / 10,
                sum_ns: reads / 10 * 300,
                buckets: vec![(256, reads / 10)],
            },
            exclusive_ns: reads / 10 * own_ns,
            ..Times::default()
        },
        ..Layer::default()
    }
}

/// `round` seconds of a disk with two partitions, of which the second is used more.
fn figures(round: u64) -> Figures {
    Figures {
        at_ns: round * 1_000_000_000,
        timing: Timing {
            counts: true,
            one_in: 10,
            clock_ns: 20.0,
            look_ns: 90_000,
        },
        providers: vec![
            layer(1, "disk", &[], 1000 * round, 2000),
            layer(2, "disks1", &[1], 100 * round, 30),
            layer(3, "disks2", &[1], 900 * round, 500),
            layer(4, "spare", &[], 0, 0),
        ],
        consumers: Vec::new(),
    }
}

fn view() -> View {
    let whose = "disk.img (process 7)".to_owned();
    let mut view = View::new(
        Columns::default(),
        Shown::default(),
        Duration::from_secs(1),
        whose,
    );
    view.take(figures(1));
    view.take(figures(2));
    view
}

fn text(view: &View, size: (usize, usize)) -> Vec<String> {
    view.page(size).into_iter().map(|line| line.text).collect()
}

/// The names that are shown, with their indentation.
fn names(view: &View) -> Vec<String> {
    let page = view.table(100, 50);
    let names = page.iter().skip(3).map(|line| {
        let at = "    0   1000   1000   4000  0.000      0      0      -      -      2000  ".len();
        line.text[at..].trim_end().to_owned()
    });
    names.collect()
}

fn type_in(view: &mut View, text: &str) {
    for c in text.chars() {
        assert!(view.key(Key::Char(c)));
    }
}

#[test]
fn a_page_has_head_rows_latencies_and_keys() {
    let page = text(&view(), (90, 24));
    assert_eq!(page.len(), 24);
    assert_eq!(page[0], "dT: 1.000s  w: 1.000s  disk.img (process 7)");
    begins(&page[1], "one request in 10 is timed");
    assert!(page[2].ends_with("excl ns  Name"));
    begins(&page[3], "    0   1000   1000   4000  300ns");
    assert!(page[3].trim_end().ends_with("2000  disk"), "{}", page[3]);
    assert!(page[4].trim_end().ends_with("~30    disks1"), "{}", page[4]);
    let title = "disk: 100 requests timed in 1 s, half of them within 256 ns, 99 % within 256 ns";
    assert_eq!(page[21], title);
    begins(&page[22], "   256 ns ####");
    assert!(page[22].ends_with("# 100"));
    assert!(page[23].starts_with("q end"));
}

#[test]
fn small_and_large_screens_are_filled_and_never_more() {
    let mut view = view();
    for help in [false, true] {
        view.help = help;
        for size in [(1, 1), (10, 3), (80, 5), (80, 10), (300, 100)] {
            assert_eq!(view.page(size).len(), size.1, "{size:?}");
        }
    }
    let empty = View::new(
        Columns::default(),
        Shown::default(),
        Duration::from_secs(1),
        "x".to_owned(),
    );
    assert_eq!(text(&empty, (80, 24))[0], "x: looking ...");
}

#[test]
fn keys_sort_filter_and_choose() {
    let mut view = view();
    let tree = ["disk", "  disks1", "  disks2", "spare"];
    assert_eq!(names(&view), tree);
    view.key(Key::Char('s'));
    assert_eq!(names(&view), ["disk", "disks2", "disks1", "spare"]);
    view.key(Key::Char('r'));
    assert_eq!(names(&view), ["spare", "disks1", "disks2", "disk"]);
    view.key(Key::Char('t'));
    assert_eq!(names(&view), tree);
    view.key(Key::Char('a'));
    assert_eq!(names(&view), tree[..3]);
    // The filter is typed, corrected, and refused while it is none.
    type_in(&mut view, "fs[");
    assert_eq!(text(&view, (80, 24))[23], "Filter: s[_");
    view.key(Key::Enter);
    assert!(text(&view, (80, 24))[23].starts_with("Filter: s[_   "));
    view.key(Key::Backspace);
    type_in(&mut view, "2$");
    view.key(Key::Enter);
    assert_eq!(names(&view), ["  disks2"]);
    assert!(text(&view, (80, 24))[0].contains("filter: s2$"));
    type_in(&mut view, "/x");
    view.key(Key::Escape);
    assert_eq!(names(&view), ["  disks2"], "Escape leaves it as it was");
    view.key(Key::Char('f'));
    for _ in 0..3 {
        view.key(Key::Backspace);
    }
    view.key(Key::Enter);
    assert_eq!(names(&view), tree[..3]);
    // The selected row stays selected when rows move.
    view.key(Key::Down);
    view.key(Key::Down);
    let chosen = |view: &View| {
        let page = view.page((90, 24));
        let line = page.into_iter().find(|line| line.look == Look::Chosen);
        line.map(|line| {
            line.text
                .trim_end()
                .rsplit(' ')
                .next()
                .unwrap_or("")
                .to_owned()
        })
    };
    assert_eq!(chosen(&view).as_deref(), Some("disks2"));
    view.key(Key::Char('s'));
    assert_eq!(chosen(&view).as_deref(), Some("disks2"));
    view.key(Key::End);
    assert_eq!(chosen(&view).as_deref(), Some("disks1"));
    view.key(Key::Home);
    assert_eq!(chosen(&view).as_deref(), Some("disk"));
    assert!(!view.key(Key::Char('q')) && !view.key(Key::Interrupt));
}

#[test]
fn the_chosen_row_is_always_on_the_screen() {
    let mut view = view();
    view.bars = false;
    view.key(Key::End);
    let page = view.page((90, 6));
    assert_eq!(page[3].look, Look::Plain);
    assert_eq!((page[4].look, page.len()), (Look::Chosen, 6));
    assert!(page[4].text.trim_end().ends_with("spare"));
}

#[test]
fn a_paused_view_stays_and_goes_on_with_a_new_interval() {
    let mut view = view();
    view.key(Key::Char('p'));
    let mut later = figures(3);
    later.providers[3].counted.read.operations = 777;
    view.take(later.clone());
    let page = text(&view, (90, 24));
    assert!(
        page[0].contains("PAUSED") && page[6].starts_with("    0      0"),
        "{page:?}"
    );
    view.key(Key::Char(' '));
    later.at_ns += 1_000_000_000;
    later.providers[3].counted.read.operations += 5;
    view.take(later);
    let page = text(&view, (90, 24));
    assert!(
        !page[0].contains("PAUSED") && page[6].starts_with("    0      5"),
        "{page:?}"
    );
}

#[test]
fn latencies_begin_anew_and_what_is_not_drawn_is_said() {
    let mut view = view();
    view.key(Key::Char('z'));
    assert!(text(&view, (90, 24)).contains(&"disk: 0 requests timed in 0 s".to_owned()));
    let bars = [(1, 3), (2, 50), (4, 70), (8, 2), (16, 1)];
    assert_eq!(most_of(&bars, 5), (&bars[..], 0, 0));
    assert_eq!(most_of(&bars, 2), (&bars[1..3], 3, 3));
    assert_eq!(most_of(&bars, 0), (&bars[3..3], 123, 3));
}
