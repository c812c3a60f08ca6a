//! Agents' calls over MCP against the least that the protocol's library can answer.

use std::sync::Arc;

use axum::Router;
use keyward::agents::{Actor, Set};
use keyward_engine::Json;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::http::{apart, ask, connected, serve_bare, served};
use crate::Result;
use crate::bench::Bench;
use crate::measure::{Side, alternate, rate};
use crate::report::{Goal, Row};

const AGENTS: u64 = 16;
const ENTRIES: usize = 1_000;
const REVISION: &str = "2026-07-28";

/// Agents that get an entry by a tool, each on a connection of its own; against a tool of the protocol's
/// library alone that gives back what it is sent.
pub fn get(bench: &mut Bench) -> Result<Vec<Row>> {
    let (runtime, data, address) = served(bench)?;
    runtime.block_on(async {
        let agents = data.agents("main").await?;
        let entries = agents.user("local", Actor::nobody()).default_namespace()?;
        let value = Json::parse(r#"{"result":"analysis complete","score":95}"#)?;
        let all = (0..ENTRIES).map(|n| (key(n), Set::new(value.clone()))).collect();
        entries.set_many(all).await?;
        Ok::<_, crate::Failure>(())
    })?;
    let service = StreamableHttpService::new(
        || Ok(Echo),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_json_response(true),
    );
    let bare = runtime.block_on(serve_bare(Router::new().fallback_service(service)))?;
    let ours = runtime.block_on(connected(address, AGENTS))?;
    let theirs = runtime.block_on(connected(bare, AGENTS))?;
    let calls: Arc<Vec<(String, String)>> =
        Arc::new((0..ENTRIES).map(|n| (call("agent_get", n), call("echo", n))).collect());
    let time = bench.settings.commit_time;
    let comparison = alternate(bench.settings.commit_rounds, |side, _| {
        let measured = side == Side::Measured;
        let connections = if measured { ours.clone() } else { theirs.clone() };
        let calls = calls.clone();
        runtime.block_on(rate(AGENTS, time, 0, move |n| {
            let (connections, calls) = (connections.clone(), calls.clone());
            async move {
                let (ours, theirs) = &calls[apart(n, calls.len())];
                ask(&connections, n, if measured { ours } else { theirs }).await
            }
        }))
    })?;
    Ok(vec![Row {
        case: "mcp_get".to_owned(),
        compares: format!("agent_get by MCP / a bare tool that echoes, connections: {AGENTS}"),
        comparison,
        unit: "calls/s",
        goal: Some(Goal::AtLeast(0.6)),
    }])
}

fn key(number: usize) -> String {
    format!("key-{number}")
}

/// A call of a tool by a client without a session.
fn call(tool: &str, number: usize) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"key":"{}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{REVISION}","io.modelcontextprotocol/clientInfo":{{"name":"bench","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
        key(number)
    );
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {REVISION}\r\n\
         mcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A server with one tool, which gives back what it is sent.
#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let sent = serde_json::Value::from(request.arguments.unwrap_or_default());
        let mut echo = CallToolResult::success(vec![ContentBlock::text(sent.to_string())]);
        echo.structured_content = Some(sent);
        Ok(echo.into())
    }
}
