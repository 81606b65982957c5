//! Which servers are believed to be who they say.

use std::path::PathBuf;
use std::sync::Arc;

use lastmile_live::tls::{Anyone, Shown};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

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
            let anyone = Anyone::new(provider, Shown::Certificate);
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
