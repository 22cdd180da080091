//! The description of layers in a document.

use serde::{Deserialize, Serialize};

/// A finished experiment about layers.
pub type Document = ugeom_harness::document::Document<Subject>;

/// The name of the experiment in documents.
pub const EXPERIMENT: &str = "layers";

/// The providers from the bottom up that `lab layers` measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The target as the user wrote it; none for the memory disk of the experiment's own.
    pub target: Option<String>,
    /// The providers from the bottom to the deepest.
    pub chain: Vec<Link>,
    /// Bytes of one read.
    pub read_bytes: u64,
    /// The other sizes that were read, bytes.
    pub sizes_bytes: Vec<u64>,
    /// Numbers of layers of the stacks of equal layers.
    pub depths: Vec<u64>,
    /// Whether runs have exactly the loops of 2002.
    pub faithful: bool,
    /// Whether the full matrix was measured.
    pub all: bool,
    /// The time of a real disk's read, to hold the cost of layers against.
    pub disk: Disk,
    /// The servers through which the deepest provider was read.
    #[serde(default)]
    pub through: Vec<String>,
    /// The cases left out, with reasons.
    pub left_out: Vec<String>,
}

/// A provider of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The provider's name, `md0s1a`.
    pub provider: String,
    /// Its class, upper case.
    pub class: String,
    /// The layers above the disk, from the top, as the mail of 2002 lists them.
    pub layers: String,
    /// Whether a plain call that reads the same bytes was measured.
    pub plain: bool,
}

/// The time of one read from a real disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Time of one small random read, ns.
    pub read_ns: f64,
    /// Where it comes from, in plain words.
    pub source: String,
}

impl Disk {
    /// A flash drive of today, when none was measured: about 100 us for a small random read (data
    /// sheets of NVMe drives say 50 to 100 us; the queue and the interrupt add to it).
    pub(crate) fn assumed() -> Self {
        Self {
            read_ns: 100_000.0,
            source: "assumed: a small read from an NVMe drive".to_owned(),
        }
    }

    /// The time of the target's own disk, read directly (O_DIRECT).
    pub fn measured(read_ns: f64) -> Self {
        let source = "measured directly (O_DIRECT); the drive may have a cache";
        Self {
            read_ns,
            source: source.to_owned(),
        }
    }
}

impl Subject {
    /// The provider at the bottom.
    pub fn bottom(&self) -> &str {
        self.chain.first().map_or("", |link| &link.provider)
    }

    /// Name of the uppermost provider of the chain: most layers below it.
    pub fn deepest(&self) -> &str {
        self.chain.last().map_or("", |link| &link.provider)
    }
}

/// The layers of a provider as the mail of 2002 lists them, from the classes of its chain, bottom
/// first: `dev, bsd, mbr, disk`.
pub fn layers(classes: &[&str]) -> String {
    let mut words = vec!["dev".to_owned()];
    words.extend(
        classes
            .iter()
            .skip(1)
            .rev()
            .map(|class| class.to_lowercase()),
    );
    words.push("disk".to_owned());
    words.join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn layers_are_named_as_in_the_mail() {
        assert_eq!(super::layers(&["MD"]), "dev, disk");
        assert_eq!(super::layers(&["MD", "MBR", "BSD"]), "dev, bsd, mbr, disk");
    }
}
