//! A model of clients, their links and a server that forgets: every order of writes, FLUSHes (step
//! by step), and deaths of the server, up to a length, and longer ones by chance. The accounts of
//! the links are the real ones.

use crate::nbd::durability::Durability;
use crate::nbd::together::Together;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ugeom_stack::Losses;

const CLIENTS: usize = 3;

/// The connections that a FLUSH visits, and the owner of the account.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// All links that have something to flush; each has an account.
    EachItsOwn,
    /// The client's own link; there is one account for all.
    OneForAll,
}

/// A step of the model: of a client, a link or the server.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize),
    /// Begins a FLUSH of a client, brings it to the next link, or ends it.
    Flush(usize),
    Crash,
}

fn step(number: usize) -> Step {
    match number {
        0 => Step::Crash,
        number if number <= CLIENTS => Step::Write(number - 1),
        number => Step::Flush(number - 1 - CLIENTS),
    }
}

const STEPS: usize = 1 + 2 * CLIENTS;

/// A connection, made in some life of the server. It notices the end of that when it is used.
struct ModelLink {
    life: Option<u64>,
    account: Durability,
}

struct Flush {
    mark: u64,
    left: Vec<usize>,
    /// The writes that it is to cover.
    writes: Vec<u64>,
}

#[derive(Default)]
struct Client {
    mark: u64,
    flush: Option<Flush>,
    /// Writes that were acknowledged, to whomever, and of which it was told nothing bad.
    writes: Vec<u64>,
}

struct World {
    rule: Rule,
    life: u64,
    volatile: BTreeSet<u64>,
    durable: BTreeSet<u64>,
    next_write: u64,
    links: Vec<ModelLink>,
    clients: Vec<Client>,
    losses: Arc<Losses>,
}

impl World {
    fn new(rule: Rule) -> Self {
        let losses: Arc<Losses> = Arc::default();
        let link = |_| ModelLink {
            life: None,
            account: Durability::new(&Together::new(&losses, std::time::Duration::MAX)),
        };
        Self {
            rule,
            life: 0,
            volatile: BTreeSet::new(),
            durable: BTreeSet::new(),
            next_write: 0,
            links: (0..CLIENTS).map(link).collect(),
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            losses,
        }
    }

    /// A link is used: it is connected, or finds that its connection has broken. True when it
    /// reaches the server over the connection that it had.
    fn reach(&mut self, at: usize) -> bool {
        let life = self.links[at].life.replace(self.life);
        let same = life == Some(self.life);
        if life.is_some() && !same {
            self.account(at).broke();
        }
        same
    }

    fn account(&mut self, at: usize) -> &mut Durability {
        let keeper = match self.rule {
            Rule::EachItsOwn => at,
            Rule::OneForAll => 0,
        };
        &mut self.links[keeper].account
    }

    fn take(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Crash => {
                self.volatile.clear();
                self.life += 1;
            }
            Step::Write(at) => {
                self.reach(at);
                self.next_write += 1;
                self.volatile.insert(self.next_write);
                self.account(at).wrote(0..512, 0);
                for client in &mut self.clients {
                    client.writes.push(self.next_write);
                }
            }
            Step::Flush(at) => return self.flush(at),
        }
        Ok(())
    }

    fn flush(&mut self, at: usize) -> Result<(), String> {
        let Some(flush) = &mut self.clients[at].flush else {
            let unflushed = |link: &usize| {
                let account = &self.links[*link].account;
                account.unflushed().load(Ordering::SeqCst)
            };
            let mut left: Vec<usize> = match self.rule {
                Rule::EachItsOwn => (0..CLIENTS).filter(unflushed).collect(),
                Rule::OneForAll => Vec::new(),
            };
            if left.is_empty() {
                left.push(at);
            }
            let client = &mut self.clients[at];
            client.flush = Some(Flush {
                mark: client.mark,
                left,
                writes: client.writes.clone(),
            });
            return Ok(());
        };
        if let Some(link) = flush.left.pop() {
            self.visit(link);
            return Ok(());
        }
        let Some(flush) = self.clients[at].flush.take() else { return Ok(()) };
        let last = self.losses.last();
        let client = &mut self.clients[at];
        if last > flush.mark {
            client.mark = client.mark.max(last);
            let (durable, volatile) = (&self.durable, &self.volatile);
            let lives = |write: &u64| durable.contains(write) || volatile.contains(write);
            client.writes.retain(lives);
            return Ok(());
        }
        let lost = flush
            .writes
            .iter()
            .find(|write| client.writes.contains(write) && !self.durable.contains(write));
        match lost {
            Some(write) => Err(format!("client {at} got OK, and write {write} is gone")),
            None => Ok(()),
        }
    }

    /// A FLUSH over a link, sent and answered.
    fn visit(&mut self, at: usize) {
        // Where the old connection has broken, nothing is left to be flushed.
        if self.reach(at) || self.rule == Rule::OneForAll {
            let covers = self.account(at).covers();
            self.durable.append(&mut self.volatile);
            self.account(at).flushed(covers);
        }
    }
}

fn play(rule: Rule, steps: &[Step]) -> Result<(), String> {
    let mut world = World::new(rule);
    for step in steps {
        world
            .take(*step)
            .map_err(|why| format!("{why}: {steps:?}"))?;
    }
    Ok(())
}

/// All sequences of this length; the first that goes wrong.
fn all(rule: Rule, length: u32) -> Result<(), String> {
    let mut steps = Vec::new();
    for mut number in 0..STEPS.pow(length) {
        steps.clear();
        for _ in 0..length {
            steps.push(step(number % STEPS));
            number /= STEPS;
        }
        play(rule, &steps)?;
    }
    Ok(())
}

fn by_chance(rule: Rule, seeds: u64) -> Result<(), String> {
    for seed in 0..seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let length = random.usize(8..60);
        let steps: Vec<Step> = (0..length).map(|_| step(random.usize(0..STEPS))).collect();
        play(rule, &steps).map_err(|why| format!("seed {seed}: {why}"))?;
    }
    Ok(())
}

#[test]
fn in_no_order_does_a_client_get_ok_for_what_is_lost() {
    assert_eq!(all(Rule::EachItsOwn, 6), Ok(()));
    assert_eq!(by_chance(Rule::EachItsOwn, 5000), Ok(()));
}

#[test]
fn the_model_finds_the_client_that_flushes_over_a_new_link_before_the_old_one_is_looked_at() {
    let steps = [
        Step::Write(0),
        Step::Crash,
        Step::Flush(1),
        Step::Flush(1),
        Step::Flush(1),
    ];
    assert_eq!(play(Rule::EachItsOwn, &steps), Ok(()));
    let found = play(Rule::OneForAll, &steps);
    assert!(found.is_err_and(|why| why.starts_with("client 1 got OK")));
}
