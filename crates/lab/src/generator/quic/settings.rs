//! The settings of the library by those of a scenario, and the keys of a connection.

use std::sync::Arc;
use std::time::Duration;

use lastmile_live::clock::std_span;
use lastmile_live::tls::{Anyone, Shown};
use lastmile_quic::{Config, CongestionControl};
use lastmile_units::Duration as Span;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, RandomConnectionIdGenerator, ServerConfig, TransportConfig,
    VarInt,
};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::crypto::ring::default_provider;
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;

use crate::error::Error;

use super::observed::{Factory, Flight};

/// The configuration of both ends of a connection.
pub(super) struct Settings {
    quic: Config,
    pub(super) endpoint: Arc<EndpointConfig>,
    client: Arc<QuicClientConfig>,
    server: Arc<QuicServerConfig>,
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
fn unusable(what: impl ToString) -> Error {
    Error::Quic(what.to_string())
}

/// A span of the library.
pub(super) fn lab_span(span: Duration) -> Span {
    Span::from_ns(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

impl Settings {
    /// The settings of both ends for the scenario's `quic`, with a new key.
    pub(super) fn new(quic: &Config) -> Result<Self, Error> {
        let mut endpoint = EndpointConfig::default();
        let length = usize::from(quic.connection_id);
        endpoint.cid_generator(move || Box::new(RandomConnectionIdGenerator::new(length)));
        let (client, server) = tls().map_err(unusable)?;
        Ok(Self {
            quic: quic.clone(),
            endpoint: Arc::new(endpoint),
            client: Arc::new(QuicClientConfig::try_from(Arc::new(client)).map_err(unusable)?),
            server: Arc::new(QuicServerConfig::try_from(Arc::new(server)).map_err(unusable)?),
        })
    }

    /// The end that opens, with this record of its flight.
    pub(super) fn client(&self, flight: Flight) -> ClientConfig {
        let mut client = ClientConfig::new(Arc::clone(&self.client) as Arc<_>);
        client.transport_config(Arc::new(transport(&self.quic, flight)));
        client
    }

    /// The other end, with this record of its flight.
    pub(super) fn server(&self, flight: Flight) -> Arc<ServerConfig> {
        let mut server = ServerConfig::with_crypto(Arc::clone(&self.server) as Arc<_>);
        server.transport_config(Arc::new(transport(&self.quic, flight))).migration(false);
        Arc::new(server)
    }
}

fn transport(quic: &Config, flight: Flight) -> TransportConfig {
    let window = VarInt::try_from(quic.receive_window.as_u64()).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(window)
        .receive_window(window)
        // The simulator sends streams in the order in which they were written.
        .send_fairness(false)
        .initial_mtu(quic.datagram)
        .min_mtu(quic.datagram)
        // The line has the MTU of the scenario: a search for a larger one would send packets of other sizes.
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .enable_segmentation_offload(false)
        .congestion_controller_factory(controller(quic.congestion, flight));
    if let Some(request) = quic.ack_frequency {
        let mut frequency = AckFrequencyConfig::default();
        frequency
            .ack_eliciting_threshold(VarInt::from_u32(request.every.saturating_sub(1)))
            .max_ack_delay(request.max_delay.map(std_span))
            .reordering_threshold(VarInt::from_u32(request.reordering.into()));
        transport.ack_frequency_config(Some(frequency));
    }
    transport
}

fn controller(congestion: CongestionControl, flight: Flight) -> Arc<dyn ControllerFactory + Send + Sync> {
    match congestion {
        CongestionControl::NewReno => Arc::new(Factory { inner: Arc::<NewRenoConfig>::default(), flight }),
        CongestionControl::Cubic => Arc::new(Factory { inner: Arc::<CubicConfig>::default(), flight }),
        CongestionControl::Bbr | CongestionControl::Bbr3 => {
            Arc::new(Factory { inner: Arc::<BbrConfig>::default(), flight })
        }
    }
}

/// TLS of client and server. The server has a raw public key (RFC 7250) that is made for this connection.
fn tls() -> Result<(rustls::ClientConfig, rustls::ServerConfig), rustls::Error> {
    let provider = Arc::new(default_provider());
    let no_key = |_| rustls::Error::General("no random numbers for a key".to_owned());
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(no_key)?;
    let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8.as_ref()))?;
    let public = key.public_key().ok_or(rustls::Error::General("a key without its public part".to_owned()))?;
    let certified = CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], key);
    let only_13 = &[&rustls::version::TLS13];
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(only_13)?;
    let server = server
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified))));
    let client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(only_13)?;
    let client =
        client.dangerous().with_custom_certificate_verifier(Anyone::new(provider, Shown::RawKey)).with_no_client_auth();
    Ok((client, server))
}
