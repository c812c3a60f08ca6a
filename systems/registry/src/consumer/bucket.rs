//! A bucket that policies are exported to.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use keyward_engine::BoxFuture;
use object_store::aws::{AmazonS3, AmazonS3Builder, AwsCredential};
use object_store::path::Path;
use object_store::{
    Attribute, ClientOptions, CredentialProvider, Error, ObjectStore, ObjectStoreExt, PutOptions,
    RetryConfig,
};

use super::export::{FILE, FOLDER};
use super::{said, tls};
use crate::{Bucket, Secret};

/// A request is sent again so often, where the service says that it is busy.
const RETRIES_MAX: usize = 2;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// The policies in a bucket.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    store: Arc<AmazonS3>,
    folder: Path,
}

impl Objects {
    pub fn new(bucket: &Bucket, timeout: Duration) -> Result<Self, String> {
        tls::provide();
        let s3 = &bucket.s3;
        let is_plain = s3.endpoint.as_deref().is_some_and(|at| at.starts_with("http://"));
        let client = ClientOptions::new()
            .with_timeout(timeout)
            .with_connect_timeout(timeout.min(CONNECT_TIME_MAX))
            .with_allow_http(s3.allow_http)
            // A service without TLS needs no authorities, which this machine may not have.
            .with_no_system_certificates(is_plain);
        let retry = RetryConfig {
            max_retries: RETRIES_MAX,
            retry_timeout: timeout,
            ..RetryConfig::default()
        };
        let mut builder = match (&s3.access_key, &s3.secret_key) {
            (Some(access_key), Some(secret_key)) => {
                AmazonS3Builder::new().with_credentials(Arc::new(Keys {
                    access_key: access_key.clone(),
                    secret_key: secret_key.clone(),
                }))
            }
            // As AWS's own tools find them.
            _ => AmazonS3Builder::from_env(),
        };
        builder = builder
            .with_bucket_name(&bucket.name)
            .with_client_options(client)
            .with_retry(retry)
            // Many compatible services lack it.
            .with_disable_bulk_delete(true);
        if let Some(endpoint) = &s3.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(region) = &s3.region {
            builder = builder.with_region(region);
        }
        let store = builder.build().map_err(|error| said(&error))?;
        let prefix = bucket.prefix.trim_matches('/');
        let folder =
            if prefix.is_empty() { FOLDER.to_owned() } else { format!("{prefix}/{FOLDER}") };
        let folder = Path::parse(folder).map_err(|error| said(&error))?;
        Ok(Self { store: Arc::new(store), folder })
    }

    /// As it is called, character for character: object keys can have any.
    fn path(&self, name: &str) -> Result<Path, String> {
        Path::parse(format!("{}/{name}/{FILE}", self.folder)).map_err(|error| said(&error))
    }

    /// Puts a policy; its entity tag, by which it is known again.
    pub async fn write(&self, name: &str, bytes: Bytes) -> Result<Option<String>, String> {
        let mut options = PutOptions::default();
        options.attributes.insert(Attribute::ContentType, "text/markdown; charset=utf-8".into());
        let put = self.store.put_opts(&self.path(name)?, bytes.into(), options).await;
        Ok(put.map_err(|error| said(&error))?.e_tag)
    }

    /// Removes a policy; one that is not there is removed already.
    pub async fn remove(&self, name: &str) -> Result<(), String> {
        match self.store.delete(&self.path(name)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(said(&error)),
        }
    }

    /// The policies that are there: name, size and entity tag. Other objects are passed over.
    pub async fn list(
        &self,
        mut see: impl FnMut(String, u64, Option<String>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut objects = self.store.list(Some(&self.folder));
        while let Some(object) = objects.next().await {
            let object = object.map_err(|error| said(&error))?;
            let Some(parts) = object.location.prefix_match(&self.folder) else { continue };
            let parts: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
            if let [name, file] = &parts[..]
                && file == FILE
            {
                see(name.clone(), object.size, object.e_tag)?;
            }
        }
        Ok(())
    }
}

/// Keys that are read when they are used, so that they can be changed while we run.
#[derive(Debug)]
struct Keys {
    access_key: Secret,
    secret_key: Secret,
}

impl CredentialProvider for Keys {
    type Credential = AwsCredential;

    fn get_credential<'a, 'f>(&'a self) -> BoxFuture<'f, object_store::Result<Arc<AwsCredential>>>
    where
        'a: 'f,
        Self: 'f,
    {
        let read = |secret: &Secret| {
            secret.read().map_err(|error| Error::Generic { store: "S3", source: error.into() })
        };
        let credential = read(&self.access_key).and_then(|key_id| {
            let secret_key = read(&self.secret_key)?;
            Ok(Arc::new(AwsCredential { key_id, secret_key, token: None }))
        });
        Box::pin(async { credential })
    }
}
