//! Markdown shown as HTML.

use keyward_extract::sanitized_html;

#[test]
fn raw_html_in_markdown_cannot_run() {
    let attacks = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)><script>alert(1)</script></svg>",
        "[x](javascript:alert(1))",
        "[x](java\u{9}script:alert(1))",
        "![x](data:text/html;base64,PHNjcmlwdD4=)",
        "<a href=\"&#106;avascript:alert(1)\">x</a>",
        "<a href=' javascript:alert(1)' onmouseover=alert(1)>x</a>",
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
        "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
        "<p style=\"background:url(javascript:alert(1))\">x",
        "<iframe srcdoc=\"<script>alert(1)</script>\"></iframe>",
        "<textarea></textarea><title><a title=\"</title><img src=x onerror=alert(1)>\">",
        "<form action=javascript:alert(1)><button>x</button></form>",
        "`<script>`<b onclick=x>",
        "<a title='\"><script>alert(1)</script>'>x</a>",
        "<<script>script>alert(1)</script>",
        "<base href=https://evil.example><meta http-equiv=refresh content=0>",
    ];
    for attack in attacks {
        let html = sanitized_html(attack).to_lowercase();
        for bad in
            ["<script", "<img", "<svg", "<style", "<iframe", "<form", "<base", "<meta", "<math"]
        {
            assert!(!html.contains(bad), "{attack}\n{html}");
        }
        for tag in html.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
            assert!(!tag.contains(" on") && !tag.contains("script:"), "{attack}\n{html}");
            assert!(!tag.contains(" style") && !tag.contains("data:"), "{attack}\n{html}");
        }
    }
}

#[test]
fn harmless_markdown_is_rendered() {
    assert_eq!(
        sanitized_html(
            "# A\n\n- *b* [c](https://c.example \"d\")\n\n| e |\n| - |\n| H<sub>2</sub>O |"
        ),
        "<h1>A</h1>\n<ul>\n<li><em>b</em> <a href=\"https://c.example\" title=\"d\" \
         rel=\"noopener noreferrer nofollow\">c</a></li>\n</ul>\n<table><thead><tr><th>e</th></tr>\
         </thead><tbody>\n<tr><td>H<sub>2</sub>O</td></tr>\n</tbody></table>\n"
    );
}

#[test]
fn what_is_shown_is_well_nested_and_not_deep() {
    assert_eq!(sanitized_html("</div></body><b>x"), "<b>x</b>");
    for deep in ["<div>".repeat(50_000), "> ".repeat(5_000), "<b><i>".repeat(50_000)] {
        let html = sanitized_html(&format!("{deep}x"));
        assert!(html.matches('<').count() < 200 && html.contains('x'));
    }
}
