//! Memories: files that a model keeps for itself, by the commands that models know.

use keyward::agents::{MemoryCommand, SPACE};
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::agents::{behalf, chooses, is_nobody};
use super::schema::{count, object_of, takes, text};
use super::{Call, Done, Effect};
use crate::api::agents::memories;
use crate::app::App;
use crate::auth::{Identity, Need, Target};
use crate::mcp::arguments::read;
use crate::mcp::confirm::Ask;
use crate::problem::Result;

pub(super) const NAME: &str = "memory";
/// What commands take.
const ARGUMENTS: [&str; 10] = [
    "command",
    "path",
    "view_range",
    "file_text",
    "old_str",
    "new_str",
    "insert_line",
    "insert_text",
    "old_path",
    "new_path",
];

pub(super) fn tools(app: &App, who: &Identity) -> Vec<Tool> {
    let Ok((store, _)) = app.agents() else { return Vec::new() };
    let may_write = who.scopes().allow(Need::Write, &Target::Space { space: SPACE, store })
        || who.scopes().name_namespaces(Need::Write);
    if !may_write || is_nobody(who) {
        return Vec::new();
    }
    let title = "Memories";
    let description = "Text files below /memories that outlast this conversation: view before you begin, \
        and write down what should be known later. Commands: view (a file with line numbers, or a \
        directory), create (a new file), str_replace (a text that stands there once), insert (after a \
        line; 0 for the start), delete (a file, or a directory with all in it: several files are confirmed), \
        rename.";
    let input = input(chooses(app, who));
    vec![
        Tool::new(NAME, description, object_of(input))
            .with_title(title)
            .with_annotations(Effect::Removes.annotations(title).idempotent(false)),
    ]
}

fn input(chooses: bool) -> Value {
    let whole = |description: &str| json!({ "type": "integer", "description": description });
    let mut members = json!({
        "command": {
            "type": "string",
            "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
            "description": "What to do.",
        },
        "path": text("The file or directory, such as /memories/notes.md: all commands but rename."),
        "view_range": {
            "type": "array",
            "items": { "type": "integer" },
            "minItems": 2,
            "maxItems": 2,
            "description": "view: the first and last line to show; -1 for the end of the file.",
        },
        "file_text": text("create: the text of the file."),
        "old_str": text("str_replace: the text that stands in the file exactly once."),
        "new_str": text("str_replace: what shall stand there; nothing, if left out."),
        "insert_line": whole("insert: after which line; 0 for the start of the file."),
        "insert_text": text("insert: the lines."),
        "old_path": text("rename: the path it has."),
        "new_path": text("rename: the path it shall have."),
        "confirm": count("delete: how many files there are to delete, if there are several."),
    });
    let mut required = vec!["command"];
    if let (true, Value::Object(members)) = (chooses, &mut members) {
        members.insert("user".to_owned(), text("Whose memories: a user's id."));
        required.push("user");
    }
    takes(members, &required)
}

pub(super) async fn run(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let behalf = behalf(call, &mut arguments)?;
    let confirm = call.agreed(arguments.take("confirm")?);
    // A command does not refuse what is another command's, nor what is none's.
    arguments.refuse_all_but(&ARGUMENTS)?;
    let command: MemoryCommand = read(&arguments.text())?;
    let count = memories::count_removed(&call.who, &call.app, &behalf, &command).await? as u64;
    if let MemoryCommand::Delete { path } = &command
        && count > 1
        && confirm != Some(count)
    {
        let question =
            format!("Delete {path} with {count} files? Their history stays for a while.");
        return Ok(Done::Ask(Ask { count, question }));
    }
    let answer = memories::run(&call.who, &call.app, &behalf, &command).await?;
    Ok(Done::Said { text: answer.text, failed: answer.failed })
}
