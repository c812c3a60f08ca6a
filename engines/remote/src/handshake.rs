//! Failed handshakes in words: what is wrong with a server's certificate, and what to do about it.

use std::error::Error as StdError;
use std::io;

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error as TlsError};

/// Why a server is not spoken to, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Untrusted {
    pub reason: String,
    pub hint: String,
}

impl Untrusted {
    fn new(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: hint.into() }
    }

    /// What an error says of TLS with a server, if it says anything.
    pub fn explain(error: &(dyn StdError + 'static), server: &str) -> Option<Self> {
        if let Some(error) = cause::<TlsError>(error) {
            return Some(of_tls(error, server));
        }
        let plain = server.strip_prefix("http://")?;
        cause::<hyper::Error>(error).filter(|error| error.is_parse())?;
        let hint = format!("Use https://{plain} if the server speaks TLS there.");
        Some(Self::new("what it answers is not HTTP", hint))
    }
}

/// The first error of a kind among an error and its causes, also inside I/O errors.
fn cause<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // The source of an I/O error is that of the error inside, which is passed over.
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inside {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    None
}

fn of_tls(error: &TlsError, server: &str) -> Untrusted {
    match error {
        TlsError::InvalidCertificate(error) => of_certificate(error),
        TlsError::InvalidMessage(_) => {
            let plain = server.strip_prefix("https://").unwrap_or(server);
            let hint = format!("Use http://{plain} if the server runs without TLS.");
            Untrusted::new("it does not speak TLS on this port", hint)
        }
        TlsError::PeerIncompatible(_) => Untrusted::new(
            "it speaks no version of TLS that is known here",
            "The server must speak TLS 1.2 or 1.3.",
        ),
        other => Untrusted::new(format!("TLS failed: {other}"), "Look at the server's log."),
    }
}

const TRUST: &str = "If it is yours, name a PEM file with the certificate of its authority, or with the \
                     server's own if it signed that itself: SSL_CERT_FILE=FILE, or tls_roots=FILE in \
                     the URL of a store.";
const RENEW: &str = "Renew the certificate, or correct the clock of this machine.";

fn of_certificate(error: &CertificateError) -> Untrusted {
    use CertificateError as E;
    match error {
        E::UnknownIssuer | E::BadSignature => Untrusted::new(
            "its certificate is not from an authority that this machine trusts",
            TRUST,
        ),
        E::ExpiredContext { not_after, .. } => {
            Untrusted::new(format!("its certificate expired on {}", day(*not_after)), RENEW)
        }
        E::Expired => Untrusted::new("its certificate has expired", RENEW),
        E::NotValidYetContext { not_before, .. } => {
            let reason = format!("its certificate is not valid before {}", day(*not_before));
            Untrusted::new(reason, RENEW)
        }
        E::NotValidYet => Untrusted::new("its certificate is not valid yet", RENEW),
        E::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| plain(name)).collect();
            let names = match names.is_empty() {
                true => "no name at all".to_owned(),
                false => names.join(", "),
            };
            let reason = format!("its certificate is for {names}, not for {}", expected.to_str());
            Untrusted::new(reason, NAMES)
        }
        E::NotValidForName => Untrusted::new("its certificate is for another name", NAMES),
        E::Revoked => Untrusted::new("its certificate was revoked", "Replace the certificate."),
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => Untrusted::new(
            "its certificate is not for servers",
            "Use a certificate with the extended key usage serverAuth.",
        ),
        E::BadEncoding => {
            Untrusted::new("its certificate is damaged", "Replace the server's certificate.")
        }
        E::Other(other) if other.0.to_string().contains("CaUsedAsEndEntity") => Untrusted::new(
            "its certificate is one of an authority, which cannot be a server's own",
            "Sign a certificate for the server with it, or make one that is no authority's: with \
             openssl req -x509, add -addext basicConstraints=critical,CA:FALSE.",
        ),
        other => Untrusted::new(
            format!("its certificate is refused: {other}"),
            "Replace the server's certificate.",
        ),
    }
}

const NAMES: &str =
    "Use one of the names that the certificate is for, or have one issued for this name.";

/// A name without what the library writes around it: `DnsName("a.example")`.
fn plain(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"')
}

fn day(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    match Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => "an unknown day".to_owned(),
    }
}
