//! TLS 1.3 with peers that need not say who they are: test servers of one's own, and ends of one process.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// How a server shows its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// In a certificate.
    Certificate,
    /// As it is (RFC 7250).
    RawKey,
}

/// Takes every key; the handshake's signature is still checked.
#[derive(Debug)]
pub struct Anyone {
    provider: Arc<CryptoProvider>,
    shown: Shown,
}

impl Anyone {
    /// Servers that show their keys in this way.
    #[must_use]
    pub fn new(provider: Arc<CryptoProvider>, shown: Shown) -> Arc<Self> {
        Arc::new(Self { provider, shown })
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.3 alone is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        match self.shown {
            Shown::Certificate => verify_tls13_signature(message, shown, signed, known),
            Shown::RawKey => {
                let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
                verify_tls13_signature_with_raw_key(message, &key, signed, known)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.shown == Shown::RawKey
    }
}
