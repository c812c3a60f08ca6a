//! What the client does when servers and networks misbehave.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod budget;
mod errors;
mod retries;
mod server;
mod writes;

use std::net::SocketAddr;
use std::time::Duration;

use keyward_engine::{Error, Result};
use keyward_http::{Client, Effect, Method, Options, Request, Response, Url};

/// Long enough for every attempt a test expects to succeed.
const PATIENT: Duration = Duration::from_secs(30);
/// Long enough for a few attempts, none of which a test expects to succeed.
const SHORT: Duration = Duration::from_millis(400);

fn client(retry_budget: Duration) -> Client {
    client_with(Options { retry_budget, ..Options::default() })
}

fn client_with(options: Options) -> Client {
    Client::new("TestDB", options, false).unwrap()
}

fn url(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}/path")).unwrap()
}

fn write(address: SocketAddr, effect: Effect) -> Request {
    Request::new(Method::PUT, url(address), effect).json("[1]")
}

/// The status and the body.
fn read(response: &Response) -> (u16, &str) {
    (response.status.as_u16(), std::str::from_utf8(&response.body).unwrap())
}

fn failed(result: Result<Response>) -> Error {
    match result {
        Ok(response) => panic!("it should have failed, but was answered {response:?}"),
        Err(error) => error,
    }
}
