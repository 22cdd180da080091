//! The options of the buffer cache.

use ugeom_classes::cache::options::{Below, Settings, Writing};
use ugeom_classes::spec::parse;

/// The first byte chooses the sectors below, the rest is what stands behind `cache:`. Options are
/// refused with the place of the fault, or are those of a cache that can be built.
pub fn options(data: &[u8]) {
    const MEMORY_BYTES: u64 = 1 << 34;
    let Some((first, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let sector_bytes = [512, 4096, 520, 65536, 1 << 20][usize::from(*first) % 5];
    let Ok(target) = parse(&format!("md | cache:{text}"), &["md", "cache"]) else { return };
    // The text may bring further layers.
    for layer in target
        .layers
        .iter()
        .filter(|layer| layer.class.value == "cache")
    {
        let below = Below {
            name: "md0",
            sector_bytes,
        };
        let arguments = layer.arguments(&["size"]);
        match arguments.and_then(|given| Settings::read(&given, below, MEMORY_BYTES)) {
            Ok(settings) => {
                let (buffers, block_bytes) = (u64::from(settings.buffers), settings.block_bytes);
                assert!(buffers > 0 && buffers * block_bytes <= MEMORY_BYTES);
                assert!(block_bytes.is_power_of_two() && block_bytes % sector_bytes == 0);
                if let Writing::Back { limit, .. } = settings.writing {
                    assert!(limit > 0 && u64::from(limit) <= buffers);
                }
            }
            Err(error) => assert!(error.to_string().contains('^')),
        }
    }
}
