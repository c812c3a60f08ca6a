//! What becomes of the parts of pages, documents and texts.

use keyward_extract::{Format, Limits, extract};

use crate::made;

fn markdown(bytes: &[u8], format: Format) -> String {
    extract(bytes, format, &Limits::default()).expect("a document").markdown
}

fn html(page: &str) -> String {
    markdown(page.as_bytes(), Format::Html)
}

#[test]
fn nothing_that_runs_is_left_of_a_page() {
    let page = "<p onclick=alert(1)>one<script>alert(2)</script><style>p{}</style> \
                <a href=\"java&#10;script:alert(3)\">two</a> <a href=data:text/html,x>three</a> \
                <img src=x onerror=alert(4) alt=four> <a href=https://a.example/b>five</a>\
                <svg><a xlink:href=javascript:alert(5)>six</a></svg><!-- seven --><noscript>8</noscript>";
    assert_eq!(html(page), "one\n\ntwo three four [five](https://a.example/b)\n");
}

#[test]
fn lists_code_quotes_and_breaks_are_kept() {
    let page = "<ol start=3><li>a<ul><li>b</ul><li>c<p>more</ol><pre>x  <b>y</b>\n z</pre>\
                <blockquote>q</blockquote><p>one<br>two <code>a*b</code> 2*3";
    assert_eq!(
        html(page),
        "3. a\n    - b\n4. c\n\n    more\n\n```\nx  y\n z\n```\n\n> q\n\none\\\ntwo `a*b` 2\\*3\n"
    );
}

#[test]
fn a_table_that_only_places_text_is_no_table() {
    assert_eq!(html("<table><tr><td>a<tr><td>b</table>"), "a\n\nb\n");
    assert_eq!(
        html("<table><tr><th>a<th>b<tr><td>1|2<td><table><tr><td>c<td>d</table></table>"),
        "| a | b |\n| --- | --- |\n| 1\\|2 | c d |\n"
    );
}

#[test]
fn text_that_looks_like_markup_stays_text() {
    assert_eq!(
        html("<p># no &lt;b&gt; heading *no* emphasis"),
        "\\# no \\<b> heading \\*no\\* emphasis\n"
    );
    assert_eq!(
        markdown(b"# no\n  indented <b>\n- item\n===", Format::Text),
        "\\# no\nindented \\<b>\n- item\n\\===\n"
    );
}

#[test]
fn the_title_comes_from_where_it_is_given() {
    let title =
        |text: &str, format| extract(text.as_bytes(), format, &Limits::default()).unwrap().title;
    assert_eq!(title("<title>A &amp; b</title><h1>C</h1>", Format::Html), "A & b");
    assert_eq!(title("<title>export.html</title><h1>C</h1>", Format::Html), "C");
    assert_eq!(title("---\ntitle: \"Front\"\ntags: x\n---\n# C\n", Format::Markdown), "Front");
    assert_eq!(title("```\n# no\n```\n\n# C\n", Format::Markdown), "C");
    assert_eq!(title("one line\nanother", Format::Text), "one line");
}

#[test]
fn tracked_deletions_and_field_codes_are_not_in_the_text_of_a_docx() {
    let body = "<w:p><w:r><w:t>kept </w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>\
                <w:r><w:instrText>PAGE</w:instrText><w:t xml:space=\"preserve\">A &amp; B</w:t><w:br/>\
                <w:t>line</w:t></w:r></w:p>";
    assert_eq!(markdown(&made::docx(body), Format::Docx), "kept A & B\\\nline\n");
}

#[test]
fn links_of_a_docx_are_kept_if_they_run_nothing() {
    let link = |id| format!("<w:hyperlink r:id=\"{id}\"><w:r><w:t>{id}</w:t></w:r></w:hyperlink> ");
    let body =
        format!("<w:p><w:r><w:t>see </w:t></w:r>{}{}{}</w:p>", link("a"), link("b"), link("c"));
    let links = "<Relationships><Relationship Id=\"a\" Target=\"https://a.example\" TargetMode=\"External\"/>\
                 <Relationship Id=\"b\" Target=\"javascript:x\" TargetMode=\"External\"/>\
                 <Relationship Id=\"c\" Target=\"https://c.example\" TargetMode=\"External\"/></Relationships>";
    let bytes = made::zip(&[
        ("word/document.xml", made::document(&body).as_bytes()),
        ("word/_rels/document.xml.rels", links.as_bytes()),
    ]);
    assert_eq!(
        markdown(&bytes, Format::Docx),
        "see [a](https://a.example)b[c](https://c.example)\n"
    );
}

#[test]
fn numbered_lists_of_a_docx_count() {
    let item = |level: u8, text: &str| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"1\"/></w:numPr></w:pPr>\
             <w:r><w:t>{text}</w:t></w:r></w:p>"
        )
    };
    let body = item(0, "a") + &item(1, "b") + &item(0, "c");
    let numbering = "<w:numbering><w:abstractNum w:abstractNumId=\"7\"><w:lvl w:ilvl=\"0\">\
                     <w:start w:val=\"1\"/><w:numFmt w:val=\"decimal\"/></w:lvl><w:lvl w:ilvl=\"1\">\
                     <w:start w:val=\"1\"/><w:numFmt w:val=\"bullet\"/></w:lvl></w:abstractNum>\
                     <w:num w:numId=\"1\"><w:abstractNumId w:val=\"7\"/></w:num></w:numbering>";
    let bytes = made::zip(&[
        ("word/document.xml", made::document(&body).as_bytes()),
        ("word/numbering.xml", numbering.as_bytes()),
    ]);
    assert_eq!(markdown(&bytes, Format::Docx), "1. a\n    - b\n2. c\n");
}
