//! `cargo bench -p ugeom-classes --bench cache [-- PART...]`: the cost of a cached read, beside its
//! limits. Parts: `hits`, `steps`, `threads`, `ratios`, `others`, `writes`, `misses`; all of them
//! without arguments.
//!
//! The cases of a part run in turn, in another order each round, and are compared within rounds.

mod hits;
mod libraries;
mod misses;
mod others;
mod policies;
mod ratios;
mod rounds;
mod steps;
mod threads;
mod writes;

fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let parts: [(&str, fn()); 7] = [
        ("steps", steps::run),
        ("hits", hits::run),
        ("threads", threads::run),
        ("ratios", ratios::run),
        ("others", others::run),
        ("writes", writes::run),
        ("misses", misses::run),
    ];
    for (name, run) in parts {
        if chosen.is_empty() || chosen.iter().any(|wanted| wanted == name) {
            println!("\n== {name}");
            run();
        }
    }
}
