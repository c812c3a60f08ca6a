//! Issues for other programs and for paper.

use keyward_agreements::{
    Annotation, Issue, NewIssue, Part, Severity, State, export_csv, export_markdown,
};
use keyward_stores::{Kind, Place};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::fixture::{Process, ada, reference};

/// What somebody may write to be more than a text.
const HOSTILE: [&str; 13] = [
    "=HYPERLINK(\"http://evil\",\"x\")",
    "+1",
    "-1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "# Heading",
    "]( x ) <script>alert(1)</script> <!--",
    "a | b `c` **d** _e_ ~~f~~ ![g](h)",
    "1. list",
    "trailing ###",
    "attributes { #id .class }",
    "back\\slash \\",
    "&lt;b&gt; https://evil.example",
    "```",
];

async fn exported() -> Vec<Issue> {
    let process = Process::on(&Place::new(Kind::Memory)).await;
    let issues = &process.issues;
    for (n, text) in HOSTILE.iter().enumerate() {
        let lines = format!("{text}\n\n{text}\r    {text}\r\n===\n---\n> x");
        let parts = vec![Part::Text(lines.clone()), reference("s", 5)];
        let new = NewIssue::new(*text, Severity::Low).describe(parts);
        let id = issues.create(new, &ada()).await.unwrap().issue.id;
        let notes = Annotation::Append(format!("# Mine\n\n{lines}\n\n## Other"));
        issues.annotate(id, notes, &ada()).await.unwrap();
        if n % 2 == 1 {
            issues.transition(id, State::Resolved, &ada()).await.unwrap();
        }
    }
    issues.all().await.unwrap()
}

#[tokio::test]
async fn no_cell_of_the_csv_is_a_formula_and_nothing_is_lost() {
    let issues = exported().await;
    let csv = export_csv(&issues).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(&reader.headers().unwrap()[1], "title");
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), issues.len());
    for (row, issue) in rows.iter().zip(&issues) {
        assert_eq!(row[0], issue.id.to_string());
        for cell in row {
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell}");
        }
        assert_eq!(row[1].strip_prefix('\'').unwrap_or(&row[1]), issue.title);
        assert_eq!((&row[2], &row[3]), (issue.state.as_str(), "1"));
        assert!(row[9].contains("what s says"));
        assert_eq!(row[10].strip_prefix('\'').unwrap_or(&row[10]), issue.annotations);
    }
}

/// The headings that stand in no quote, and whether anything of HTML is there.
fn outline(markdown: &str) -> (Vec<(HeadingLevel, String)>, usize) {
    let (mut headings, mut quotes, mut others) = (Vec::new(), 0, 0);
    let mut heading: Option<(HeadingLevel, String)> = None;
    let options = Options::all() - Options::ENABLE_SMART_PUNCTUATION;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(Tag::BlockQuote(_)) => quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => quotes -= 1,
            Event::Start(Tag::Heading { level, .. }) if quotes == 0 => {
                heading = Some((level, String::new()));
            }
            Event::End(TagEnd::Heading(_)) if quotes == 0 => headings.extend(heading.take()),
            Event::Text(text) => {
                if let Some((_, told)) = &mut heading {
                    told.push_str(&text);
                }
            }
            Event::Html(_)
            | Event::InlineHtml(_)
            | Event::Code(_)
            | Event::Rule
            | Event::Start(
                Tag::Link { .. } | Tag::Image { .. } | Tag::CodeBlock(_) | Tag::Table(_),
            ) if quotes == 0 => others += 1,
            _ => {}
        }
    }
    (headings, others)
}

#[tokio::test]
async fn no_text_is_part_of_the_structure_of_the_markdown() {
    let issues = exported().await;
    let (headings, others) = outline(&export_markdown(&issues));
    assert_eq!(others, 0);
    let count = |level| headings.iter().filter(|(it, _)| *it == level).count();
    assert_eq!(count(HeadingLevel::H1), 1);
    assert_eq!(count(HeadingLevel::H2), 2);
    let mut titles: Vec<&str> = headings
        .iter()
        .filter(|(level, _)| *level == HeadingLevel::H3)
        .map(|(_, text)| text.as_str())
        .collect();
    let mut expected = HOSTILE.to_vec();
    titles.sort_unstable();
    expected.sort_unstable();
    assert_eq!(titles, expected);
}

#[tokio::test]
async fn markdown_has_the_issues_by_their_state() {
    let process = Process::on(&Place::new(Kind::Memory)).await;
    let issue = process.create_about("Notice", "s", 5).await;
    let id = issue.id;
    let expected = format!(
        "# Issues\n\n## Pending (1)\n\n### Notice\n\n- Severity: low\n\
         - Created: 2026-01-01T00:00:00.000000Z\n- Updated: 2026-01-01T00:00:00.000000Z\n- Id: {id}\n\n\
         see\n\n**Policy s** (s; 9 characters from 3 on, exact)\n\n> what s says\n"
    );
    assert_eq!(export_markdown(&[issue]), expected);
    assert_eq!(export_markdown(&[]), "# Issues\n");
}
