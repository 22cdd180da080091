//! The part of a stack that a server shows, and its names.
//!
//! ```text
//!   Shown::all("disk.img")        disk.img, disk.imgs1, ...   the first is the default one
//!   Shown::only("disk.imgs1")     disk.imgs1
//!   several targets               those of each; one with a name of its own: its top, as that name
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};
use ugeom_stack::{ProviderId, ProviderView, Tree};

/// The shown part of a stack: the providers of one target or of several.
#[derive(Clone, Debug)]
pub struct Shown {
    targets: Vec<ShownTarget>,
}

/// The providers of one target.
#[derive(Clone, Debug)]
pub struct ShownTarget {
    /// The name of its provider on top.
    pub top: String,
    /// The shown providers.
    pub extent: Extent,
    /// Clients only read it, whatever the server lets them do with others.
    pub read_only: bool,
}

/// The shown providers of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of the stack.
    All,
    /// All that stand on this one, and itself.
    Above(ProviderId),
    /// The one on top.
    Top,
    /// The one on top, under this name.
    Named(String),
}

/// A provider as it is shown.
pub struct Seen {
    /// The provider; its `name` is the one that it is shown under.
    pub view: ProviderView,
    /// Clients only read it.
    pub read_only: bool,
}

impl Shown {
    /// All providers of a stack, of which `top` is the default one.
    pub fn all(top: impl Into<String>) -> Self {
        Self::of(vec![ShownTarget::new(top, Extent::All)])
    }

    /// One provider.
    pub fn only(top: impl Into<String>) -> Self {
        Self::of(vec![ShownTarget::new(top, Extent::Top)])
    }

    /// Several targets of one stack. The top of the first is the default provider.
    pub fn of(targets: Vec<ShownTarget>) -> Self {
        Self { targets }
    }

    /// The name of the default provider.
    pub(crate) fn default_name(&self) -> &str {
        self.targets.first().map_or("", ShownTarget::name)
    }

    /// The name that was given to this provider, where clients find it under another than its own.
    pub(crate) fn given_name(&self, provider: &str) -> Option<&str> {
        let mut targets = self.targets.iter();
        let target = targets.find(|it| it.top == provider)?;
        Some(target.name()).filter(|name| *name != provider)
    }

    /// The shown providers of the present stack: the top of each target, then the others. A name is
    /// shown once.
    pub fn of_tree(&self, tree: &Tree) -> Vec<Seen> {
        let mut seen: Vec<Seen> = Vec::new();
        let mut names = HashSet::new();
        let mut add = |view: &ProviderView, name: &str, read_only: bool| {
            if names.insert(name.to_owned()) {
                let mut view = view.clone();
                name.clone_into(&mut view.name);
                seen.push(Seen { view, read_only });
            }
        };
        let mut tops: HashMap<&str, &ProviderView> = HashMap::new();
        for view in tree.providers() {
            tops.entry(&view.name).or_insert(view);
        }
        for target in &self.targets {
            if let Some(view) = tops.get(target.top.as_str()) {
                add(view, target.name(), target.read_only);
            }
        }
        for (target, others) in self.targets.iter().zip(self.others(tree)) {
            for view in others {
                add(view, &view.name, target.read_only);
            }
        }
        seen
    }

    /// The shown providers of each target beside its top, found in one pass: there may be a
    /// thousand targets. Geoms come in the order in which they were made: each behind those that it
    /// stands on.
    fn others<'a>(&self, tree: &'a Tree) -> Vec<Vec<&'a ProviderView>> {
        let mut others = vec![Vec::new(); self.targets.len()];
        let mut targets_of: HashMap<ProviderId, BTreeSet<usize>> = HashMap::new();
        for (number, target) in self.targets.iter().enumerate() {
            match target.extent {
                Extent::All => others[number] = tree.providers().collect(),
                Extent::Above(bottom) => {
                    targets_of.entry(bottom).or_default().insert(number);
                }
                Extent::Top | Extent::Named(_) => {}
            }
        }
        for geom in &tree.geoms {
            let below = geom.consumers.iter().filter_map(|it| it.provider);
            let below = below.filter_map(|id| targets_of.get(&id));
            let below: BTreeSet<usize> = below.flatten().copied().collect();
            for view in &geom.providers {
                if !below.is_empty() {
                    targets_of.entry(view.id).or_default().extend(&below);
                }
                for number in targets_of.get(&view.id).into_iter().flatten() {
                    others[*number].push(view);
                }
            }
        }
        others
    }
}

impl ShownTarget {
    /// A target that clients may write to if the server lets them.
    pub fn new(top: impl Into<String>, extent: Extent) -> Self {
        let (top, read_only) = (top.into(), false);
        Self {
            top,
            extent,
            read_only,
        }
    }

    /// The name under which its top is shown.
    pub fn name(&self) -> &str {
        match &self.extent {
            Extent::Named(name) => name,
            _ => &self.top,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ugeom_classes::{TargetOptions, TargetText};

    fn opened(texts: [&str; 2]) -> [ugeom_classes::Target; 2] {
        let texts = texts.map(|text| TargetText::parse(text).expect("a target"));
        let options = TargetOptions::default();
        let first = texts[0].open(&options).expect("opens");
        let second = texts[1].open_beside(&first, &options).expect("opens");
        [first, second]
    }

    fn names(shown: &Shown, tree: &Tree) -> Vec<String> {
        let seen = shown.of_tree(tree).into_iter();
        seen.map(|it| it.view.name).collect()
    }

    #[test]
    fn each_target_shows_what_stands_on_it() {
        let [first, second] = opened(["md:1m | nop", "md:2m | nop | nop"]);
        let tree = first.stack.tree();
        assert_eq!(
            names(&Shown::all(&*first.name), &tree),
            ["md0.nop", "md0", "md1", "md1.nop", "md1.nop.nop"]
        );
        assert_eq!(names(&Shown::only(&*second.name), &tree), ["md1.nop.nop"]);
        let above = |target: &ugeom_classes::Target| {
            ShownTarget::new(&*target.name, Extent::Above(target.bottom))
        };
        assert_eq!(
            names(&Shown::of(vec![above(&second)]), &tree),
            ["md1.nop.nop", "md1", "md1.nop"]
        );
        let named = ShownTarget::new(&*first.name, Extent::Named("a".to_owned()));
        let both = Shown::of(vec![named, above(&second)]);
        assert_eq!(both.default_name(), "a");
        assert_eq!(names(&both, &tree), ["a", "md1.nop.nop", "md1", "md1.nop"]);
    }

    #[test]
    fn a_name_that_was_given_is_not_taken_by_another_provider() {
        let [first, second] = opened(["md:1m | nop", "md:2m"]);
        let all = ShownTarget::new(&*first.name, Extent::Above(first.bottom));
        let named = ShownTarget::new(&*second.name, Extent::Named("md0".to_owned()));
        let both = Shown::of(vec![all, named]);
        let tree = first.stack.tree();
        assert_eq!(names(&both, &tree), ["md0.nop", "md0"]);
        let sizes = both.of_tree(&tree).into_iter();
        let sizes: Vec<u64> = sizes.map(|it| it.view.mediasize_bytes).collect();
        assert_eq!(sizes, [1 << 20, 2 << 20]);
    }
}
