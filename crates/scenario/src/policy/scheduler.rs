//! Schedulers over the classes of a policy.

use lastmile_queueing::Match;
use lastmile_queueing::sched::hfsc::ServiceCurve;
use lastmile_queueing::sched::tree::{self, Tree};
use lastmile_queueing::sched::{cbq, custom, hfsc, htb, priority};
use lastmile_queueing::spec::{ClassSpec, Spec};
use lastmile_units::{BitRate, ByteCount, Ratio, WireBytes};

use super::model::{Class, Promise};

/// The class that stands for the whole line, above all others.
pub(super) const ROOT: &str = "line";

/// The parameters of a scheduler.
pub(super) struct Plan<'a> {
    pub(super) classes: &'a [Class],
    /// The class of what no rule matches.
    pub(super) default: &'a str,
    /// The rate of the line that the scheduler may use.
    pub(super) rate: BitRate,
    pub(super) largest: ByteCount,
    /// The largest packet on the wire.
    pub(super) largest_wire: WireBytes,
}

impl Plan<'_> {
    pub(super) fn htb(&self) -> htb::Config {
        // A class that borrows sends its burst only if the line has it, too.
        let most = |of: fn(&Class) -> WireBytes| self.classes.iter().map(of).max();
        let of = |rate, ceil, class: Option<&Class>| htb::Share {
            rate,
            ceil: Some(ceil),
            burst: class.map_or_else(|| most(|class| class.burst), |class| Some(class.burst)),
            cburst: class.map_or_else(|| most(|class| class.cburst), |class| Some(class.cburst)),
            priority: class.map_or(0, |class| class.priority),
            quantum: None,
        };
        let root = of(self.rate, self.rate, None);
        let share = |class: &Class| of(class.rate.unwrap_or(class.ceil), class.ceil, Some(class));
        htb::Config { largest: self.largest, ..htb::Config::new(self.tree(root, share)) }
    }

    pub(super) fn cbq(&self) -> cbq::Config {
        let of = |share, borrow, priority, burst| cbq::Share { share, borrow, isolated: false, priority, burst };
        let root = of(cbq::Portion::Share(Ratio::ONE), false, 0, None);
        let share = |class: &Class| {
            let rate = cbq::Portion::Rate(class.rate.unwrap_or(class.ceil));
            of(rate, Some(class.ceil) > class.rate, class.priority, Some(class.burst))
        };
        cbq::Config { tree: self.tree(root, share), rate: self.rate, largest: self.largest }
    }

    /// Guarantees of the classes that take packets, shares of the rest as the rates are, and ceilings.
    ///
    /// # Errors
    /// The number of a class whose delay is too short for any line.
    pub(super) fn hfsc(&self) -> Result<hfsc::Config, usize> {
        let rate = |class: &Class| class.rate.unwrap_or(class.ceil);
        let guarantee = |class: &Class| match class.delay {
            Some(Promise { time, packet }) => ServiceCurve::within(packet, time, rate(class)),
            None => Some(ServiceCurve::linear(rate(class))),
        };
        if let Some(number) = self.classes.iter().position(|class| guarantee(class).is_none()) {
            return Err(number);
        }
        let line = Some(ServiceCurve::linear(self.rate));
        let root = hfsc::Share { real_time: None, link_share: line, upper_limit: line };
        let share = |class: &Class| hfsc::Share {
            real_time: class.queue.as_ref().and_then(|_| guarantee(class)),
            link_share: Some(ServiceCurve::linear(rate(class))),
            upper_limit: (class.ceil < self.rate).then(|| ServiceCurve::linear(class.ceil)),
        };
        Ok(hfsc::Config { tree: self.tree(root, share) })
    }

    fn tree<S>(&self, root: S, share: impl Fn(&Class) -> S) -> Tree<S> {
        let mut tree = Tree {
            classes: vec![tree::Class { name: ROOT.into(), parent: None, share: root, queue: None }],
            rules: Vec::new(),
            default: Some(self.default.into()),
        };
        for (class, number) in self.classes.iter().zip(0..) {
            let parent = Some(class.parent.clone().unwrap_or_else(|| ROOT.into()));
            let (name, queue) = (class.name.clone(), class.queue.clone());
            if queue.is_some() {
                tree.rules.push(tree::Rule { matches: Match::Class(number), class: name.clone() });
            }
            tree.classes.push(tree::Class { name, parent, share: share(class), queue });
        }
        tree
    }

    /// Turns as long as the rates have it: the class with the least rate sends one largest packet in its turn.
    pub(super) fn custom(&self) -> Spec {
        let bps = |class: &Class| class.rate.unwrap_or(class.ceil).as_bps();
        let least = self.classes.iter().map(bps).min().unwrap_or(1);
        let count = |class: &Class| {
            let bytes = u128::from(bps(class)) * u128::from(self.largest_wire.as_u64()) / u128::from(least);
            custom::Count::Bytes(WireBytes::new(u64::try_from(bytes).unwrap_or(u64::MAX)))
        };
        let classes = self.ordered(|_| 0).map(|(class, spec)| custom::Class { class: spec, count: count(class) });
        Spec::Custom(custom::Config { classes: classes.collect(), excess: custom::Excess::Carried })
    }

    pub(super) fn priority(&self) -> Spec {
        Spec::Priority(priority::Config {
            classes: self.ordered(|class| class.priority).map(|(_, spec)| spec).collect(),
        })
    }

    /// The classes by `key`, that of what no rule matches among them.
    fn ordered(&self, key: impl Fn(&Class) -> u8) -> impl Iterator<Item = (&Class, ClassSpec)> {
        let mut classes: Vec<(&Class, ClassSpec)> = self
            .classes
            .iter()
            .zip(0..)
            .filter_map(|(class, number)| {
                let queue = class.queue.clone()?;
                Some((class, ClassSpec { matches: Match::Class(number), queue }))
            })
            .collect();
        classes.sort_by_key(|(class, _)| key(class));
        classes.into_iter()
    }
}
