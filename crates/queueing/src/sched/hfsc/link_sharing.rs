//! The link-sharing criterion: from the root down, the child with the least virtual time among those that their upper
//! limits let send.
//!
//! Published: Stoica, Zhang, Ng 1997, section IV-C; `init_vf`, `update_vf` and `vttree_get_minvt` of sch_hfsc.c, which
//! has the upper limit: a class does not send before its *fit time*, by which its upper limit curve allows what it has
//! sent. An inner class fits when it may send itself and one of its children fits.
//!
//! Differs: a class that becomes backlogged again within one backlog of its parent never loses virtual time, directly
//! below the root too; Linux forgets the period there.

use core::cmp::Reverse;

use lastmile_units::Instant;

use super::curve::{Curve, Runtime, ServiceCurve, Time, Work, instant};
use crate::sched::heap::Heap;

/// The link, above all classes.
const ROOT: usize = 0;

/// A class: its parent by position in the list, and its curves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// `None`: it is on the link.
    pub(super) parent: Option<usize>,
    /// `None`: only the real-time criterion serves it.
    pub(super) share: Option<ServiceCurve>,
    pub(super) limit: Option<ServiceCurve>,
}

/// All classes; number 0 is the link, and class `n` of the plans has number `n + 1`.
#[derive(Clone, Debug)]
pub(super) struct LinkSharing {
    classes: Vec<Class>,
    inner: Vec<Inner>,
}

#[derive(Clone, Debug)]
struct Class {
    parent: u32,
    /// The index of the class among its siblings, which have consecutive numbers.
    place: u32,
    /// Index of its children's state. `None`: it is a leaf.
    inner: Option<u32>,
    /// Backlogged children; 1 for a backlogged leaf.
    active: u32,
    /// `None`: it takes no part.
    times: Option<Runtime>,
    /// The virtual time of the class.
    time: Time,
    /// Virtual time that it was given because it had been passed over.
    adjustment: Time,
    /// The backlog of its parent in which it was last backlogged.
    period: u64,
    limit: Option<Runtime>,
    /// When its own upper limit lets it send.
    fits_at: Instant,
    total: Work,
}

/// The children of the link or of an inner class.
#[derive(Clone, Debug)]
struct Inner {
    first_child: u32,
    /// Backlogged children that fit, by their virtual time.
    fit: Heap<Time>,
    /// Backlogged children that do not fit, by their fit time.
    unfit: Heap<Instant>,
    /// The largest virtual time of a child that was served in this backlog.
    served: Option<Time>,
    /// Backlogged children by their virtual time, the largest first.
    latest: Heap<Reverse<Time>>,
    /// The largest virtual time at which a child ceased to be backlogged.
    ended: Time,
    /// Number of this backlog.
    period: u64,
}

impl Inner {
    fn new(first_child: usize, children: usize) -> Self {
        Self {
            first_child: first_child as u32,
            fit: Heap::new(children),
            unfit: Heap::new(children),
            served: None,
            latest: Heap::new(children),
            ended: 0,
            period: 0,
        }
    }

    /// When a child fits; at once while there is none.
    fn fits_at(&self) -> Instant {
        if self.fit.first().is_some() { Instant::ZERO } else { self.unfit.first().unwrap_or(Instant::ZERO) }
    }

    fn remove(&mut self, place: u32) {
        self.fit.cancel(place as usize);
        self.unfit.cancel(place as usize);
        self.latest.cancel(place as usize);
    }
}

impl LinkSharing {
    /// Parents come before their children, siblings are consecutive.
    pub(super) fn new(plans: &[Plan]) -> Self {
        let number = |parent: Option<usize>| parent.map_or(ROOT, |parent| parent + 1);
        let mut children = vec![(0, 0); plans.len() + 1];
        let mut classes = vec![Class::new(ROOT, 0, None, None)];
        for (id, plan) in (1..).zip(plans) {
            let parent = number(plan.parent);
            let (first, count) = &mut children[parent];
            *first = if *count == 0 { id } else { *first };
            classes.push(Class::new(parent, *count, plan.share, plan.limit));
            *count += 1;
        }
        let mut inner = Vec::new();
        for (class, (first, count)) in classes.iter_mut().zip(children) {
            if count > 0 {
                class.inner = Some(inner.len() as u32);
                inner.push(Inner::new(first, count as usize));
            }
        }
        Self { classes, inner }
    }

    fn siblings(&mut self, id: usize) -> &mut Inner {
        let parent = self.classes[id].parent as usize;
        let inner = self.classes[parent].inner.expect("a parent has children");
        &mut self.inner[inner as usize]
    }

    /// The leaf with this position is backlogged from now on.
    pub(super) fn activate(&mut self, leaf: usize, now: Instant) {
        let mut id = leaf + 1;
        if self.classes[id].times.is_none() {
            return;
        }
        let mut joins = true;
        while id != ROOT {
            if joins {
                joins = self.classes[id].active == 0;
                self.classes[id].active += 1;
            }
            if joins {
                self.join(id, now);
            }
            self.file(id, now);
            id = self.classes[id].parent as usize;
        }
    }

    /// A class becomes backlogged: it begins between the least and the largest virtual time of its siblings.
    fn join(&mut self, id: usize, now: Instant) {
        let siblings = self.siblings(id);
        let (begin, keeps) = match siblings.latest.first() {
            Some(Reverse(latest)) => (siblings.served.map_or(latest, |served| (served + latest) / 2), true),
            None => {
                siblings.period += 1;
                siblings.served = None;
                (siblings.ended, false)
            }
        };
        let period = siblings.period;
        let class = &mut self.classes[id];
        class.time = if keeps && class.period == period { begin.max(class.time) } else { begin };
        (class.period, class.adjustment) = (period, 0);
        if let Some(times) = &mut class.times {
            times.begin(class.time, class.total);
        }
        if let Some(limit) = &mut class.limit {
            limit.begin(now.as_ps().into(), class.total);
        }
        let (place, time) = (class.place, class.time);
        self.siblings(id).latest.set(place as usize, Reverse(time));
    }

    /// Files a backlogged class by its fit time, or by its virtual time if it fits.
    fn file(&mut self, id: usize, now: Instant) {
        let class = &mut self.classes[id];
        if let Some(limit) = &class.limit {
            class.fits_at = instant(limit.time_of(class.total));
        }
        let children_fit_at = class.inner.map_or(Instant::ZERO, |inner| self.inner[inner as usize].fits_at());
        let class = &self.classes[id];
        let (fits_at, time, place) = (class.fits_at.max(children_fit_at), class.time, class.place as usize);
        let siblings = self.siblings(id);
        if fits_at <= now {
            siblings.unfit.cancel(place);
            siblings.fit.set(place, time);
        } else {
            siblings.fit.cancel(place);
            siblings.unfit.set(place, fits_at);
        }
    }

    /// The leaf to serve.
    pub(super) fn next(&mut self, now: Instant) -> Option<usize> {
        let mut id = ROOT;
        while let Some(inner) = self.classes[id].inner {
            let children = &mut self.inner[inner as usize];
            let first = children.first_child as usize;
            while let Some(place) = children.unfit.due(now) {
                children.unfit.cancel(place);
                children.fit.set(place, self.classes[first + place].time);
            }
            id = first + children.fit.first_class()?;
            let time = self.classes[id].time;
            children.served = Some(children.served.map_or(time, |served| served.max(time)));
        }
        Some(id - 1)
    }

    /// A leaf has sent some service, by any criterion, and is not backlogged any more if it `ends`.
    pub(super) fn sent(&mut self, leaf: usize, now: Instant, work: Work, ends: bool) {
        let mut id = leaf + 1;
        let mut ends = ends && self.classes[id].active > 0;
        while id != ROOT {
            self.classes[id].total += work;
            if self.classes[id].active > 0 {
                if ends {
                    self.classes[id].active -= 1;
                    ends = self.classes[id].active == 0;
                }
                self.pass(id);
                if ends {
                    let (place, time) = (self.classes[id].place, self.classes[id].time);
                    let siblings = self.siblings(id);
                    siblings.ended = siblings.ended.max(time);
                    siblings.remove(place);
                } else {
                    self.file(id, now);
                }
            }
            id = self.classes[id].parent as usize;
        }
    }

    /// Computes the virtual time of a backlogged class. One that was passed over because it did not fit is not behind
    /// the siblings that were served.
    fn pass(&mut self, id: usize) {
        let served = self.siblings(id).served.unwrap_or(0);
        let class = &mut self.classes[id];
        let Some(times) = &class.times else { return };
        let time = times.time_of(class.total) + class.adjustment;
        class.adjustment += served.saturating_sub(time);
        class.time = time.max(served);
        let (place, time) = (class.place, class.time);
        self.siblings(id).latest.set(place as usize, Reverse(time));
    }

    /// The time at which a class fits: now or earlier means at once.
    pub(super) fn first(&self, now: Instant) -> Option<Instant> {
        let root = &self.inner[self.classes[ROOT].inner? as usize];
        if root.fit.first().is_some() { Some(now) } else { root.unfit.first() }
    }
}

impl Class {
    fn new(parent: usize, place: u32, share: Option<ServiceCurve>, limit: Option<ServiceCurve>) -> Self {
        let runtime = |curve: ServiceCurve| Runtime::new(&Curve::new(&curve), 0, Work::ZERO);
        Self {
            parent: parent as u32,
            place,
            inner: None,
            active: 0,
            times: share.map(runtime),
            time: 0,
            adjustment: 0,
            period: 0,
            limit: limit.map(runtime),
            fits_at: Instant::ZERO,
            total: Work::ZERO,
        }
    }
}
