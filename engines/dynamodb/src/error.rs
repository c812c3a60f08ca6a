//! From the SDK's errors to what a caller can do.

use std::error::Error as StdError;

use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::batch_get_item::BatchGetItemError;
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::operation::describe_time_to_live::DescribeTimeToLiveError;
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::query::QueryError;
use aws_sdk_dynamodb::operation::scan::ScanError;
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_table::UpdateTableError;
use aws_sdk_dynamodb::operation::update_time_to_live::UpdateTimeToLiveError;
use aws_sdk_dynamodb::types::CancellationReason;
use aws_sdk_dynamodbstreams::operation::describe_stream::DescribeStreamError;
use aws_sdk_dynamodbstreams::operation::get_records::GetRecordsError;
use aws_sdk_dynamodbstreams::operation::get_shard_iterator::GetShardIteratorError;
use keyward_engine::{Error, ErrorKind};

/// Why a request was not done, or is not known to be done.
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// DynamoDB's own code, if it gave one.
    pub(crate) code: Option<String>,
    pub(crate) error: Error,
}

/// What a failure says about the request.
pub(crate) enum Cause {
    /// It was not done, and may be done later: no connection, no capacity, or another transaction on the same items.
    Postponed,
    /// It was sent, and nobody knows what became of it.
    Unanswered,
    /// A condition did not hold, and nothing was done: what was found, item by item.
    Checked(Vec<CancellationReason>),
    /// It was refused for good.
    Refused,
}

/// The errors of an operation.
pub(crate) trait Refusal: ProvideErrorMetadata + StdError + Send + Sync + 'static {
    /// Why a transaction was canceled, item by item.
    fn reasons(&self) -> &[CancellationReason] {
        &[]
    }
}

macro_rules! refusals {
    ($($error:ty),*) => { $(impl Refusal for $error {})* };
}

refusals!(
    BatchGetItemError,
    BatchWriteItemError,
    CreateTableError,
    DescribeStreamError,
    DescribeTableError,
    DescribeTimeToLiveError,
    GetItemError,
    GetRecordsError,
    GetShardIteratorError,
    PutItemError,
    QueryError,
    ScanError,
    UpdateTableError,
    UpdateTimeToLiveError
);

impl Refusal for TransactGetItemsError {
    fn reasons(&self) -> &[CancellationReason] {
        match self {
            Self::TransactionCanceledException(canceled) => canceled.cancellation_reasons(),
            _ => &[],
        }
    }
}

impl Refusal for TransactWriteItemsError {
    fn reasons(&self) -> &[CancellationReason] {
        match self {
            Self::TransactionCanceledException(canceled) => canceled.cancellation_reasons(),
            _ => &[],
        }
    }
}

impl Failure {
    fn new(cause: Cause, kind: ErrorKind, message: String) -> Self {
        Self { cause, code: None, error: Error::new(kind, message) }
    }

    /// Whether DynamoDB refused with this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether DynamoDB refused the request as one that it cannot take.
    pub(crate) fn is_invalid(&self) -> bool {
        let kinds = [ErrorKind::Invalid, ErrorKind::LimitExceeded];
        matches!(self.cause, Cause::Refused) && kinds.contains(&self.error.kind())
    }

    pub(crate) fn of<E: Refusal>(doing: &str, failed: &SdkError<E>) -> Self {
        let unanswered = |reason: String| {
            let message = format!("{doing}: DynamoDB did not answer: {reason}");
            Self::new(Cause::Unanswered, ErrorKind::Unavailable, message)
        };
        match failed {
            SdkError::ConstructionFailure(_) => {
                let message = format!("{doing}: {}", innermost(failed));
                Self::new(Cause::Refused, ErrorKind::Internal, message)
            }
            SdkError::TimeoutError(_) => unanswered("the attempt timed out".to_owned()),
            SdkError::DispatchFailure(_) if never_connected(failed) => {
                let message = format!("{doing}: cannot reach DynamoDB: {}", innermost(failed));
                Self::new(Cause::Postponed, ErrorKind::Unavailable, message)
            }
            // Before a request is signed, its credentials are fetched.
            SdkError::DispatchFailure(dispatch)
                if !(dispatch.is_io() || dispatch.is_timeout())
                    && DisplayErrorContext(failed).to_string().contains("redential") =>
            {
                Self {
                    error: no_credentials(innermost(failed)),
                    ..Self::new(Cause::Refused, ErrorKind::Forbidden, String::new())
                }
            }
            SdkError::ServiceError(_) => Self::of_service(doing, failed),
            _ => unanswered(innermost(failed)),
        }
    }

    fn of_service<E: Refusal>(doing: &str, failed: &SdkError<E>) -> Self {
        let status = failed.raw_response().map_or(0, |response| response.status().as_u16());
        let reasons = failed.as_service_error().map_or(&[][..], Refusal::reasons);
        let (code, said) = (failed.code(), failed.message());
        // A transaction says for each of its items what was the matter.
        let telling = reasons.iter().find(|reason| reason.code() != Some("None"));
        let (inner, inner_said) = match telling {
            Some(reason) => (reason.code(), reason.message()),
            None => (code, said),
        };
        let shown = inner.map_or_else(|| format!("HTTP status {status}"), str::to_owned);
        let message = match inner_said.or(said) {
            Some(said) => format!("{doing}: DynamoDB answered {shown}: {said}"),
            None => format!("{doing}: DynamoDB answered {shown}"),
        };
        let has = |code: &str| reasons.iter().any(|reason| reason.code() == Some(code));
        let (cause, kind) = if has("ConditionalCheckFailed") {
            (Cause::Checked(reasons.to_vec()), ErrorKind::Internal)
        } else if has("TransactionConflict") {
            (Cause::Postponed, ErrorKind::Unavailable)
        } else {
            of_code(inner.unwrap_or_default(), status, &message)
        };
        let mut error = Error::new(kind, message);
        if kind == ErrorKind::Forbidden {
            error = error
                .advise("Check the AWS credentials and what their policy allows on this table.");
        }
        Self { cause, code: code.map(str::to_owned), error }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

/// What DynamoDB's code, or else the status, means.
fn of_code(code: &str, status: u16, message: &str) -> (Cause, ErrorKind) {
    match code {
        "ProvisionedThroughputExceededException"
        | "ProvisionedThroughputExceeded"
        | "ThrottlingException"
        | "ThrottlingError"
        | "Throttling"
        | "RequestLimitExceeded"
        | "LimitExceededException"
        | "TransactionConflictException"
        | "ReplicatedWriteConflictException" => (Cause::Postponed, ErrorKind::Unavailable),
        // An earlier attempt of the same request, whose answer is still to come.
        "TransactionInProgressException" => (Cause::Unanswered, ErrorKind::Unavailable),
        "ResourceNotFoundException" => (Cause::Refused, ErrorKind::Misplaced),
        "AccessDeniedException"
        | "AccessDenied"
        | "UnrecognizedClientException"
        | "InvalidSignatureException"
        | "IncompleteSignatureException"
        | "IncompleteSignature"
        | "MissingAuthenticationTokenException"
        | "MissingAuthenticationToken"
        | "InvalidClientTokenId"
        | "ExpiredTokenException"
        | "ExpiredToken" => (Cause::Refused, ErrorKind::Forbidden),
        "ValidationException" | "ValidationError" if is_too_large(message) => {
            (Cause::Refused, ErrorKind::LimitExceeded)
        }
        "ValidationException" | "ValidationError" => (Cause::Refused, ErrorKind::Invalid),
        _ if status == 429 => (Cause::Postponed, ErrorKind::Unavailable),
        _ if status >= 500 => (Cause::Unanswered, ErrorKind::Unavailable),
        _ if status == 401 || status == 403 => (Cause::Refused, ErrorKind::Forbidden),
        _ => (Cause::Refused, ErrorKind::Internal),
    }
}

fn is_too_large(message: &str) -> bool {
    ["tem size", "size limit", "Nesting Levels", "payload", "Expression size"]
        .iter()
        .any(|part| message.contains(part))
        && ["exceed", "too large"].iter().any(|part| message.contains(part))
}

/// What to say if there are no credentials.
pub(crate) fn no_credentials(reason: String) -> Error {
    Error::new(ErrorKind::Forbidden, format!("no AWS credentials: {reason}")).advise(
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; on EC2, add imds=true to the store's URL.",
    )
}

/// Whether no connection was made, so that nothing was sent.
fn never_connected(failed: &(dyn StdError + 'static)) -> bool {
    sources(failed).any(|source| {
        let error = source.downcast_ref::<hyper_util::client::legacy::Error>();
        error.is_some_and(hyper_util::client::legacy::Error::is_connect)
    })
}

/// The innermost cause: those around it say little.
pub(crate) fn innermost(failed: &(dyn StdError + 'static)) -> String {
    sources(failed).last().map_or_else(String::new, ToString::to_string)
}

fn sources<'e>(
    failed: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(failed), |error: &&'e (dyn StdError + 'static)| (*error).source())
}
