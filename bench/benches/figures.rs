//! The figures.
fn main() {
    let cancelled = std::sync::atomic::AtomicBool::new(false);
    let mut progress = |_: &ugeom_bench::runner::Progress<'_>| {};
    let mut control = ugeom_bench::runner::Control {
        progress: &mut progress,
        cancelled: &cancelled,
    };
    let o = ugeom_bench::layers::Options::default();
    let d = ugeom_bench::layers::run(&o, &ugeom_bench::runner::Machine, &mut control).unwrap();
    let m = &d.processes[0];
    println!(
        "{} rounds {:?} {:?} {:?} {}",
        m.rounds.len(),
        m.ended,
        m.shortened,
        m.precision,
        m.elapsed_ns
    );
    let b = d.blocks();
    for (i, c) in b.cells().iter().enumerate() {
        let s = b.summary(i).unwrap();
        println!("{c:30} {:12.3} sd {:10.3} min {:10.3}", s.mean, s.sd, s.min);
    }
    for f in &d.figures {
        println!(
            "{:25} {} {:?} {:?}",
            f.id,
            f.amount(),
            f.proven,
            f.reached()
        );
    }
    println!("{:?}", d.noise.map(|n| n.to_string()));
}
