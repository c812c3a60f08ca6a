//! Attacks on a running server. Each must leave other users alone: their gets stay fast, `/healthz`
//! answers, memory is bounded, and everything is normal a few seconds later.
//!
//! Everything happens on loopback. The attackers come from 127.0.0.2 and above, the bystander, whose
//! requests are measured, from 127.0.0.1.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod bystander;
mod client;
mod flood;
mod http;
mod sandbox;
mod scene;
mod server;

mod cross_origin;
mod empty_near;
mod fuzz;
mod idle_watchers;
mod missing_bodies;
mod never_reading;
mod overload_log;
mod refused_writes;
mod stopped_writer;
mod strangers;
