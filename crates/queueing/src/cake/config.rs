//! The parameters of a CAKE.

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, ByteCount, Duration};

use super::isolation::Isolation;
use super::tins::Diffserv;
use crate::ack::cake::Mode;

/// Parameters of a CAKE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The shaper's rate on the wire. `None`: unlimited.
    pub bandwidth: Option<BitRate>,
    /// Division of traffic into tins by the differentiated services field.
    pub diffserv: Diffserv,
    /// Flow and host isolation.
    pub isolation: Isolation,
    /// The round-trip time of most traffic, from which COBALT's times are derived.
    pub rtt: Duration,
    /// Capacity in IP bytes. `None`: four times the bytes that the bandwidth carries in `rtt`, from
    /// [`Config::LEAST_MEMORY`] to [`Config::MEMORY`], which it is without a bandwidth.
    pub memory: Option<ByteCount>,
    /// Linux looks up hosts behind its address translation. No effect here, where no address is
    /// translated.
    pub nat: bool,
    /// The code points of packets become 0, after they have chosen a tin.
    pub wash: bool,
    /// The slow line stands before this queue: dropped packets count towards the bandwidth.
    pub ingress: bool,
    /// ACKs removed in favour of newer ones. `None`: no ACK filter.
    pub ack_filter: Option<Mode>,
    /// Encapsulation by which the bandwidth is counted, if other than that of this line: the
    /// bottleneck may be a later line.
    pub link_layer: Option<LinkLayer>,
    /// The largest IP packet to expect, used for COBALT's times.
    pub largest: ByteCount,
    /// Maximum lateness of a caller that does not cost rate, as for a token bucket filter.
    pub catch_up: Duration,
    /// Seed of BLUE's random numbers.
    pub seed: u64,
}

impl Default for Config {
    /// Without a bandwidth, `diffserv3`, `triple-isolate`, 100 ms, no ACK filter: the defaults of
    /// tc-cake(8).
    fn default() -> Self {
        Self {
            bandwidth: None,
            diffserv: Diffserv::default(),
            isolation: Isolation::default(),
            rtt: Duration::from_ms(100),
            memory: None,
            nat: false,
            wash: false,
            ingress: false,
            ack_filter: None,
            link_layer: None,
            largest: ByteCount::new(1500),
            catch_up: Duration::ZERO,
            seed: 0,
        }
    }
}

impl Config {
    /// The shortest round-trip time: COBALT's target is a twentieth of it.
    pub const LEAST_RTT: Duration = Duration::from_us(1);
    /// The minimum of a memory derived from a bandwidth.
    pub const LEAST_MEMORY: ByteCount = ByteCount::new(4 << 20);
    /// The memory without a bandwidth, and the maximum of one derived from a bandwidth: 10 240 packets of
    /// 1514 bytes, the maximum of a queue in Linux.
    pub const MEMORY: ByteCount = ByteCount::new(10_240 * 1514);

    /// Checks the values that types do not check.
    ///
    /// # Errors
    /// A round-trip time or a memory with which nothing would pass.
    pub fn check(&self) -> Result<(), CakeError> {
        if self.rtt < Self::LEAST_RTT {
            return Err(CakeError::Rtt(self.rtt));
        }
        match self.memory {
            Some(memory) if memory < self.largest => Err(CakeError::Memory { memory, largest: self.largest }),
            _ => Ok(()),
        }
    }

    /// The capacity that is in effect.
    pub(super) fn memory(&self) -> ByteCount {
        let in_flight = |bandwidth: BitRate| {
            let bits = u128::from(bandwidth.as_bps()) * u128::from(self.rtt.as_ps()) / 1_000_000_000_000;
            let bytes = ByteCount::new(u64::try_from(bits / 8 * 4).unwrap_or(u64::MAX));
            bytes.clamp(Self::LEAST_MEMORY, Self::MEMORY)
        };
        self.memory.unwrap_or_else(|| self.bandwidth.map_or(Self::MEMORY, in_flight))
    }
}

/// Errors of a CAKE that would pass nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CakeError {
    /// The round-trip time is too short.
    #[error("a round-trip time of {0}; it is at least {least}", least = Config::LEAST_RTT)]
    Rtt(Duration),
    /// The largest packet does not fit the memory.
    #[error("a memory of {memory} does not hold the largest packet, which has {largest}")]
    Memory {
        /// The configured memory.
        memory: ByteCount,
        /// The largest packet.
        largest: ByteCount,
    },
}
