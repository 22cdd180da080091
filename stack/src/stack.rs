//! [`Stack`]: a topology with its classes, its dispatch and its statistics, and the changes that
//! users and classes make to it.
//!
//! Two locks. `control` serialises changes and is held while classes taste, which does I/O;
//! `topology` guards the data and is never held across I/O, so that the data path can take a new
//! snapshot at any time. Events are worked off by the thread that caused them, before its call
//! returns: GEOM has a thread of its own for that (`g_event`), which here would only make every
//! change asynchronous.

use crate::access::Delta;
use crate::bio::{Request, SharedPool};
use crate::channel::Channel;
use crate::class::{Class, Geom, Plan, TasteError};
use crate::cx::Cx;
use crate::devices::Devices;
use crate::error::{Errno, IoError, StackError};
use crate::generations::Generations;
use crate::home::Home;
use crate::losses::LostAtTheEnd;
use crate::lower::Lower;
use crate::opened::{Opened, Purpose};
use crate::options::{Dispatch, Pools, Registry, StackKnobs};
use crate::queue::Queues;
use crate::snapshot::Snapshot;
use crate::statistics::{self, CounterBlock, Statistics, Totals};
use crate::strategy::Strategy;
use crate::taste::Taster;
use crate::topology::{ConsumerId, Event, GeomId, GeomObject, ProviderId, Topology, Tree};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use ugeom_machine::mutex::Mutex;

/// The geom of an opened handle: it has no provider, so nothing is ever asked of it.
pub(crate) struct Handle;

impl Geom for Handle {
    fn start(&self, request: Request<'_>, _cx: &mut Cx) -> crate::Next {
        request.fail(Errno::OPNOTSUPP, "a handle has no provider")
    }
}

/// State shared by the handles, channels and threads of a stack.
pub(crate) struct Shared {
    /// How the stack was made; `statistics` has the present counting.
    options: StackKnobs,
    pub(crate) statistics: Mutex<Statistics>,
    this: Weak<Self>,
    control: Mutex<()>,
    pub(crate) topology: Generations<Topology, Snapshot>,
    pub(crate) registry: Mutex<statistics::Registry>,
    /// The references of the locked registry; empty for the lock-free one.
    devices: Arc<Devices>,
    /// The one pool of all channels, when they share it.
    pub(crate) pool: Option<Arc<SharedPool>>,
    classes: Mutex<Vec<Arc<dyn Class>>>,
    taste_errors: Mutex<Vec<TasteError>>,
    /// Tasting found a device unreachable: the caller whose change caused it fails with that.
    unreachable: Mutex<Option<IoError>>,
    homes: Mutex<Vec<Weak<Home>>>,
    defects: AtomicU64,
    queues: OnceLock<Queues>,
}

/// A stack of geoms.
#[derive(Clone)]
pub struct Stack {
    pub(crate) shared: Arc<Shared>,
}

impl Stack {
    /// An empty stack whose providers will be tasted by `classes`.
    ///
    /// # Errors
    /// `System` when the threads of queued dispatch cannot be started, or nothing is left to make
    /// a mailbox of.
    pub fn new(options: StackKnobs, classes: Vec<Arc<dyn Class>>) -> Result<Self, StackError> {
        let pool = match options.pools {
            Pools::PerCore => None,
            Pools::Shared => {
                let pool = SharedPool::new();
                Some(pool.map_err(|error| system("making a mailbox", &error))?)
            }
        };
        let shared = Arc::new_cyclic(|this| Shared {
            options,
            statistics: Mutex::new(options.statistics),
            this: Weak::clone(this),
            control: Mutex::new(()),
            topology: Generations::new(Topology::default()),
            registry: Mutex::new(statistics::Registry::default()),
            devices: Arc::default(),
            pool,
            classes: Mutex::new(classes),
            taste_errors: Mutex::new(Vec::new()),
            unreachable: Mutex::new(None),
            homes: Mutex::new(Vec::new()),
            defects: AtomicU64::new(0),
            queues: OnceLock::new(),
        });
        if let Dispatch::Queued { spin_ns } = options.dispatch {
            let queues = Queues::start(&shared, spin_ns);
            let queues = queues.map_err(|error| system("starting g_down and g_up", &error))?;
            let _ = shared.queues.set(queues);
        }
        Ok(Self { shared })
    }

    /// Makes a geom with a consumer on each of `lower`, and its providers; returns these. Classes
    /// taste them before this returns.
    ///
    /// # Errors
    /// See [`StackError`]; nothing is left behind then. `Io` where tasting found the device
    /// unreachable (ENXIO): the geom stays, and there is nothing to read from it.
    pub fn create(
        &self,
        class: &'static str,
        plan: Plan,
        lower: &[ProviderId],
    ) -> Result<Vec<ProviderId>, StackError> {
        let _control = self.shared.control.lock();
        let made = self.shared.make(class, plan, lower);
        let providers = made.and_then(|geom| {
            self.shared.topology.with(|topology| {
                topology.asked_for(geom);
                Ok(topology.geom(geom)?.providers.clone())
            })
        });
        self.shared.work_off_events();
        match self.shared.unreachable.lock().take() {
            Some(error) => Err(StackError::Io(error)),
            None => providers,
        }
    }

    /// Takes a geom away that is not in use. Data that it and the geoms above it keep from the
    /// media is written first ([`Geom::settle`]).
    ///
    /// # Errors
    /// `Busy` or `NoGeom`; `Io` when something could not be written. Then nothing has changed.
    pub fn destroy(&self, geom: GeomId) -> Result<(), StackError> {
        self.take_away(geom, false)
    }

    /// The same of a geom in use: its providers are orphaned first, and it withers when their
    /// holders let go. Data that cannot be written is lost.
    ///
    /// # Errors
    /// `NoGeom`.
    pub fn destroy_forced(&self, geom: GeomId) -> Result<(), StackError> {
        self.take_away(geom, true)
    }

    fn take_away(&self, geom: GeomId, force: bool) -> Result<(), StackError> {
        let _control = self.shared.control.lock();
        let settled = settle(&self.shared.topology.with(|t| t.with_those_above(geom)));
        if !force {
            settled.map_err(StackError::Io)?;
        }
        let destroyed = self.shared.touch(|topology| {
            let object = topology.geom(geom)?;
            let open = |id: &ProviderId| {
                topology
                    .provider(*id)
                    .is_ok_and(|p| !p.consumers.is_empty())
            };
            if !force && object.providers.iter().any(open) {
                let why = "a provider of it is in use".to_owned();
                return Err(StackError::Busy(object.name.clone(), why));
            }
            topology.wither(geom, Errno::NXIO);
            topology.wash();
            Ok(())
        });
        self.shared.work_off_events();
        destroyed
    }

    /// Returns the data that is lost when the stack is given up now. Handles are to be closed
    /// before: layers write what they keep when the last writer leaves.
    ///
    /// # Errors
    /// The uppermost layer with a loss that was reported to no consumer, that could not write what
    /// it had accepted, or whose file was removed.
    pub fn finish(&self) -> Result<(), LostAtTheEnd> {
        let _control = self.shared.control.lock();
        let mut geoms = self.shared.topology.with(|topology| {
            let geoms = topology.geoms.values();
            // Handles are geoms, too; the owner of one has its own way to hear.
            let layers = geoms.filter(|geom| !geom.providers.is_empty());
            let facts = |geom: &GeomObject| {
                let (methods, losses) = (Arc::clone(&geom.methods), Arc::clone(&geom.losses));
                (geom.rank, geom.name.clone(), methods, losses)
            };
            layers.map(facts).collect::<Vec<_>>()
        });
        geoms.sort_by_key(|(rank, ..)| std::cmp::Reverse(*rank));
        for (_, geom, methods, losses) in geoms {
            if let Some(unsaved) = methods.unsaved() {
                return Err(LostAtTheEnd::Unwritten { geom, unsaved });
            }
            if let Some(why) = losses.unheard() {
                return Err(LostAtTheEnd::Unheard { geom, why });
            }
            if let Some(why) = methods.ends_with_process() {
                return Err(LostAtTheEnd::Removed { geom, why });
            }
        }
        Ok(())
    }

    /// The provider of that name.
    ///
    /// # Errors
    /// `NoProvider`, with the names that there are.
    pub fn find(&self, name: &str) -> Result<ProviderId, StackError> {
        self.shared.topology.with(|topology| topology.find(name))
    }

    /// Opens a provider; dropping the handle closes it.
    ///
    /// # Errors
    /// `Access`, with GEOM's rule that forbids it, or `NoProvider`.
    pub fn open(&self, provider: ProviderId, delta: Delta) -> Result<Opened, StackError> {
        let (consumer, mark) = self.shared.change(|topology| {
            let consumer = Shared::open(topology, provider, delta)?;
            Ok((consumer, topology.mark_of(consumer.0)))
        })?;
        let shared = Arc::clone(&self.shared);
        let held = Purpose::Open(delta);
        Ok(Opened::new(shared, consumer, provider, held, mark))
    }

    /// The name of a provider that the first writer to this one would destroy for good. `None`:
    /// writing destroys nothing, or only what classes find again afterwards.
    #[must_use]
    pub fn lost_to_writer(&self, provider: ProviderId) -> Option<String> {
        let lost = |topology: &mut Topology| topology.lost_to_writer(provider).map(str::to_owned);
        self.shared.topology.with(lost)
    }

    /// Everything there is, to look at.
    pub fn tree(&self) -> Tree {
        self.shared.topology.with(|topology| topology.tree())
    }

    /// A channel for the calling thread, for up to `depth` bios at a time.
    ///
    /// # Errors
    /// `System` when its mailbox cannot be made.
    pub fn channel(&self, depth: usize) -> Result<Channel, StackError> {
        Channel::new(&self.shared, depth, false)
    }

    /// A provider's media has another size.
    ///
    /// # Errors
    /// `NoProvider`.
    pub fn resize(&self, provider: ProviderId, mediasize_bytes: u64) -> Result<(), StackError> {
        self.post(Event::Resize(provider, mediasize_bytes))
    }

    /// Asks the geoms at the bottom whether their media have grown, and resizes their providers:
    /// layers that show all of one grow with it, and classes taste it again.
    pub fn notice_growth(&self) {
        let bottoms = self.shared.topology.with(|topology| {
            let bottoms = topology.geoms.values();
            let bottoms = bottoms.filter(|geom| geom.consumers.is_empty());
            let asked = |geom: &GeomObject| {
                let [provider] = geom.providers[..] else { return None };
                Some((provider, Arc::clone(&geom.methods)))
            };
            bottoms.filter_map(asked).collect::<Vec<_>>()
        });
        for (provider, geom) in bottoms {
            let Some(bytes) = geom.media_bytes() else { continue };
            let grows = self.shared.topology.with(|topology| {
                let object = topology.provider(provider).ok();
                object.is_some_and(|object| object.mediasize < bytes)
            });
            if grows {
                // Nothing is lost if the provider goes away meanwhile.
                let _ = self.resize(provider, bytes);
            }
        }
    }

    /// A provider is gone for good.
    ///
    /// # Errors
    /// `NoProvider`.
    pub fn orphan(&self, provider: ProviderId, errno: Errno) -> Result<(), StackError> {
        self.post(Event::Orphan(provider, errno))
    }

    fn post(&self, event: Event) -> Result<(), StackError> {
        self.shared.change(|topology| {
            let (Event::Taste(id)
            | Event::Orphan(id, _)
            | Event::Resize(id, _)
            | Event::Spoil { provider: id, .. }) = event;
            topology.provider(id)?;
            topology.events.push_back(event);
            Ok(())
        })
    }

    /// Lets one class taste one provider, even when tasting is off, and insists on it
    /// ([`Taster::insists`](crate::Taster::insists)). Returns the new geom, if any.
    ///
    /// # Errors
    /// The error of opening the provider, or making the geom; `Invalid` with the class's own
    /// words when there is metadata that it cannot use.
    pub fn taste_with(
        &self,
        provider: ProviderId,
        class: &Arc<dyn Class>,
    ) -> Result<Option<GeomId>, StackError> {
        let _control = self.shared.control.lock();
        let made = self.shared.taste_one(provider, class);
        if let (Ok(Some(geom)), false) = (&made, self.shared.options.taste) {
            let asked_for = |topology: &mut Topology| topology.asked_for(*geom);
            self.shared.topology.with(asked_for);
        }
        self.shared.work_off_events();
        made
    }

    /// The metadata that classes found too damaged to use, since the stack was made.
    pub fn taste_errors(&self) -> Vec<TasteError> {
        self.shared.taste_errors.lock().clone()
    }

    /// The figures of a provider: the sums over its consumers, those that are gone included.
    ///
    /// # Errors
    /// `NoProvider`.
    pub fn statistics(&self, provider: ProviderId) -> Result<Totals, StackError> {
        self.shared.topology.with(|topology| {
            let object = topology.provider(provider)?;
            let registry = self.shared.registry.lock();
            let mut totals = object.past.clone();
            for id in &object.consumers {
                if let Some(consumer) = topology.consumers.get(id) {
                    totals.add(&registry.totals(consumer.stat));
                }
            }
            Ok(totals)
        })
    }

    /// How the stack works.
    pub fn options(&self) -> StackKnobs {
        StackKnobs {
            statistics: *self.shared.statistics.lock(),
            ..self.shared.options
        }
    }

    /// Bios that layers dropped instead of completing; anything but 0 is a defect of a class.
    pub fn defects(&self) -> u64 {
        let homes = self.shared.homes.lock();
        let living: u64 = homes
            .iter()
            .filter_map(Weak::upgrade)
            .map(|home| home.defects())
            .sum();
        living + self.shared.defects.load(Ordering::Relaxed)
    }
}

/// Lets geoms flush; returns the first error.
fn settle(geoms: &[Arc<dyn Geom>]) -> Result<(), IoError> {
    let all: Vec<_> = geoms.iter().map(|geom| geom.settle()).collect();
    all.into_iter().collect()
}

impl Shared {
    /// Makes a geom, and shows it its way down. The control lock is held.
    fn make(
        &self,
        class: &'static str,
        plan: Plan,
        lower: &[ProviderId],
    ) -> Result<GeomId, StackError> {
        let methods = Arc::clone(&plan.geom);
        let geom = self.touch(|topology| topology.create(class, plan, lower))?;
        if methods.does_own_io() {
            let consumers = self.topology.with(|topology| topology.own_entries(geom));
            methods.attached(Lower::new(Weak::clone(&self.this), consumers));
        }
        Ok(geom)
    }

    /// Gives up a handle. Before its last writer leaves, a geom writes what it keeps from the
    /// media, while nothing can be opened.
    pub(crate) fn give_up(&self, consumer: ConsumerId, held: Purpose) -> Result<(), IoError> {
        let delta = match held {
            Purpose::Open(delta) => delta,
            Purpose::Tasting => {
                self.touch(|topology| Self::close(topology, consumer, Delta::READ));
                return Ok(());
            }
            Purpose::Own => return Ok(()),
        };
        let _control = self.control.lock();
        let leaving = |t: &mut Topology| t.losing_writers(consumer, delta.reversed());
        let settled = settle(&self.topology.with(leaving));
        self.touch(|topology| Self::close(topology, consumer, delta));
        self.work_off_events();
        settled
    }

    /// Changes the topology and its consequences.
    fn change<R>(
        &self,
        with: impl FnOnce(&mut Topology) -> Result<R, StackError>,
    ) -> Result<R, StackError> {
        let _control = self.control.lock();
        let result = self.touch(with);
        self.work_off_events();
        result
    }

    /// Changes the topology and makes the current snapshot old.
    pub(crate) fn touch<R>(&self, with: impl FnOnce(&mut Topology) -> R) -> R {
        self.topology.change(|topology| {
            let result = with(topology);
            self.fold_gone(topology);
            result
        })
    }

    /// Adds the figures of consumers that are gone to those of their providers.
    fn fold_gone(&self, topology: &mut Topology) {
        if topology.gone.is_empty() {
            return;
        }
        let mut registry = self.registry.lock();
        for (provider, stat) in std::mem::take(&mut topology.gone) {
            let (totals, free) = registry.retire(stat);
            if let Some(provider) = provider.and_then(|id| topology.providers.get_mut(&id)) {
                provider.past.add(&totals);
            }
            for place in free {
                topology.put_stat(place);
            }
        }
    }

    fn open(
        topology: &mut Topology,
        provider: ProviderId,
        delta: Delta,
    ) -> Result<(ConsumerId, u32), StackError> {
        let (consumer, entry) = topology.create_handle(provider, Arc::new(Handle))?;
        if let Err(error) = topology.access(consumer, delta) {
            Self::forget(topology, consumer);
            return Err(error);
        }
        Ok((consumer, entry))
    }

    fn forget(topology: &mut Topology, consumer: ConsumerId) {
        if let Some(geom) = topology
            .consumers
            .get(&consumer)
            .map(|consumer| consumer.geom)
        {
            topology.remove_geom(geom);
        }
    }

    fn close(topology: &mut Topology, consumer: ConsumerId, delta: Delta) {
        // A pure close does not fail.
        let _ = topology.access(consumer, delta.reversed());
        Self::forget(topology, consumer);
        topology.wash();
    }

    /// Finishes pending changes. The control lock is held.
    fn work_off_events(&self) {
        loop {
            let event = self.topology.with(|topology| topology.events.pop_front());
            match event {
                None => return,
                Some(Event::Taste(provider)) => self.taste_all(provider),
                Some(Event::Spoil { provider, writer }) => {
                    self.touch(|topology| topology.spoil(provider, writer));
                }
                Some(Event::Orphan(provider, errno)) => {
                    self.touch(|topology| topology.orphan(provider, errno));
                }
                Some(Event::Resize(provider, size)) => {
                    self.touch(|topology| topology.resize(provider, size));
                }
            }
        }
    }

    /// Opens a provider for tasting and hands it to `with`.
    fn tasting<R>(
        &self,
        provider: ProviderId,
        with: impl FnOnce(&mut Taster<'_>) -> R,
    ) -> Result<R, StackError> {
        let this = self.arc()?;
        let consumer = self.touch(|t| Self::open(t, provider, Delta::READ))?;
        let opened = Opened::new(this, consumer, provider, Purpose::Tasting, Arc::default());
        let mut channel = Channel::new(&opened.shared, 1, true)?;
        let view = self.topology.with(|topology| {
            let view = topology.provider_view(provider);
            view.ok_or_else(|| topology.no_provider("it went away"))
        })?;
        let result = with(&mut Taster::new(view, &mut channel, &opened));
        drop(channel);
        drop(opened);
        Ok(result)
    }

    fn arc(&self) -> Result<Arc<Self>, StackError> {
        self.this
            .upgrade()
            .ok_or_else(|| StackError::Invalid("the stack is being destroyed".into()))
    }

    /// True when a geom of that class is on the provider already.
    fn has_class(&self, provider: ProviderId, class: &str) -> bool {
        self.topology.with(|topology| {
            let Ok(object) = topology.provider(provider) else { return true };
            object.consumers.iter().any(|id| {
                let consumer = topology.consumers.get(id);
                let geom = consumer.and_then(|consumer| topology.geoms.get(&consumer.geom));
                geom.is_some_and(|geom| geom.class == class && !geom.wither)
            })
        })
    }

    /// Lets every class taste that is not on the provider yet.
    fn taste_all(&self, provider: ProviderId) {
        let classes: Vec<_> = self
            .classes
            .lock()
            .iter()
            .filter(|class| !self.has_class(provider, class.name()))
            .cloned()
            .collect();
        if !self.options.taste || classes.is_empty() {
            return;
        }
        let tasted = self.tasting(provider, |taster| {
            let taste = |class: &Arc<dyn Class>| (class.name(), class.taste(taster));
            let plans = classes.iter().map(taste).collect::<Vec<_>>();
            match taster.gone() {
                Some(error) => {
                    self.unreachable.lock().get_or_insert(error.clone());
                    Vec::new()
                }
                None => plans,
            }
        });
        // A provider that cannot be opened for reading is not tasted; that is GEOM's way, too.
        for (class, plan) in tasted.unwrap_or_default() {
            if let Err(error) = self.follow_taste(provider, class, plan) {
                self.note(class, provider, error.to_string());
            }
        }
    }

    fn taste_one(
        &self,
        provider: ProviderId,
        class: &Arc<dyn Class>,
    ) -> Result<Option<GeomId>, StackError> {
        let plan = self.tasting(provider, |taster| {
            taster.insist();
            class.taste(taster)
        })?;
        if let Err(error) = &plan {
            return Err(StackError::Invalid(error.to_string()));
        }
        self.follow_taste(provider, class.name(), plan)
    }

    fn follow_taste(
        &self,
        provider: ProviderId,
        class: &'static str,
        plan: Result<Option<Plan>, TasteError>,
    ) -> Result<Option<GeomId>, StackError> {
        match plan {
            Ok(None) => Ok(None),
            Ok(Some(plan)) => self.make(class, plan, &[provider]).map(Some),
            Err(error) => {
                self.taste_errors.lock().push(error);
                Ok(None)
            }
        }
    }

    fn note(&self, class: &'static str, provider: ProviderId, problem: String) {
        let name = |topology: &mut Topology| topology.provider(provider).map(|p| p.name.clone());
        let name = self.topology.with(name);
        let provider = name.unwrap_or_else(|_| "a destroyed provider".into());
        self.taste_errors.lock().push(TasteError {
            class,
            provider,
            problem,
        });
    }

    /// Works off events that came from outside, and gives the newest snapshot.
    pub(crate) fn refresh(&self, tasting: bool) -> Arc<Snapshot> {
        let waiting = !tasting && self.topology.with(|topology| !topology.events.is_empty());
        if waiting && let Some(_control) = self.control.try_lock() {
            self.work_off_events();
        }
        let options = StackKnobs {
            statistics: *self.statistics.lock(),
            ..self.options
        };
        let draw = |topology: &mut Topology, generation| {
            if self.options.registry == Registry::Locked {
                self.devices.reserve(topology.entry_count());
            }
            let strategy = Strategy::of(&options);
            let mut registry = self.registry.lock();
            topology.snapshot(generation, strategy, &self.devices, &mut registry)
        };
        self.topology.newest(draw)
    }

    /// A home for a new channel.
    pub(crate) fn new_home(&self) -> Result<Arc<Home>, StackError> {
        let queues = self.queues.get();
        let queues = queues.map(|queues| (Arc::clone(&queues.down), Arc::clone(&queues.up)));
        let spin_ns = match self.options.dispatch {
            Dispatch::Direct => 0,
            Dispatch::Queued { spin_ns } => spin_ns,
        };
        let home = Home::new(spin_ns, queues);
        let home = home.map_err(|error| system("making a mailbox", &error))?;
        let mut homes = self.homes.lock();
        homes.retain(|home| home.strong_count() > 0);
        homes.push(Arc::downgrade(&home));
        Ok(home)
    }

    pub(crate) fn leave_home(&self, home: &Home) {
        self.defects.fetch_add(home.defects(), Ordering::Relaxed);
    }

    pub(crate) fn grow_statistics(&self, block: &mut Arc<CounterBlock>, edges: usize) {
        if *self.statistics.lock() != Statistics::Off && block.len() < edges {
            self.registry.lock().grow(block, edges);
        }
    }

    pub(crate) fn leave_statistics(&self, block: &Arc<CounterBlock>) {
        self.registry.lock().leave(block);
    }
}

fn system(what: &'static str, error: &std::io::Error) -> StackError {
    let error = error
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error);
    StackError::System { what, error }
}
