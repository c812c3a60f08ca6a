use std::fmt;

use aws_config::Region;
use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_sdk_dynamodb::config::{SharedCredentialsProvider, SharedHttpClient};

use crate::Options;

/// Fixed credentials, instead of those that the environment names.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The id of the access key.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: String,
    /// The token of credentials that end.
    pub session_token: Option<String>,
}

impl Credentials {
    /// Credentials that do not end.
    pub fn new(access_key_id: impl Into<String>, secret_access_key: impl Into<String>) -> Self {
        let (access_key_id, secret_access_key) = (access_key_id.into(), secret_access_key.into());
        Self { access_key_id, secret_access_key, session_token: None }
    }
}

/// Without the secrets.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// Where credentials come from: those given, or else the environment as every AWS SDK reads it.
///
/// The metadata service of EC2 is asked only if the options say so: elsewhere its address leads to nobody, or to
/// somebody else.
pub(crate) fn provider(options: &Options, http: &SharedHttpClient) -> SharedCredentialsProvider {
    if let Some(given) = &options.credentials {
        let fixed = aws_sdk_dynamodb::config::Credentials::new(
            &given.access_key_id,
            &given.secret_access_key,
            given.session_token.clone(),
            None,
            "keyward",
        );
        return SharedCredentialsProvider::new(fixed);
    }
    let config = ProviderConfig::without_region()
        .with_region(Some(Region::new(options.region.clone())))
        .with_http_client(http.clone());
    let profile = ProfileFileCredentialsProvider::builder().configure(&config).build();
    let web_identity = WebIdentityTokenCredentialsProvider::builder().configure(&config).build();
    let container = EcsCredentialsProvider::builder().configure(&config).build();
    let chain = CredentialsProviderChain::first_try(
        "Environment",
        EnvironmentVariableCredentialsProvider::new(),
    )
    .or_else("Profile", profile)
    .or_else("WebIdentityToken", web_identity)
    .or_else("EcsContainer", container);
    if !options.instance_credentials {
        return SharedCredentialsProvider::new(chain);
    }
    let instance = ImdsCredentialsProvider::builder().configure(&config).build();
    SharedCredentialsProvider::new(chain.or_else("Ec2InstanceMetadata", instance))
}
