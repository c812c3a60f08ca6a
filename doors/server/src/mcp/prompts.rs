//! Ways to begin, which a person chooses.

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ContentBlock, GetPromptResult, JsonObject, ListPromptsResult, Prompt,
    PromptArgument, PromptMessage, ResourceContents, Role,
};
use serde_json::Value;

use super::resources;
use super::uri;
use crate::api::spaces::reach;
use crate::app::App;
use crate::auth::Identity;

/// The longest argument of a prompt.
const ARGUMENT_BYTES_MAX: usize = 4_096;

/// The prompts, always in the same order.
pub(super) fn list() -> ListPromptsResult {
    let required = |name: &str, about: &str| {
        PromptArgument::new(name).with_description(about).with_required(true)
    };
    let mut result = ListPromptsResult::with_all_items(vec![
        Prompt::new(
            "explore_space",
            Some("Get to know the records of a space, and what can be asked of them."),
            Some(vec![required("space", "The name of a space")]),
        )
        .with_title("Explore a space"),
        Prompt::new(
            "find_records",
            Some("Answer a question from the records of a space, through its indexes."),
            Some(vec![
                required("space", "The name of a space"),
                required("question", "What is to be found out"),
            ]),
        )
        .with_title("Find records"),
        Prompt::new(
            "work_under_lock",
            Some("Do something that others must not do at the same time."),
            Some(vec![
                required("root", "The key that the work is about, such as page:7"),
                required("task", "What is to be done"),
            ]),
        )
        .with_title("Work under a lock"),
    ]);
    (result.ttl_ms, result.cache_scope) = (Some(60_000), Some(CacheScope::Public));
    result
}

/// A prompt with its arguments in it.
pub(super) async fn get(
    app: &App,
    who: &Identity,
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, ErrorData> {
    refuse_undeclared(name, arguments)?;
    let argument = |name: &str| given(arguments, name);
    match name {
        "explore_space" => {
            let space = argument("space")?;
            let (resource, said) = declared(app, who, space).await?;
            let text = format!(
                "{said}\n\nGet to know the space {space}: list some keys with record_list, read a few \
                 records with record_get, and then tell me in a few sentences what is kept there, how \
                 keys are made, and which questions its indexes answer. Change nothing."
            );
            Ok(told(Some(resource), text))
        }
        "find_records" => {
            let (space, question) = (argument("space")?, argument("question")?);
            let (resource, said) = declared(app, who, space).await?;
            let text = format!(
                "{said}\n\nQuestion: {question}\n\nAnswer it from the records of the space {space}. \
                 Choose the index whose leading fields the question fixes, and ask record_query with \
                 equal, and a range or a prefix for the field after them; use filter for the rest, and \
                 fields for what you need. Follow next until you have enough. Name the keys of the \
                 records that the answer rests on, and say so if they do not tell."
            );
            Ok(told(Some(resource), text))
        }
        "work_under_lock" => {
            let (root, task) = (argument("root")?, argument("task")?);
            let text = format!(
                "Task: {task}\n\nOthers may want to do the same. Take the lock of {root} first: \
                 lock_acquire with root {root:?}, wait 25 and what the task is as purpose. If somebody \
                 else holds it, tell me who and stop. While you work, call lock_renew before three \
                 quarters of the lease have passed; if it is lost, stop at once and say what was done. \
                 At the end, whether it worked or not, call lock_release."
            );
            Ok(told(None, text))
        }
        _ => Err(ErrorData::invalid_params(
            format!("there is no prompt called {name:?}; prompts/list names them"),
            None,
        )),
    }
}

/// What is declared about a space, to be read along.
async fn declared(
    app: &App,
    who: &Identity,
    space: &str,
) -> Result<(ResourceContents, String), ErrorData> {
    let reached = reach(who, app.stores(), space)
        .map_err(|problem| ErrorData::invalid_params(problem.detail().to_owned(), None))?;
    let uri = uri::space(&reached.served.name, space);
    let read = resources::read(app, who, &uri).await?;
    let resource = read.contents.into_iter().next();
    let resource = resource.ok_or_else(|| ErrorData::internal_error("it is empty", None))?;
    Ok((resource, format!("The declaration of the space {space} stands above.")))
}

fn told(resource: Option<ResourceContents>, text: String) -> GetPromptResult {
    let resource = resource.map(|it| PromptMessage::new(Role::User, ContentBlock::resource(it)));
    let text = PromptMessage::new(Role::User, ContentBlock::text(text));
    GetPromptResult::new(resource.into_iter().chain([text]).collect())
}

/// Refuses arguments that the declaration of the prompt does not name, as tools do. A prompt that does not exist is
/// left to be refused as such.
fn refuse_undeclared(name: &str, arguments: Option<&JsonObject>) -> Result<(), ErrorData> {
    let Some(prompt) = list().prompts.into_iter().find(|prompt| prompt.name == name) else {
        return Ok(());
    };
    let declared = prompt.arguments.unwrap_or_default();
    let is_declared = |name: &String| declared.iter().any(|argument| argument.name == *name);
    match arguments.and_then(|given| given.keys().find(|name| !is_declared(name))) {
        None => Ok(()),
        Some(unknown) => Err(ErrorData::invalid_params(
            format!("there is no argument called {unknown:?}; prompts/list names those of {name}"),
            None,
        )),
    }
}

fn given<'a>(arguments: Option<&'a JsonObject>, name: &str) -> Result<&'a str, ErrorData> {
    let refuse = |detail: String| ErrorData::invalid_params(detail, None);
    match arguments.and_then(|arguments| arguments.get(name)) {
        Some(Value::String(text)) if text.len() <= ARGUMENT_BYTES_MAX => Ok(text),
        Some(Value::String(_)) => {
            Err(refuse(format!("the argument {name} has at most {ARGUMENT_BYTES_MAX} bytes")))
        }
        Some(_) => Err(refuse(format!("the argument {name} is a text"))),
        None => Err(refuse(format!("the argument {name} is missing"))),
    }
}
