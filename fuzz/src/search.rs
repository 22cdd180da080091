//! The fuzz target of the search for lost partitions.

/// A search for lost partitions: what is offered lies on the medium, whatever its structures state.
pub fn search(data: &[u8]) {
    use ugeom_format::search::{ScriptScheme, Search, gpart_script, sfdisk_script};
    let Some((choice, disk)) = data.split_first() else { return };
    let sector = if choice & 1 == 0 { 512 } else { 4096 };
    let disk = &disk[..disk.len() / sector * sector];
    let mut search = Search::new(disk.len() as u64, sector as u32);
    let mut read = |offset: u64, length: usize| {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = at.saturating_add(length).min(disk.len());
        Ok(disk.get(at..end).unwrap_or_default().to_vec())
    };
    search.look(0, disk, &mut read);
    search.read_groups(&mut read);
    let lost = search.partitions();
    let sectors = (disk.len() / sector) as u64;
    for one in &lost {
        assert!(one.sectors > 0 && one.first + one.sectors <= sectors);
    }
    let scheme = ScriptScheme::fitting(&lost, sectors, sector as u32);
    for scheme in [scheme, ScriptScheme::Mbr] {
        let _ = (
            gpart_script(&lost, scheme),
            sfdisk_script(&lost, scheme, sector as u32),
            scheme.left_out(&lost, true),
        );
    }
    let _ = (search.ends(), search.samples(64));
}
