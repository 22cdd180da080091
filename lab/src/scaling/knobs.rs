//! The knobs: ways for a stack to work, from the one that GEOM had before the seed's measurements
//! to ours, a step each.

use serde::{Deserialize, Serialize};
use ugeom_classes::TargetOptions;
use ugeom_stack::{Dispatch, Pools, Registry, StackKnobs, Statistics};

/// How long threads of queued dispatch spin in the rows that spin, ns.
const SPIN_NS: u64 = 20_000;

/// A way to work, with the name of its cases and its words in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knob {
    /// The first part of the names of its cases.
    pub id: String,
    /// The knob, in a few words.
    pub what: String,
    /// The `--set` arguments that select it.
    pub set: String,
    /// The name of the published row, for those that have one.
    pub published: Option<String>,
}

/// The settings of one mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub dispatch: Dispatch,
    pub statistics: Statistics,
    pub registry: Registry,
    pub pools: Pools,
}

const PARKED: Dispatch = Dispatch::Queued { spin_ns: 0 };
const SPINNING: Dispatch = Dispatch::Queued { spin_ns: SPIN_NS };
/// As `kern.geom.collectstats=1`: every request is counted and timed.
const ON: Statistics = Statistics::Time { one_in: 1 };

/// Where the ladder begins.
const FIRST: Setting = Setting {
    dispatch: PARKED,
    statistics: ON,
    registry: Registry::Locked,
    pools: Pools::Shared,
};

/// The last row of the ladder: all knobs on.
const LAST: Setting = Setting {
    dispatch: Dispatch::Direct,
    statistics: Statistics::Off,
    registry: Registry::LockFree,
    pools: Pools::PerCore,
};

/// The id of the last rung.
pub const FINAL: &str = "per-core pools";

impl Setting {
    fn dispatch(self, dispatch: Dispatch) -> Self {
        Self { dispatch, ..self }
    }

    fn statistics(self, statistics: Statistics) -> Self {
        Self { statistics, ..self }
    }

    fn registry(self, registry: Registry) -> Self {
        Self { registry, ..self }
    }

    fn pools(self, pools: Pools) -> Self {
        Self { pools, ..self }
    }

    /// How a target is opened to work so.
    pub(super) fn options(self) -> TargetOptions {
        TargetOptions {
            writable: true,
            knobs: StackKnobs {
                taste: false,
                dispatch: self.dispatch,
                statistics: self.statistics,
                registry: self.registry,
                pools: self.pools,
                ..StackKnobs::default()
            },
            ..TargetOptions::default()
        }
    }

    /// The arguments that set it; none for the default.
    fn text(self) -> String {
        let mut words = Vec::new();
        match self.statistics {
            Statistics::Off => words.push("statistics=off".to_owned()),
            Statistics::Counts => {}
            Statistics::Time { one_in } => {
                words.push(format!("statistics=time sample={one_in}"));
            }
        }
        if let Dispatch::Queued { spin_ns } = self.dispatch {
            let spin = if spin_ns == 0 { "0" } else { "20us" };
            words.push(format!("dispatch=queued spin={spin}"));
        }
        if self.registry == Registry::Locked {
            words.push("registry=locked".to_owned());
        }
        if self.pools == Pools::Shared {
            words.push("pools=shared".to_owned());
        }
        words.join(" ")
    }

    fn knob(self, id: &str, what: &str, published: Option<&str>) -> (Knob, Self) {
        let knob = Knob {
            id: id.to_owned(),
            what: what.to_owned(),
            set: self.text(),
            published: published.map(str::to_owned),
        };
        (knob, self)
    }
}

/// The ladder: each row adds one knob to the row before.
pub(super) fn ladder() -> Vec<(Knob, Setting)> {
    let off = FIRST.statistics(Statistics::Off);
    let direct = off.dispatch(Dispatch::Direct);
    let lockfree = direct.registry(Registry::LockFree);
    let published = super::published::knob;
    vec![
        FIRST.knob(
            "statistics on",
            "queued, all locks, statistics on",
            published(0),
        ),
        off.knob("statistics off", "statistics off", published(1)),
        direct.knob("direct", "direct dispatch", published(2)),
        lockfree.knob("lock-free registry", "no lock around devices", published(3)),
        LAST.knob(FINAL, "a pool of bios for each core", published(4)),
    ]
}

/// The queued rows of the ladder with threads that spin before they park: each is compared with
/// the row of the ladder that parks.
pub(super) fn spinning() -> Vec<(Knob, Setting)> {
    let on = FIRST.dispatch(SPINNING);
    let off = on.statistics(Statistics::Off);
    vec![
        on.knob(
            "statistics on, spinning",
            "statistics on, threads spin",
            None,
        ),
        off.knob(
            "statistics off, spinning",
            "statistics off, threads spin",
            None,
        ),
    ]
}

/// The last row of the ladder with one knob taken away each.
pub(super) fn taken_away() -> Vec<(Knob, Setting)> {
    let counts = LAST.statistics(Statistics::Counts);
    let on = LAST.statistics(ON);
    let queued = |dispatch| LAST.dispatch(dispatch);
    let locked = LAST.registry(Registry::Locked);
    let shared = LAST.pools(Pools::Shared);
    vec![
        counts.knob("with counts", "statistics: counts", None),
        on.knob("with times", "statistics: counts and every time", None),
        queued(PARKED).knob("queued again", "queued dispatch, parked", None),
        queued(SPINNING).knob("queued again, spinning", "queued dispatch, spinning", None),
        locked.knob(REGISTRY_AWAY, "the registry under a lock", None),
        shared.knob(POOLS_AWAY, "one pool under a lock", None),
    ]
}

/// The last row without the lock-free registry, and without the pools of its own.
pub(super) const REGISTRY_AWAY: &str = "locked registry";
/// The last row with one pool of requests for all cores.
pub(super) const POOLS_AWAY: &str = "shared pool";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_changes_one_thing() {
        let ladder = ladder();
        for pair in ladder.windows(2) {
            let (a, b) = (pair[0].1, pair[1].1);
            let changed = [
                a.dispatch != b.dispatch,
                a.statistics != b.statistics,
                a.registry != b.registry,
                a.pools != b.pools,
            ];
            let count = changed.iter().filter(|changed| **changed).count();
            assert_eq!(count, 1, "{}", pair[1].0.id);
        }
        assert_eq!(
            ladder.last().map(|last| (last.0.id.as_str(), last.1)),
            Some((FINAL, LAST))
        );
        assert_eq!(ladder[0].1, FIRST);
    }

    #[test]
    fn what_a_row_says_to_set_is_what_it_measures() {
        for (knob, setting) in ladder().into_iter().chain(spinning()).chain(taken_away()) {
            let mut set = ugeom_classes::spec::Settings::default();
            for word in knob.set.split_whitespace() {
                set = ugeom_classes::spec::Settings::parse(word)
                    .unwrap()
                    .over(set);
            }
            let options = TargetOptions {
                set,
                ..TargetOptions::default()
            };
            let target = ugeom_classes::open_target("zero:clear=0", &options).unwrap();
            let has = target.stack.options();
            let measured = setting.options();
            assert_eq!(has.dispatch, measured.knobs.dispatch, "{}", knob.id);
            assert_eq!(has.statistics, measured.knobs.statistics, "{}", knob.id);
            assert_eq!(has.registry, measured.knobs.registry, "{}", knob.id);
            assert_eq!(has.pools, measured.knobs.pools, "{}", knob.id);
        }
    }
}
