//! The table of disciplines: the name in files, the variant of [`crate::Spec`], and the type that describes it.
//!
//! [`crate::Spec`] is made from this table, and so are the reader and the reference of scenario files. A new
//! discipline is a file and a row here. The compiler then asks for the rest: `Mechanism` for the type of
//! the row, the keys of its table in the crate `scenario`, and the nearest discipline of Linux in the crate
//! `kernel`.
//!
//! The files of the disciplines, of [`crate::spec`] and this one refer to one another, since a discipline may hold
//! any other: [`crate::Spec`] names every description in the table, and descriptions, errors and positions in a tree
//! name [`crate::Spec`].

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::BitRate;

use crate::classify::Packets;
use crate::spec::{Over, Problem, Shaper, Site};
use crate::{BuildError, Discipline, Environment, Limit, Node, Spec};

/// Gives the table to the macro `$then`, as rows `"name" => Variant(type)`.
///
/// The rows of `kinds` can be named in a scenario file, by the key `kind` of a queue. The rows of `parts`
/// have no name in files: policies are made of them. The order is that of the reference.
#[macro_export]
macro_rules! catalogue {
    ($then:ident) => {
        $then! {
            kinds {
                /// [`Fifo`]($crate::Fifo).
                "fifo" => Fifo($crate::fifo::Config),
                /// [`Red`]($crate::aqm::Red).
                "red" => Red($crate::aqm::red::Config),
                /// [`CoDel`]($crate::aqm::CoDel).
                "codel" => Codel($crate::aqm::codel::Config),
                /// [`Pie`]($crate::aqm::Pie).
                "pie" => Pie($crate::aqm::pie::Config),
                /// [`DocsisPie`]($crate::aqm::DocsisPie).
                "docsis-pie" => DocsisPie($crate::aqm::docsis_pie::Config),
                /// [`DualPi2`]($crate::aqm::DualPi2).
                "dualpi2" => DualPi2($crate::aqm::dualpi2::Config),
                /// [`Sfq`]($crate::fair::Sfq).
                "sfq" => Sfq($crate::fair::sfq::Config),
                /// [`FqCodel`]($crate::fair::FqCodel).
                "fq-codel" => FqCodel($crate::fair::fq_codel::Config),
                /// [`FqPie`]($crate::fair::FqPie).
                "fq-pie" => FqPie($crate::fair::fq_pie::Config),
                /// [`SmartAckDropper`]($crate::ack::SmartAckDropper).
                "sad" => Sad($crate::spec::Over<$crate::ack::sad::Config>),
                /// [`AckFilter`]($crate::ack::AckFilter).
                "ack-filter" => AckFilter($crate::ack::filter::Config),
                /// [`AckCollapsing`]($crate::ack::AckCollapsing).
                "ack-collapsing" => AckCollapsing($crate::ack::collapsing::Config),
                /// [`CakeAckFilter`]($crate::ack::CakeAckFilter).
                "cake-ack-filter" => CakeAckFilter($crate::ack::cake::Config),
                /// [`AckRegenerator`]($crate::ack::AckRegenerator).
                "ack-regenerator" => AckRegenerator($crate::spec::Over<$crate::ack::regenerator::Config>),
                /// [`AckPacing`]($crate::ack::AckPacing).
                "ack-pacing" => AckPacing($crate::spec::Over<$crate::ack::pacing::Config>),
                /// [`WindowClamp`]($crate::ack::WindowClamp).
                "window-clamp" => WindowClamp($crate::spec::Over<$crate::ack::clamp::Config>),
                /// Deficit round robin: [`drr`]($crate::fair::drr).
                "drr" => Drr($crate::fair::drr::Config),
                /// Weighted fair queueing: [`wfq`]($crate::fair::wfq).
                "wfq" => Wfq($crate::fair::wfq::Config),
                /// [`wf2q_plus`]($crate::fair::wf2q_plus).
                "wf2q-plus" => Wf2qPlus($crate::fair::wf2q_plus::Config),
                /// [`Priority`]($crate::Priority).
                "priority" => Priority($crate::sched::priority::Config),
                /// [`CustomQueueing`]($crate::CustomQueueing).
                "custom" => Custom($crate::sched::custom::Config),
                /// [`Cbq`]($crate::Cbq).
                "cbq" => Cbq($crate::sched::cbq::Config),
                /// [`Htb`]($crate::Htb).
                "htb" => Htb($crate::sched::htb::Config),
                /// [`Hfsc`]($crate::Hfsc).
                "hfsc" => Hfsc($crate::sched::hfsc::Config),
                /// [`Tbf`]($crate::Tbf).
                "tbf" => Tbf($crate::spec::Over<$crate::meter::tbf::Config>),
                /// [`Policer`]($crate::Policer).
                "policer" => Policer($crate::spec::Over<$crate::meter::policer::Config>),
                /// [`Cake`]($crate::Cake).
                "cake" => Cake($crate::cake::Config),
            }
            parts {
                /// [`Drain`]($crate::Drain).
                Drain($crate::spec::Over<$crate::meter::drain::Config>),
                /// [`Rules`]($crate::Rules).
                Rules($crate::classify::rules::Config),
                /// [`Witness`]($crate::ack::Witness): notes what a clamp in the other direction asks for.
                Witness($crate::spec::Over<$crate::ack::handshakes::Config>),
                /// A discipline of the caller: [`supplied`](mod@$crate::supplied).
                Supplied($crate::supplied::Config),
            }
        }
    };
}

/// A discipline, or why there is none.
pub(crate) type Built<P> = Result<Node<P>, BuildError>;

/// The description of a discipline: what a row of the table names.
pub(crate) trait Mechanism {
    /// Refuses what cannot be built; the disciplines below are not looked at.
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem>;

    /// The disciplines right below, in the order of the configuration.
    fn below(&self) -> Vec<&Spec> {
        Vec::new()
    }

    /// The name of a class that this discipline gives to packets. `None`: there is no such class.
    fn class_name(&self, class: u16) -> Option<String> {
        match self.below().as_slice() {
            [only] => only.class_name(class),
            _ => None,
        }
    }

    /// True if it, or a discipline below, drops pure ACKs on purpose.
    fn thins_acks(&self) -> bool {
        self.below().into_iter().any(Spec::thins_acks)
    }

    /// The capacity, if it is one number.
    fn limit(&self) -> Option<Limit> {
        match self.below().as_slice() {
            [only] => only.limit(),
            _ => None,
        }
    }

    /// The shapers and policers that each of `packets` passes, the outermost first.
    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        match self.below().as_slice() {
            [only] => only.shapers_of(packets),
            _ => Vec::new(),
        }
    }

    /// True if it, or a discipline below, sets code points of differentiated services.
    fn sets_dscp(&self) -> bool {
        self.below().into_iter().any(Spec::sets_dscp)
    }

    /// Refuses guarantees that a link of this rate cannot keep; the disciplines below are not looked at.
    fn check_link(&self, available: BitRate) -> Result<(), Problem> {
        let _ = available;
        Ok(())
    }

    /// Builds what [`Mechanism::check`] has accepted.
    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P>
    where
        Self: Sized;
}

/// The description of a discipline over one queue, apart from that queue.
pub(crate) trait Above {
    /// Refuses what cannot be built over `queue`.
    fn check(&self, queue: &Spec, link_layer: &LinkLayer) -> Result<(), Problem>;

    /// True if it drops pure ACKs on purpose.
    fn thins_acks(&self) -> bool {
        false
    }

    /// The shapers and policers of the discipline itself that each of `packets` passes.
    fn own_shapers(&self, packets: &Packets) -> Vec<Shaper> {
        let _ = packets;
        Vec::new()
    }

    /// True if it sets code points of differentiated services.
    fn sets_dscp(&self) -> bool {
        false
    }

    /// The discipline over `queue`.
    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem>;

    /// Builds the queue, and the discipline over it.
    fn build<P: Packet + Send + 'static>(&self, queue: &Spec, site: &mut Site<'_>) -> Built<P> {
        let queue: Node<P> = site.queue(queue)?;
        self.over(queue, site.environment).map_err(|why| site.refuse(why))
    }
}

impl<C: Above> Mechanism for Over<C> {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        self.config.check(&self.queue, link_layer)
    }

    fn below(&self) -> Vec<&Spec> {
        vec![&self.queue]
    }

    fn thins_acks(&self) -> bool {
        self.config.thins_acks() || self.queue.thins_acks()
    }

    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        let own = self.config.own_shapers(packets);
        own.into_iter().chain(self.queue.shapers_of(packets)).collect()
    }

    fn sets_dscp(&self) -> bool {
        self.config.sets_dscp() || self.queue.sets_dscp()
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        self.config.build(&self.queue, site)
    }
}
