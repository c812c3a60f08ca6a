//! The token that shows to which app and installation a request belongs.

use std::fmt;
use std::path::PathBuf;

use keyward_engine::{BoxFuture, Error, ErrorKind, Result, read_secret_file};
use keyward_http::header::HeaderValue;

/// More than a token of Atlassian has.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// An app system token: what Forge Remote sends in `x-forge-oauth-system`. It is valid for about an hour.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(HeaderValue);

impl Token {
    /// Takes a token as it was received.
    pub fn new(token: &str) -> Result<Self> {
        let refused = |what: &str| {
            let message = format!("the Forge token {what}");
            Error::new(ErrorKind::Invalid, message)
                .advise("Pass the app system token that Forge Remote sent in x-forge-oauth-system.")
        };
        let token = token.trim();
        if token.is_empty() {
            return Err(refused("is empty"));
        }
        let header = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut header =
            header.map_err(|_| refused("has characters that no HTTP header can carry"))?;
        header.set_sensitive(true);
        Ok(Self(header))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

/// Does not show the token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where an engine gets the token of a request. Tokens expire, and each invocation of a Forge app brings a new one.
pub trait TokenSource: Send + Sync + 'static {
    /// The token to send. Asked for before each request, and again with the token that Forge `refused`; a source
    /// that has no other one then gives the same.
    fn token<'a>(&'a self, refused: Option<&'a Token>) -> BoxFuture<'a, Result<Token>>;
}

/// Always the same.
impl TokenSource for Token {
    fn token<'a>(&'a self, _refused: Option<&'a Token>) -> BoxFuture<'a, Result<Token>> {
        Box::pin(async { Ok(self.clone()) })
    }
}

/// A file that holds a token, and that somebody else replaces before the token expires. It is read for each request,
/// which costs far less than the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// A file with one token in it. Only its owner and group may read it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    fn read(&self) -> Result<Token> {
        let shown = self.0.display();
        let text = read_secret_file(&self.0, TOKEN_BYTES_MAX).map_err(|error| {
            let message = format!("cannot read the Forge token from {shown}");
            Error::new(ErrorKind::Misplaced, message).caused_by(error)
        })?;
        Token::new(&text).map_err(|error| {
            let message = format!("{shown} holds no token: {}", error.message());
            Error::new(ErrorKind::Misplaced, message)
        })
    }
}

impl TokenSource for TokenFile {
    fn token<'a>(&'a self, _refused: Option<&'a Token>) -> BoxFuture<'a, Result<Token>> {
        let file = self.clone();
        Box::pin(async move {
            tokio::task::spawn_blocking(move || file.read()).await.map_err(|error| {
                Error::new(ErrorKind::Internal, "reading the Forge token failed").caused_by(error)
            })?
        })
    }
}
