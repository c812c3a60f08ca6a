//! Every code that an answer can carry, with its status and what it means.

/// A code that programs can rely on.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// Its stable text.
    pub name: &'static str,
    /// The status of HTTP that goes with it.
    pub status: u16,
    /// What it means, in one sentence.
    pub means: &'static str,
}

const fn code(name: &'static str, status: u16, means: &'static str) -> Code {
    Code { name, status, means }
}

/// All of them. Codes of the services keep the names that they have everywhere.
pub const CODES: &[Code] = {
    &[
        code("invalid", 400, "The request makes no sense as it is."),
        code("key-mismatch", 400, "The key does not have the shape of its space's keys."),
        code("bad-query", 400, "The question makes no sense as it is asked."),
        code(
            "bad-cursor",
            400,
            "The cursor is not one of this question and caller, or is too old.",
        ),
        code("bad-change", 400, "The change cannot be made to this value."),
        code("bad-document", 400, "A document is not what an agent's entry looks like."),
        code("unconfirmed", 409, "Much would be removed; how much must be said to confirm it."),
        code("bad-message", 400, "The message cannot be enqueued as it is."),
        code("bad-path", 400, "The path of a lock cannot be read."),
        code("outside-tree", 400, "The path is not one of the root's lock tree."),
        code(
            "needs-scan",
            400,
            "Everything would have to be read; that must be allowed explicitly.",
        ),
        code(
            "too-expensive",
            422,
            "The query read as many entries as it may before it could be answered.",
        ),
        code("unauthenticated", 401, "No credential was given, or none that is valid."),
        code("forbidden", 403, "The credential does not allow this."),
        code("cross-origin", 403, "A browser sent the request from a page of another origin."),
        code("reserved", 403, "The key belongs to Keyward's own machinery."),
        code("not-found", 404, "There is nothing, or nothing that the caller may know of."),
        code("unknown-store", 404, "The server has no such store."),
        code("unknown-space", 404, "The schema declares no such space."),
        code("unknown-registry", 404, "The server keeps no such registry."),
        code("unknown-consumer", 404, "The registry has no such consumer."),
        code("unknown-workspace", 404, "The server keeps no such workspace."),
        code("unknown-page", 404, "The workspace has no such page."),
        code("unknown-policy", 404, "The page has no such policy."),
        code(
            "not-made",
            404,
            "The policy has not been extracted or translated yet; POST to its path does that.",
        ),
        code("unknown-issue", 404, "The page has no such issue."),
        code("unknown-index", 404, "The space has no such index."),
        code("method-not-allowed", 405, "The path exists, the method on it does not."),
        code("timeout", 408, "The request did not arrive in time."),
        code("timed-out", 409, "It was waited for as long as was asked, in vain."),
        code("unique-clash", 409, "Another record has the same values in a unique index."),
        code("exists", 409, "There is a record with this key already."),
        code("id-taken", 409, "The id belongs to something with other content."),
        code("index-not-ready", 409, "The index is being built or is disabled."),
        code("contended", 409, "Others kept changing the same thing."),
        code("locked", 409, "Somebody else holds a lock that is in the way."),
        code("would-deadlock", 409, "The lock lies above one that the caller holds."),
        code("lock-lost", 409, "The lock is no longer held by the caller."),
        code("old-ticket", 409, "The ticket was replaced by a later one of the same lock."),
        code("computing", 409, "Somebody else is computing the value."),
        code("not-held", 409, "Nobody holds the lock."),
        code("attempt-lost", 409, "The message is no longer held by this attempt."),
        code("busy", 409, "Another run of the registry is under way."),
        code(
            "mass-delete",
            409,
            "More of the registry would be deleted than may be, unless it is allowed.",
        ),
        code("occupied", 409, "Something else keeps its documents under the same keys."),
        code("transition-refused", 409, "The issue cannot go from its state to that one."),
        code("issue-archived", 409, "The issue was put away, and takes no change."),
        code("issue-moved", 409, "Somebody else changed the issue meanwhile."),
        code("read-only", 409, "The pages are kept elsewhere, and only read here."),
        code("model-unset", 409, "No model is set, or a setting of it is missing."),
        code("task-failed", 409, "The job came to no result; its trace says why."),
        code("overtaken", 409, "Another process does the same."),
        code("refused", 409, "The migration cannot be done as things are."),
        code("foreign-value", 409, "The key holds something else."),
        code("foreign-fence", 409, "The key was written under locks of another root."),
        code("computation-failed", 409, "The value could not be computed a moment ago."),
        code("in-progress", 409, "A request with the same idempotency key is under way."),
        code("gone", 410, "The history that was asked for is no longer kept."),
        code("precondition-failed", 412, "What is there is not what the request expects."),
        code("limit-exceeded", 413, "The request is larger than a limit allows."),
        code("value-too-large", 413, "The value is larger than its space allows."),
        code("unsupported-media-type", 415, "The body is not of a type that is understood here."),
        code("schema-mismatch", 422, "The value is not what the schema of its space says."),
        code("contradicting-type", 422, "The attachment is not what its type or its name says."),
        code("empty-file", 422, "The attachment has no bytes."),
        code("encrypted", 422, "The attachment needs a password."),
        code("no-text", 422, "The attachment has no text, as scans have none."),
        code("broken", 422, "The attachment does not follow its format."),
        code("too-large", 422, "The attachment is beyond a limit of extraction."),
        code("too-much-memory", 422, "Extracting the attachment took more memory than it may."),
        code("took-too-long", 422, "Extracting the attachment took longer than it may."),
        code("model-truncated", 422, "The model's answer was cut before its end."),
        code("model-declined", 422, "The model would not answer."),
        code("model-too-large", 502, "The model's answer is larger than what is read."),
        code("model-malformed", 502, "The model's answer cannot be used."),
        code("model-refused", 502, "The provider of the model does not accept the key."),
        code("model-request-invalid", 422, "The model cannot be asked this as it is."),
        code("unindexable", 422, "A field cannot be indexed as it is."),
        code("idempotency-reuse", 422, "The idempotency key was used for another request."),
        code("headers-too-large", 431, "The headers of the request are too large."),
        code("too-many-locks", 429, "The root has as many holders or waiters as it takes."),
        code("rate-limited", 429, "The caller asks too often."),
        code("over-quota", 429, "The caller has used up what it may use."),
        code(
            "unsupported",
            501,
            "The store's engine cannot do that, or nothing here reads such a file.",
        ),
        code("unavailable", 503, "The store could not be reached; nothing was done."),
        code(
            "model-overloaded",
            503,
            "The provider of the model has too much to do, however often it was asked.",
        ),
        code("model-unreachable", 503, "The provider of the model could not be reached."),
        code("sandbox", 500, "The process that reads attachments failed."),
        code(
            "overloaded",
            503,
            "The server is at capacity, or the caller already uses its share of it.",
        ),
        code("stopping", 503, "The server is about to stop."),
        code(
            "source-failed",
            502,
            "The repository, or what pages come from, could not be read; nothing was changed.",
        ),
        code("consumer-failed", 502, "A consumer could not be told."),
        code("model-timed-out", 504, "The model's answer did not come in time."),
        code("outcome-unknown", 504, "It may or may not have been done."),
        code("full", 507, "There is no space left in the store."),
        code("corrupt", 500, "The stored data is damaged."),
        code("misplaced", 500, "The store cannot be opened where the configuration says."),
        code("bad-settings", 500, "The settings of the registry cannot be used."),
        code("no-secret", 500, "A secret that the settings name cannot be read."),
        code("internal", 500, "A fault of the server."),
    ]
};

/// The code with this name; `internal`'s, if none has it.
pub fn find(name: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.name == name)
}
