//! Which servers are believed to be who they say.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::Error;

/// The certificates that a server may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Signed by an authority of the web.
    Web,
    /// Signed by an authority of this PEM file.
    Authorities(PathBuf),
    /// Any: for a test server of one's own.
    Anyone,
}

/// TLS 1.3 with HTTP/2, as the draft demands.
pub(super) fn client(trust: &Trust) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let unsupported = |error: rustls::Error| Error::Unsupported(format!("TLS 1.3: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(unsupported)?;
    let roots = match trust {
        Trust::Web => Some(webpki_roots::TLS_SERVER_ROOTS.to_vec()),
        Trust::Authorities(file) => Some(authorities(file)?),
        Trust::Anyone => None,
    };
    let mut config = match roots {
        Some(roots) => builder.with_root_certificates(RootCertStore { roots }).with_no_client_auth(),
        None => {
            let anyone = Arc::new(Anyone(provider));
            builder.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    // A foreign probe is the first contact of a user: without a session from before.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

fn authorities(file: &PathBuf) -> Result<Vec<rustls::pki_types::TrustAnchor<'static>>, Error> {
    let wrong = |what: String| Error::Unsupported(format!("{}: {what}", file.display()));
    let text = std::fs::read(file).map_err(Error::io(format!("reading {}", file.display())))?;
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(format!("not PEM: {error}")))?;
        store.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(wrong("no certificate in PEM".to_owned()));
    }
    Ok(store.roots)
}

/// Takes every certificate; the handshake's signature is still checked.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 alone is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
