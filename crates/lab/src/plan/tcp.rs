//! From the TCP of a scenario to that of the kernel, and warnings where they differ.

use std::collections::BTreeSet;

use lastmile_tcp::{
    ByteCounting, Config, InitialWindow, LossDetection, Recovery, Rto, SlowStart, Variant, WindowScale,
};

use crate::spec::HostConfig;

/// The kernel's name of a variant's congestion control.
pub(super) fn congestion(variant: Variant) -> &'static str {
    match variant {
        Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Sack => "reno",
        Variant::Cubic => "cubic",
        Variant::Bbr | Variant::Bbr3 => "bbr",
        // Without one of its own, the kernel's background control.
        Variant::Ledbat => "lp",
        Variant::Dctcp => "dctcp",
        Variant::Prague => "prague",
    }
}

/// True if the kernel is to repair losses by selective acknowledgements.
fn uses_sack(config: &Config) -> bool {
    config.sack && !matches!(config.variant, Variant::Tahoe | Variant::Reno | Variant::NewReno)
}

/// The settings of both hosts for all of `configs`; where these differ, the first holds.
pub(super) fn hosts(configs: &[&Config], warnings: &mut BTreeSet<String>) -> HostConfig {
    let default = Config::default();
    let first = configs.first().copied().unwrap_or(&default);
    let hosts = |config: &Config| HostConfig {
        sack: uses_sack(config),
        dsack: config.acks.dsack,
        timestamps: config.timestamps,
        window_scaling: config.window_scale != WindowScale::Off,
        ecn: config.ecn,
        idle_restart: config.congestion.idle_restart,
        largest_window: None,
    };
    let common = hosts(first);
    for other in configs.iter().map(|config| hosts(config)) {
        let differs = [
            ("sack", other.sack != common.sack),
            ("dsack", other.dsack != common.dsack),
            ("timestamps", other.timestamps != common.timestamps),
            ("window_scale", other.window_scaling != common.window_scaling),
            ("ecn", other.ecn != common.ecn),
            ("idle_restart", other.idle_restart != common.idle_restart),
        ];
        for (key, _) in differs.into_iter().filter(|(_, differs)| *differs) {
            warnings
                .insert(format!("tcp.{key}: a host has one for all its connections; that of the first transfer holds"));
        }
    }
    common
}

/// Warnings that name the keys of `config` that the kernel treats differently.
pub(super) fn warnings(config: &Config, warnings: &mut BTreeSet<String>) {
    let default = Config::default();
    let mut own = |odd: bool, key: &str, instead: &str| {
        if odd {
            warnings.insert(format!("tcp.{key}: {instead}"));
        }
    };
    own(config.variant == Variant::Tahoe, "variant", "the kernel has no tahoe; reno runs, with NewReno's recovery");
    own(config.variant == Variant::Reno, "variant", "the kernel's reno recovers as NewReno (RFC 6582)");
    own(config.variant == Variant::Bbr3, "variant", "the kernel's bbr is version 1");
    own(config.variant == Variant::Ledbat, "variant", "the kernel has no ledbat++; TCP-LP runs (module tcp_lp)");
    let paces = config.congestion.pacing && !config.variant.paces();
    own(paces, "pacing", "the kernel paces cubic and reno only behind the qdisc fq");
    let segments = config.congestion.initial_window == InitialWindow::Segments(10);
    own(!segments, "initial_window", "the kernel starts with 10 segments");
    own(config.congestion.initial_ssthresh.is_some(), "initial_ssthresh", "the kernel starts with none");
    own(config.acks.delayed_ack.is_zero(), "delayed_ack", "the kernel delays ACKs of single segments all the same");
    own(config.acks.ack_every != default.acks.ack_every, "ack_every", "the kernel acknowledges every second segment");
    let shift = matches!(config.window_scale, WindowScale::Shift(_));
    own(shift, "window_scale", "the kernel chooses the shift by the window");
    own(config.timers.rto == Rto::Rfc6298, "rto", "the kernel keeps its timer in its own way, as \"linux\" says");
    own(!config.repair.undo, "undo", "the kernel takes needless repairs back");
    own(config.repair.undo && !config.repair.frto, "frto", "the kernel looks for needless timeouts by F-RTO");
    let counts = config.repair.loss_detection == LossDetection::Rfc6675;
    own(counts, "loss_detection", "the kernel finds losses by time, as \"rack\" says");
    own(!counts && !config.repair.tail_loss_probe, "tail_loss_probe", "the kernel sends tail loss probes");
    let (hystart, cubic) = (config.congestion.slow_start, config.variant == Variant::Cubic);
    own(cubic && hystart != SlowStart::HyStart, "slow_start", "the kernel's cubic does HyStart, as \"hystart\" says");
    let plus_plus = !cubic && !config.variant.measures_rates() && hystart == SlowStart::HyStartPlusPlus;
    own(plus_plus, "slow_start", "the kernel's reno does standard slow start");
    own(
        config.repair.recovery == Recovery::Rfc6675,
        "recovery",
        "the kernel's window follows what is delivered, as \"prr\" says",
    );
    own(config.timers.initial_rto != default.timers.initial_rto, "initial_rto", "the kernel starts with 1 s");
    own(!config.timers.clock_granularity.is_zero(), "clock_granularity", "the kernel's clock has the tick that it has");
    // With an ACK for every second segment, every limit from two segments on is none.
    let counting = matches!(config.congestion.byte_counting, ByteCounting::Abc { limit: 2.. });
    own(!counting, "byte_counting", "the kernel counts segments that were acknowledged");
    own(
        !config.congestion.limited_transmit,
        "limited_transmit",
        "the kernel sends new segments at the first duplicate ACKs",
    );
}

#[cfg(test)]
mod tests {
    use lastmile_tcp::AckConfig;

    use super::*;

    fn told(config: &Config) -> Vec<String> {
        let mut all = BTreeSet::new();
        warnings(config, &mut all);
        all.into_iter().collect()
    }

    #[test]
    fn what_the_kernel_does_as_asked_needs_no_warning() {
        assert_eq!(told(&Config::default()), [""; 0]);
        assert_eq!(told(&Config { variant: Variant::Cubic, timestamps: true, ..Config::default() }), [""; 0]);
    }

    #[test]
    fn what_the_kernel_does_in_its_own_way_is_told_by_its_key() {
        let odd = Config {
            variant: Variant::Tahoe,
            acks: AckConfig { ack_every: 1, ..AckConfig::default() },
            ..Config::default()
        };
        let keys: Vec<String> = told(&odd).iter().map(|line| line.split(':').next().unwrap().to_owned()).collect();
        assert_eq!(keys, ["tcp.ack_every", "tcp.variant"]);
    }

    #[test]
    fn newreno_goes_without_sack_and_what_differs_between_transfers_is_told() {
        let (cubic, newreno) = (
            Config { variant: Variant::Cubic, ..Config::default() },
            Config { variant: Variant::NewReno, ..Config::default() },
        );
        let mut all = BTreeSet::new();
        assert!(!hosts(&[&newreno], &mut all).sack);
        assert!(all.is_empty());
        assert!(hosts(&[&cubic, &newreno], &mut all).sack);
        assert_eq!(all.len(), 1);
        assert!(all.first().unwrap().starts_with("tcp.sack: "), "{all:?}");
    }
}
