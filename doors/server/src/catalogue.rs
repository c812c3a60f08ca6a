//! Every code that an answer can carry, with its status and what it means.

use axum::http::StatusCode;

/// A code that programs can rely on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Code {
    pub name: &'static str,
    pub status: StatusCode,
    /// What it means, in one sentence.
    pub means: &'static str,
}

const fn code(name: &'static str, status: StatusCode, means: &'static str) -> Code {
    Code { name, status, means }
}

/// All of them. Codes of the services keep the names that they have everywhere.
pub(crate) const CODES: &[Code] = {
    use StatusCode as S;
    &[
        code("invalid", S::BAD_REQUEST, "The request makes no sense as it is."),
        code(
            "key-mismatch",
            S::BAD_REQUEST,
            "The key does not have the shape of its space's keys.",
        ),
        code("bad-query", S::BAD_REQUEST, "The question makes no sense as it is asked."),
        code(
            "bad-cursor",
            S::BAD_REQUEST,
            "The cursor is not one of this question and caller, or is too old.",
        ),
        code("bad-change", S::BAD_REQUEST, "The change cannot be made to this value."),
        code("bad-document", S::BAD_REQUEST, "A document is not what an agent's entry looks like."),
        code(
            "unconfirmed",
            S::CONFLICT,
            "Much would be removed; how much must be said to confirm it.",
        ),
        code("bad-message", S::BAD_REQUEST, "The message cannot be enqueued as it is."),
        code("bad-path", S::BAD_REQUEST, "The path of a lock cannot be read."),
        code("outside-tree", S::BAD_REQUEST, "The path is not one of the root's lock tree."),
        code(
            "needs-scan",
            S::BAD_REQUEST,
            "Everything would have to be read; that must be allowed explicitly.",
        ),
        code(
            "too-expensive",
            S::UNPROCESSABLE_ENTITY,
            "The query read as many entries as it may before it could be answered.",
        ),
        code("unauthenticated", S::UNAUTHORIZED, "No credential was given, or none that is valid."),
        code("forbidden", S::FORBIDDEN, "The credential does not allow this."),
        code(
            "cross-origin",
            S::FORBIDDEN,
            "A browser sent the request from a page of another origin.",
        ),
        code("reserved", S::FORBIDDEN, "The key belongs to Keyward's own machinery."),
        code(
            "not-found",
            S::NOT_FOUND,
            "There is nothing, or nothing that the caller may know of.",
        ),
        code("unknown-store", S::NOT_FOUND, "The server has no such store."),
        code("unknown-space", S::NOT_FOUND, "The schema declares no such space."),
        code("unknown-registry", S::NOT_FOUND, "The server keeps no such registry."),
        code("unknown-consumer", S::NOT_FOUND, "The registry has no such consumer."),
        code("unknown-workspace", S::NOT_FOUND, "The server keeps no such workspace."),
        code("unknown-page", S::NOT_FOUND, "The workspace has no such page."),
        code("unknown-policy", S::NOT_FOUND, "The page has no such policy."),
        code(
            "not-made",
            S::NOT_FOUND,
            "The policy has not been extracted or translated yet; POST to its path does that.",
        ),
        code("unknown-issue", S::NOT_FOUND, "The page has no such issue."),
        code("unknown-index", S::NOT_FOUND, "The space has no such index."),
        code(
            "method-not-allowed",
            S::METHOD_NOT_ALLOWED,
            "The path exists, the method on it does not.",
        ),
        code("timeout", S::REQUEST_TIMEOUT, "The request did not arrive in time."),
        code("timed-out", S::CONFLICT, "It was waited for as long as was asked, in vain."),
        code("unique-clash", S::CONFLICT, "Another record has the same values in a unique index."),
        code("exists", S::CONFLICT, "There is a record with this key already."),
        code("id-taken", S::CONFLICT, "The id belongs to something with other content."),
        code("index-not-ready", S::CONFLICT, "The index is being built or is disabled."),
        code("contended", S::CONFLICT, "Others kept changing the same thing."),
        code("locked", S::CONFLICT, "Somebody else holds a lock that is in the way."),
        code("would-deadlock", S::CONFLICT, "The lock lies above one that the caller holds."),
        code("lock-lost", S::CONFLICT, "The lock is no longer held by the caller."),
        code("old-ticket", S::CONFLICT, "The ticket was replaced by a later one of the same lock."),
        code("computing", S::CONFLICT, "Somebody else is computing the value."),
        code("not-held", S::CONFLICT, "Nobody holds the lock."),
        code("attempt-lost", S::CONFLICT, "The message is no longer held by this attempt."),
        code("busy", S::CONFLICT, "Another run of the registry is under way."),
        code(
            "mass-delete",
            S::CONFLICT,
            "More of the registry would be deleted than may be, unless it is allowed.",
        ),
        code("occupied", S::CONFLICT, "Something else keeps its documents under the same keys."),
        code("transition-refused", S::CONFLICT, "The issue cannot go from its state to that one."),
        code("issue-archived", S::CONFLICT, "The issue was put away, and takes no change."),
        code("issue-moved", S::CONFLICT, "Somebody else changed the issue meanwhile."),
        code("read-only", S::CONFLICT, "The pages are kept elsewhere, and only read here."),
        code("model-unset", S::CONFLICT, "No model is set, or a setting of it is missing."),
        code("task-failed", S::CONFLICT, "The job came to no result; its trace says why."),
        code("overtaken", S::CONFLICT, "Another process does the same."),
        code("refused", S::CONFLICT, "The migration cannot be done as things are."),
        code("foreign-value", S::CONFLICT, "The key holds something else."),
        code("foreign-fence", S::CONFLICT, "The key was written under locks of another root."),
        code("computation-failed", S::CONFLICT, "The value could not be computed a moment ago."),
        code("in-progress", S::CONFLICT, "A request with the same idempotency key is under way."),
        code("gone", S::GONE, "The history that was asked for is no longer kept."),
        code(
            "precondition-failed",
            S::PRECONDITION_FAILED,
            "What is there is not what the request expects.",
        ),
        code("limit-exceeded", S::PAYLOAD_TOO_LARGE, "The request is larger than a limit allows."),
        code("value-too-large", S::PAYLOAD_TOO_LARGE, "The value is larger than its space allows."),
        code(
            "unsupported-media-type",
            S::UNSUPPORTED_MEDIA_TYPE,
            "The body is not of a type that is understood here.",
        ),
        code(
            "schema-mismatch",
            S::UNPROCESSABLE_ENTITY,
            "The value is not what the schema of its space says.",
        ),
        code(
            "contradicting-type",
            S::UNPROCESSABLE_ENTITY,
            "The attachment is not what its type or its name says.",
        ),
        code("empty-file", S::UNPROCESSABLE_ENTITY, "The attachment has no bytes."),
        code("encrypted", S::UNPROCESSABLE_ENTITY, "The attachment needs a password."),
        code("no-text", S::UNPROCESSABLE_ENTITY, "The attachment has no text, as scans have none."),
        code("broken", S::UNPROCESSABLE_ENTITY, "The attachment does not follow its format."),
        code(
            "too-large",
            S::UNPROCESSABLE_ENTITY,
            "The attachment is beyond a limit of extraction.",
        ),
        code(
            "too-much-memory",
            S::UNPROCESSABLE_ENTITY,
            "Extracting the attachment took more memory than it may.",
        ),
        code(
            "took-too-long",
            S::UNPROCESSABLE_ENTITY,
            "Extracting the attachment took longer than it may.",
        ),
        code(
            "model-truncated",
            S::UNPROCESSABLE_ENTITY,
            "The model's answer was cut before its end.",
        ),
        code("model-declined", S::UNPROCESSABLE_ENTITY, "The model would not answer."),
        code("model-too-large", S::BAD_GATEWAY, "The model's answer is larger than what is read."),
        code("model-malformed", S::BAD_GATEWAY, "The model's answer cannot be used."),
        code("model-refused", S::BAD_GATEWAY, "The provider of the model does not accept the key."),
        code(
            "model-request-invalid",
            S::UNPROCESSABLE_ENTITY,
            "The model cannot be asked this as it is.",
        ),
        code("unindexable", S::UNPROCESSABLE_ENTITY, "A field cannot be indexed as it is."),
        code(
            "idempotency-reuse",
            S::UNPROCESSABLE_ENTITY,
            "The idempotency key was used for another request.",
        ),
        code(
            "headers-too-large",
            S::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "The headers of the request are too large.",
        ),
        code(
            "too-many-locks",
            S::TOO_MANY_REQUESTS,
            "The root has as many holders or waiters as it takes.",
        ),
        code("rate-limited", S::TOO_MANY_REQUESTS, "The caller asks too often."),
        code("over-quota", S::TOO_MANY_REQUESTS, "The caller has used up what it may use."),
        code(
            "unsupported",
            S::NOT_IMPLEMENTED,
            "The store's engine cannot do that, or nothing here reads such a file.",
        ),
        code(
            "unavailable",
            S::SERVICE_UNAVAILABLE,
            "The store could not be reached; nothing was done.",
        ),
        code(
            "model-overloaded",
            S::SERVICE_UNAVAILABLE,
            "The provider of the model has too much to do, however often it was asked.",
        ),
        code(
            "model-unreachable",
            S::SERVICE_UNAVAILABLE,
            "The provider of the model could not be reached.",
        ),
        code("sandbox", S::INTERNAL_SERVER_ERROR, "The process that reads attachments failed."),
        code(
            "overloaded",
            S::SERVICE_UNAVAILABLE,
            "The server is at capacity, or the caller already uses its share of it.",
        ),
        code("stopping", S::SERVICE_UNAVAILABLE, "The server is about to stop."),
        code(
            "source-failed",
            S::BAD_GATEWAY,
            "The repository, or what pages come from, could not be read; nothing was changed.",
        ),
        code("consumer-failed", S::BAD_GATEWAY, "A consumer could not be told."),
        code("model-timed-out", S::GATEWAY_TIMEOUT, "The model's answer did not come in time."),
        code("outcome-unknown", S::GATEWAY_TIMEOUT, "It may or may not have been done."),
        code("full", S::INSUFFICIENT_STORAGE, "There is no space left in the store."),
        code("corrupt", S::INTERNAL_SERVER_ERROR, "The stored data is damaged."),
        code(
            "misplaced",
            S::INTERNAL_SERVER_ERROR,
            "The store cannot be opened where the configuration says.",
        ),
        code(
            "bad-settings",
            S::INTERNAL_SERVER_ERROR,
            "The settings of the registry cannot be used.",
        ),
        code(
            "no-secret",
            S::INTERNAL_SERVER_ERROR,
            "A secret that the settings name cannot be read.",
        ),
        code("internal", S::INTERNAL_SERVER_ERROR, "A fault of the server."),
    ]
};

/// The code with this name; `internal`'s, if none has it.
pub(crate) fn find(name: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.name == name)
}
