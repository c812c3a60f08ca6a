//! Telling a collector what was asked for, and how long it took: OpenTelemetry's protocol over HTTP.
//!
//! A span tells of one request: its method, route, status and id. What a client wrote (paths, keys,
//! values, credentials) is in none.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Request, Response};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::client::{Address, ask};

/// The target of the spans that tell of requests, so that logs can leave them out.
pub const TRACED: &str = "keyward_request";

/// How long the last spans may take to be told.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// Where spans are told: a collector. Spans wait in a queue that is bounded, and are left out when
/// it is full: no request waits for the collector.
pub struct Traces(SdkTracerProvider);

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

impl Traces {
    /// Tells a collector, such as `http://localhost:4318`; what is wrong with the URL is told as
    /// text. Must be called on a runtime, whose threads send what is told.
    pub fn open(collector: &str) -> Result<Self, String> {
        let url = format!("{}/v1/traces", collector.trim_end_matches('/'));
        let client = Client { address: Address::parse(&url)?, runtime: Handle::current() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .build()
            .map_err(|error| error.to_string())?;
        let resource = Resource::builder().with_service_name("keyward").build();
        let provider = SdkTracerProvider::builder().with_resource(resource);
        Ok(Self(provider.with_batch_exporter(exporter).build()))
    }

    /// What hands over the spans of requests.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let tracer = self.0.tracer("keyward");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            // What is logged meanwhile may hold what a client wrote.
            .with_filter(filter_fn(|about| about.is_span() && about.target() == TRACED))
    }

    /// Tells what has not been told yet.
    pub async fn close(self) {
        let close = move || self.0.shutdown_with_timeout(CLOSE_TIME_MAX);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(close).await {
            tracing::warn!(%error, "the last traces could not be told");
        }
    }
}

/// Gives a span the parent that the client names in `traceparent`, as W3C Trace Context has it.
pub(crate) fn adopt(span: &Span, headers: &HeaderMap) {
    if !span.is_disabled() {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        // Without a collector there is nobody to tell of the parent.
        let _ = span.set_parent(parent);
    }
}

/// Sends spans on the runtime of the server, from whatever thread.
#[derive(Debug)]
struct Client {
    address: Address,
    runtime: Handle,
}

impl HttpClient for Client {
    fn send_bytes<'c, 'f>(
        &'c self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'c: 'f,
        Self: 'f,
    {
        let address = self.address.clone();
        let sent = self.runtime.spawn(async move { ask(&address, request).await });
        Box::pin(async move { Ok(sent.await??) })
    }
}
