//! What answers agents, whatever they speak through.

use std::sync::Arc;

use axum::http::Uri;
use futures_util::StreamExt;
use keyward::Code;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ResourceUpdatedNotificationParam,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::time::timeout;

use super::call::{Call, caller, headers};
use super::confirm::{self, Ask, Asked};
use super::endpoint::PATH;
use super::fixtures::Fixtures;
use super::seal::Seal;
use super::subscriptions::{Subscribed, can_be_watched, changes, changes_of};
use super::tools::{self, Done};
use super::{answer, completion, prompts, resources};
use crate::app::App;
use crate::audit;
use crate::auth::Identity;
use crate::http::watch::{Open, over};
use crate::metrics::RouteName;
use crate::problem::{Problem, Result};
use crate::shares::{Full, Holder, Place, Shares};

/// How long a list of tools may be taken for true: it changes with the credential and when the server
/// is started anew.
const LISTED_TTL_MS: u64 = 60_000;

const INSTRUCTIONS: &str = "Keyward keeps data. What agents keep for a user are entries in namespaces \
    (agent_…): begin with agent_namespaces. Records are in declared spaces (record_…): begin with the \
    resource keyward://schema. Documents that are kept in git are in registries (registry_…), if there are \
    any. Agreements under work, with their policies and issues, are in workspaces (agreement_…), if there are \
    any. Entries and records have versions: give one as if_version to change just \
    what you have read. A call that did not work says what to call next.";

/// Answers one session, or one request of a client without sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    shared: Arc<Shared>,
    subscribed: Arc<Subscribed>,
}

/// What all sessions have together.
#[derive(Debug)]
pub(super) struct Shared {
    pub app: App,
    pub seal: Seal,
    fixtures: Option<Fixtures>,
    /// One place for each call, and for each look at the stores, that may be in progress. Calls may outlive
    /// the request that brought them, and its slot.
    calls: Shares,
}

impl Shared {
    pub fn new(app: App, fixtures: bool) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            seal: Seal::new()?,
            fixtures: fixtures.then(Fixtures::default),
            calls: Shares::halved(app.limits().requests_max),
            app,
        }))
    }

    /// Takes one of the places of what is in progress.
    fn place(&self, who: &Identity) -> Result<Place> {
        self.calls.take(&Holder::of(who)).map_err(|full| {
            let detail = match full {
                Full::All => "the server is at capacity",
                Full::Part => "this credential has too many calls in progress",
            };
            Problem::new(Code::Overloaded, detail)
                .hint("Call it again in a moment; nothing was done.")
                .retryable()
        })
    }

    /// Does what a tool does, within the time that an answer may take, and tells the audit log.
    pub async fn run(&self, call: &Call) -> Result<Done> {
        let app = &self.app;
        let _place = self.place(&call.who)?;
        let meter = match app.usage().filter(|_| !app.auth().is_local()) {
            Some(usage) => Some(usage.meter(&call.who).await?),
            None => None,
        };
        let asked = audit::Asked {
            request: call.request.clone(),
            method: "POST",
            route: RouteName::Fixed(PATH),
            uri: Uri::try_from(format!("{PATH}/{}", call.tool))
                .unwrap_or_else(|_| Uri::from_static(PATH)),
        };
        let slip = app.audit().begin(&call.who, asked).await?;
        let done = match timeout(app.limits().answer_time_max, tools::run(call)).await {
            Ok(done) => done,
            Err(_) => Err(Problem::new(Code::OutcomeUnknown, "the store took too long to answer")
                .hint("It may or may not have been done: read before trying again.")),
        };
        slip.end(match &done {
            Ok(Done::Told(_) | Done::Said { failed: false, .. }) => 200,
            // It is as if it had been refused: nothing was done.
            Ok(Done::Ask(_) | Done::Said { failed: true, .. }) => 409,
            Err(problem) => problem.status(),
        });
        if let Some(meter) = meter {
            meter.end(matches!(done, Ok(Done::Told(_) | Done::Said { failed: false, .. })));
        }
        done
    }
}

impl Handler {
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), subscribed: Arc::default() }
    }

    fn app(&self) -> &App {
        &self.shared.app
    }

    /// Looks something up in the stores: one of so many at a time, within the time that an answer may take.
    async fn look<T>(
        &self,
        who: &Identity,
        looking: impl Future<Output = T>,
    ) -> Result<T, ErrorData> {
        let _place = self.shared.place(who).map_err(|problem| {
            ErrorData::internal_error(format!("{}; try again", problem.detail()), None)
        })?;
        let looking = timeout(self.app().limits().answer_time_max, looking);
        let late =
            || ErrorData::internal_error("the store took too long to answer; try again", None);
        tokio::select! {
            biased;
            found = looking => found.map_err(|_| late()),
            () = self.app().lifecycle().leaving() => Err(late()),
        }
    }

    /// Does what a tool does, and asks for confirmation where that is needed.
    async fn confirmed(
        &self,
        mut call: Call,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match confirm::answered(&self.shared.seal, &call, request)? {
            Some(Ok(count)) => call.confirmed = Some(count),
            Some(Err(_)) => return Ok(declined(&call).into()),
            None => {}
        }
        let ask = match self.shared.run(&call).await {
            Ok(Done::Told(text)) => return Ok(answer::told(text).into()),
            Ok(Done::Said { text, failed }) => return Ok(answer::said(text, failed).into()),
            Ok(Done::Ask(ask)) => ask,
            Err(problem) => {
                return Ok(answer::failed(&problem, &tools::next(&call, &problem)).into());
            }
        };
        match confirm::ask(&self.shared.seal, &call, &ask, context).await {
            Asked::Later(required) => return Ok((*required).into()),
            Asked::Declined => return Ok(declined(&call).into()),
            Asked::Unable => return Ok(unconfirmed(&call, &ask).into()),
            Asked::Stopping => return Ok(answer::failed(&stopping(), "").into()),
            Asked::Agreed => call.confirmed = Some(ask.count),
        }
        // What is done now is an act of its own.
        call.who = call.who.for_new_act();
        Ok(match self.shared.run(&call).await {
            Ok(Done::Told(text)) => answer::told(text).into(),
            Ok(Done::Said { text, failed }) => answer::said(text, failed).into(),
            // There are more, or fewer, by now.
            Ok(Done::Ask(ask)) => unconfirmed(&call, &ask).into(),
            Err(problem) => answer::failed(&problem, &tools::next(&call, &problem)).into(),
        })
    }
}

pub(super) fn unconfirmed(call: &Call, ask: &Ask) -> rmcp::model::CallToolResult {
    let Ask { count, question } = ask;
    let problem = Problem::new(Code::Unconfirmed, format!("nothing was done yet. {question}"))
        .hint("Make sure that this is wanted.");
    let next =
        format!("if it is, call {} again with the same arguments and confirm: {count}.", call.tool);
    answer::failed(&problem, &next)
}

fn stopping() -> Problem {
    Problem::new(Code::Stopping, "the server is about to stop, and nothing was done")
        .hint("Call it again, at another server of the same store if there is one.")
        .retryable()
}

pub(super) fn left() -> Problem {
    Problem::new(Code::OutcomeUnknown, "the server stopped before it was done")
        .hint("It may or may not have been done: read before trying again.")
}

fn declined(call: &Call) -> rmcp::model::CallToolResult {
    let problem = Problem::new(Code::Unconfirmed, "the user did not agree, and nothing was done")
        .hint("Do not call it again unless the user asks for it.");
    tracing::debug!(tool = call.tool, "a user declined");
    answer::failed(&problem, "")
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        let mut about = Implementation::new("keyward", env!("CARGO_PKG_VERSION"));
        about.title = Some("Keyward".to_owned());
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let who = caller(&context)?;
        let mut tools = tools::list(self.app(), &who);
        if let Some(fixtures) = &self.shared.fixtures {
            tools.extend(fixtures.tools());
        }
        let mut result = ListToolsResult::with_all_items(tools);
        (result.ttl_ms, result.cache_scope) = (Some(LISTED_TTL_MS), Some(CacheScope::Private));
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = Call::new(self.app(), &request.name, request.arguments.as_ref(), &context)?;
        if let Some(fixtures) = &self.shared.fixtures
            && let Some(done) = fixtures.call(&self.shared.seal, &call, &request, &context).await
        {
            return done;
        }
        if !tools::is_known(&request.name) {
            let detail = format!("there is no tool called {:?}; tools/list names them", call.tool);
            return Err(ErrorData::invalid_params(detail, None));
        }
        let given_up = context.ct.clone();
        tokio::select! {
            biased;
            done = self.confirmed(call, &request, &context) => done,
            () = given_up.cancelled() => {
                let detail = "the call was given up: it may or may not have been done";
                Err(ErrorData::internal_error(detail, None))
            }
            () = self.app().lifecycle().leaving() => Ok(answer::failed(&left(), "").into()),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let who = caller(&context)?;
        let mut listed = self.look(&who, resources::list(self.app(), &who)).await?;
        if let Some(fixtures) = &self.shared.fixtures {
            listed.resources.extend(fixtures.resources());
        }
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = resources::templates(self.app());
        if let Some(fixtures) = &self.shared.fixtures {
            listed.resource_templates.extend(fixtures.templates());
        }
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if let Some(fixtures) = &self.shared.fixtures
            && let Some(read) = fixtures.read(&request.uri)
        {
            return Ok(read.into());
        }
        let who = caller(&context)?;
        let read = self.look(&who, resources::read(self.app(), &who, &request.uri)).await?;
        Ok(read?.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = prompts::list();
        if let Some(fixtures) = &self.shared.fixtures {
            listed.prompts.extend(fixtures.prompts());
        }
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(fixtures) = &self.shared.fixtures
            && let Some(prompt) = fixtures.prompt(&request)
        {
            return prompt;
        }
        let who = caller(&context)?;
        let arguments = request.arguments.as_ref();
        let prompt = prompts::get(self.app(), &who, &request.name, arguments);
        Ok(self.look(&who, prompt).await??.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let who = caller(&context)?;
        let words = self.look(&who, completion::complete(self.app(), &who, &request)).await?;
        Ok(CompleteResult::new(words))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        let wanted = requested.resource_subscriptions.iter().flatten();
        let watched: Vec<String> = wanted.filter(|uri| can_be_watched(uri)).cloned().collect();
        accepted.resource_subscriptions = (!watched.is_empty()).then_some(watched);
        Some(accepted)
    }

    /// Tells of changes until the client hangs up, the server stops, or the credential is no longer
    /// valid.
    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let context = subscription.request_context();
        let who = caller(context)?;
        let app = self.app();
        let _open = Open::new(app, &who)
            .map_err(|problem| ErrorData::internal_error(problem.detail().to_owned(), None))?;
        let uris = subscription.accepted().resource_subscriptions.clone().unwrap_or_default();
        let mut changed = changes_of(app, &who, &uris);
        let telling = async {
            while let Some(uri) = changed.next().await {
                if subscription.sink().notify_resource_updated(uri).await.is_err() {
                    return;
                }
            }
            // Nothing can change for this caller; the client may still hang up.
            std::future::pending().await
        };
        let ended = async {
            match headers(context) {
                Some(headers) => over(app.clone(), headers.clone()).await,
                None => app.lifecycle().stopping().await,
            }
        };
        tokio::select! {
            () = telling => {}
            () = ended => {}
            () = subscription.cancelled() => {}
        }
        Ok(())
    }

    #[allow(deprecated, reason = "clients before the revision 2026-07-28 subscribe in this way")]
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let refused =
            |problem: Problem| ErrorData::invalid_params(problem.detail().to_owned(), None);
        let (app, who, uri) = (self.app().clone(), caller(&context)?, request.uri);
        let open = Open::new(&app, &who).map_err(refused)?;
        let mut changed = Box::pin(changes(&app, &who, &uri).map_err(refused)?);
        let (peer, watched) = (context.peer.clone(), uri.clone());
        let headers = headers(&context).cloned();
        let telling = tokio::spawn(async move {
            let _open = open;
            let told = async {
                while changed.next().await.is_some() {
                    let told = ResourceUpdatedNotificationParam::new(watched.clone());
                    if peer.notify_resource_updated(told).await.is_err() {
                        return;
                    }
                }
            };
            let ended = async {
                match headers {
                    Some(headers) => over(app, headers).await,
                    None => app.lifecycle().stopping().await,
                }
            };
            tokio::select! {
                () = told => {}
                () = ended => {}
            }
        });
        self.subscribed.add(&uri, telling.abort_handle()).map_err(refused)
    }

    #[allow(deprecated, reason = "clients before the revision 2026-07-28 unsubscribe in this way")]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.remove(&request.uri);
        Ok(())
    }
}
