//! Request slots: how many requests are worked on at a time, in all and for one caller.

use axum::http::Extensions;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use keyward::Code;

use crate::app::App;
use crate::auth::Identity;
use crate::listener::Peer;
use crate::problem::{Problem, Result};
use crate::shares::{Full, Holder, Place, Shares};

/// For whom a request holds what it holds: its credential, or the address of somebody without one.
pub(super) fn holder(extensions: &Extensions) -> Holder {
    match extensions.get::<Identity>() {
        Some(who) => Holder::of(who),
        None => {
            let peer = extensions.get::<Peer>();
            Holder::at(peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0))
        }
    }
}

/// Takes the slot of a request that can be worked on now: it has no body, or its body has arrived.
pub(super) fn take(app: &App, holder: &Holder) -> Result<Place> {
    place(app.requests(), holder)
}

/// Takes the place of a request that is worked on while its body arrives.
pub(super) fn take_streaming(app: &App, holder: &Holder) -> Result<Place> {
    place(app.streams(), holder)
}

fn place(shares: &Shares, holder: &Holder) -> Result<Place> {
    shares.take(holder).map_err(|full| {
        overloaded(match full {
            Full::All => "the server is at capacity",
            Full::Part => "this credential or address has too many requests in progress",
        })
    })
}

/// What is refused because there is too much of it right now.
pub(super) fn overloaded(detail: &str) -> Problem {
    Problem::new(Code::Overloaded, detail)
        .hint("Try again in a moment; nothing was done.")
        .retryable()
        .retry_after(Duration::from_secs(1))
}
