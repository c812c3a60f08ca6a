//! The cryptography of connections.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};

/// Says which cryptography TLS uses in this process, unless somebody has said so already.
pub(crate) fn provide() {
    if CryptoProvider::get_default().is_none() {
        // Somebody else was faster: theirs is as good.
        let _ = ring::default_provider().install_default();
    }
}

/// What connections without TLS are set up with, on machines that trust no authorities.
pub(crate) fn none() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}
