//! Who asks: the header that every request carries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gcp_auth::TokenProvider;
use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::header::HeaderValue;
use tokio::time::timeout;

/// What the tokens are good for: reading and writing Firestore, and making indexes.
const SCOPES: &[&str] = &["https://www.googleapis.com/auth/datastore"];

/// Where tokens come from.
#[derive(Clone)]
pub(crate) enum Access {
    /// The emulator takes this word for the project's owner.
    Emulator,
    /// Google's credentials. The provider keeps a token until it expires, and then gets a new one.
    Google { provider: Arc<dyn TokenProvider>, patience: Duration },
}

impl Access {
    /// Looks for credentials where Google's libraries document that they are.
    pub async fn find(is_emulator: bool, patience: Duration) -> Result<Self> {
        if is_emulator {
            return Ok(Self::Emulator);
        }
        let found = timeout(patience, gcp_auth::provider()).await;
        let provider = found
            .map_err(|_| format!("there was no answer after {patience:?}"))
            .and_then(|found| found.map_err(|error| error.to_string()))
            .map_err(|reason| {
                let message = format!("no credentials for Firestore: {reason}");
                Error::new(ErrorKind::Misplaced, message).advise(
                    "Set GOOGLE_APPLICATION_CREDENTIALS to the key file of a service account, run `gcloud auth \
                     application-default login`, or add emulator=HOST:PORT to the URL.",
                )
            })?;
        Ok(Self::Google { provider, patience })
    }

    /// The value of `Authorization`.
    pub async fn header(&self) -> Result<HeaderValue> {
        let Self::Google { provider, patience } = self else {
            return Ok(HeaderValue::from_static("Bearer owner"));
        };
        let failed = |reason: String| {
            let message = format!("cannot get a token for Firestore: {reason}");
            Error::new(ErrorKind::Unavailable, message)
        };
        let token = timeout(*patience, provider.token(SCOPES)).await;
        let token = token
            .map_err(|_| failed(format!("there was no answer after {patience:?}")))?
            .map_err(|error| failed(error.to_string()))?;
        let mut header = HeaderValue::try_from(format!("Bearer {}", token.as_str()))
            .map_err(|_| failed("it cannot stand in a header".to_owned()))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emulator => "Emulator",
            Self::Google { .. } => "Google",
        })
    }
}
