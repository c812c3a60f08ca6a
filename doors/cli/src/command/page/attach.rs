use std::path::PathBuf;

use clap::Args;
use keyward::agreements::{PageId, SourceId};

use super::{page_id, source_id};
use crate::agreements::{Attached, Desk};
use crate::failure::{Failure, Result};
use crate::input::whole_file;
use crate::output::{Output, size};

/// Bytes of a file that are read; the workspace may take fewer.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Attach a file to a page, or replace it
///
/// In a workspace of uploads: PDF, DOCX, HTML, Markdown or text. The policy is called by the file's name,
/// unless --source says otherwise. What was made of an older one is dropped with its translations, and
/// issues that refer to it are marked as stale.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page attach supply-2026 terms.pdf
  keyward page attach supply-2026 'Terms (final).docx' --source terms"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// The file, or - for standard input
    file: PathBuf,
    /// What the policy is called [default: the file's name]
    #[arg(long, value_name = "ID", value_parser = source_id)]
    source: Option<SourceId>,
    /// What kind of file it is, such as application/pdf [default: what it looks like]
    #[arg(long, value_name = "TYPE")]
    media_type: Option<String>,
}

/// Take a file from a page
///
/// In a workspace of uploads. What was made of it is removed.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page detach supply-2026 terms.pdf"#)]
pub struct Detach {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// The policy
    #[arg(value_parser = source_id)]
    source: SourceId,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let Arguments { page, file, source, media_type } = arguments;
    let name = file.file_name().and_then(|name| name.to_str()).filter(|name| *name != "-");
    let source = match (source, name) {
        (Some(source), _) => source,
        (None, Some(name)) => SourceId::new(name)?,
        (None, None) => {
            return Err(Failure::invalid("nothing says what the policy is called")
                .hint("Give --source ID."));
        }
    };
    let name = name.unwrap_or(source.as_str()).to_owned();
    let bytes = whole_file(&file, FILE_BYTES_MAX).await?;
    let count = bytes.len() as u64;
    let attached = Attached { source: source.clone(), name, media_type, bytes: bytes.into() };
    desk.attach(&page, attached).await?;
    if output.json() {
        let told = serde_json::json!({ "page": page, "source": source, "bytes": count });
        return output.write_json(&told);
    }
    writeln!(output, "attached {source} to {page}, {}", size(count))
}

pub async fn detach(arguments: Detach, desk: &Desk, output: &mut Output) -> Result {
    let Detach { page, source } = arguments;
    desk.detach(&page, &source).await?;
    if output.json() {
        return output.write_json(&serde_json::json!({ "page": page, "detached": source }));
    }
    writeln!(output, "detached {source} from {page}")
}
