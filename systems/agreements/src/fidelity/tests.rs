const ORIGINAL: &str = "# Leave\n\nEverybody has {days} days of leave, see § 12 and \
    https://example.org/leave?a=1&b=2. Nobody has to say why they take it, and the faculty \
    is told in writing before the term begins. Ask {contact_name}.\n\n## Fees\n\n- To the university\n- Of %s\n\n\
    | year | fee |\n|---|---|\n| first | 100 |\n| second | 200 |\n\n```sh\npay --now\n```\n";

/// A paragraph of nine sentences.
const LONG: &str = "The faculty decides on every request for leave. It does so within four weeks. \
    A request must name the reason. The reason is kept secret. Whoever is ill need not name it. \
    The dean can extend the time once. Nobody loses a place because of leave. Fees are due all the \
    same. They can be paid in two parts.";

/// Checks a translation into another language.
fn check(original: &str, translation: &str) -> Result<(), String> {
    super::check(original, translation, false)
}

fn refused(original: &str, translation: &str) -> String {
    match check(original, translation) {
        Err(faults) => faults,
        Ok(()) => panic!("accepted: {translation}"),
    }
}

#[test]
fn true_translations_are_accepted() {
    let good: &[(&str, &str, &str)] = &[
        ("a number", "## 5", "## 5"),
        ("a word for a word", "Ja.", "Yes, of course it is so."),
        (
            "percent signs",
            "Es sind 50 % der Summe, 100% sicher {nicht so}",
            "50% sure, 100 % {not so}",
        ),
        ("a link for an address", "See https://a.org/", "Siehe [https://a.org](https://a.org)."),
        (
            "a loose list for a tight one",
            "Bring:\n\n- a passport\n- a photo\n- a form\n- a pen\n- money\n",
            "Bitte mitbringen:\n\n- einen Pass\n\n- ein Foto\n\n- ein Formular\n\n- einen Stift\n\n- Geld\n",
        ),
        (
            "a tight list for a loose one",
            "1. first\n\n2. second\n\n3. third\n\n4. fourth\n\n5. fifth\n",
            "1. premier\n2. deuxième\n3. troisième\n4. quatrième\n5. cinquième\n",
        ),
        (
            "nested lists, loose and tight",
            "- one\n\n  more of one\n\n  - deep\n\n  - deeper\n\n- two\n\n  more of two\n",
            "- eins\n  mehr davon\n  - tief\n  - tiefer\n- zwei\n  mehr davon\n",
        ),
        (
            "math with words in it",
            "The mean is $\\frac{\\text{sum}}{n_{total}}$, and\n\n$$v = \\frac{\\text{way}}{\\text{time}}$$\n",
            "Das Mittel ist $\\frac{\\text{Summe}}{n_{gesamt}}$, und\n\n$$v = \\frac{\\text{Weg}}{\\text{Zeit}}$$\n",
        ),
        (
            "LaTeX without dollar signs",
            "The speed is \\textbf{large}, x_{max} of \\frac{way}{time}.",
            "Die Geschwindigkeit ist \\textbf{hoch}, x_{größt} von \\frac{Weg}{Zeit}.",
        ),
        (
            "escapes of the original",
            "Dear {\\_name}, {first\\_name}!",
            "Liebe {_name}, {first_name}!",
        ),
        ("escapes of the translation", "Dear {first_name}!", "Liebe \\{first\\_name\\}!"),
        (
            "words in braces",
            "Bring {optional} a {red} pen.",
            "Bring {freiwillig} einen {roten} Stift mit.",
        ),
        ("words in braces, in Chinese", "Bring a {red} pen.", "请带一支{红色}的笔。"),
        ("an abbreviation in braces", "The union {EU} pays.", "L’union {UE} paie."),
        ("braces in code", "Run `make {target}` with {n}.", "Mit {n} `make {target}` ausführen."),
        (
            "code that is translated",
            "Write `{greeting}` first.\n\n```\nHello {you}\n```\n",
            "Zuerst `{gruss}` schreiben.\n\n```\nHallo {du}\n```\n",
        ),
        ("placeholders of shells", "From ${a}/${b} to ${c}.", "Von ${a} / ${b} bis ${c}."),
        (
            "placeholders in another order",
            "Dear %(name)s, {{ days }} days, %1$s of %2$s.",
            "%2$s之%1$s，%(name)s，{{days}}天。",
        ),
        ("prices", "It costs $5 or $10 {net}.", "Es kostet 5 $ oder 10 $ {netto}."),
        (
            "other quotation marks",
            "He said: \"Come in!\" Then he left.",
            "Er sagte: „Herein!“ Dann ging er.",
        ),
        (
            "footnotes",
            "A rule.[^1] Another.[^note]\n\n[^1]: Since 2019.\n\n[^note]: Not in\n    winter.\n",
            "Eine Regel.[^1] Noch eine.[^note]\n\n[^1]: Seit 2019.\n[^note]: Nicht im Winter.\n",
        ),
        (
            "a link with another text",
            "See [the rules](https://example.org/rules \"All rules\").",
            "Siehe [die Ordnung](https://example.org/rules \"Alle Ordnungen\").",
        ),
        (
            "an underlined heading",
            "# Rules\n\nNone.\n\n## Fees\n\nNone.\n",
            "Regeln\n======\n\nKeine.\n\nGebühren\n---\n\nKeine.\n",
        ),
        (
            "a much shorter text in Chinese",
            LONG,
            "学院决定每一份休假申请。决定在四周内作出。申请须写明理由。理由予以保密。患病者无需说明。院长可延期一次。\
             任何人不因休假失去名额。费用仍须缴纳。可分两次付清。",
        ),
        (
            "English words in katakana, which are short in English",
            "コンピューターセンターのスタッフは、ユーザーのアカウントとパスワードをチェックします。\
             インターネットのアクセスにはユーザーアカウントがマストです。サーバーのメンテナンスはウィークエンドです。\
             プリンターとスキャナーはフリーです。データのバックアップはユーザーのタスクです。",
            "Computing staff check user accounts and passwords. Net access needs an account. We \
             service hosts on weekends. Printing and scanning is free. Back up your own data.",
        ),
        (
            "an address with a German word behind it",
            "See the page https://example.com for more.",
            "Siehe die https://example.com-Seite für mehr.",
        ),
        (
            "an address with a Hungarian ending",
            "More at https://example.com/leave and https://a.org/.",
            "Több a https://example.com/leave-en és a https://a.org/-on.",
        ),
        (
            "an address with a Finnish ending",
            "More at https://example.com.",
            "Lisää osoitteessa https://example.com:ssa.",
        ),
        (
            "an address that loses its German word",
            "Siehe die https://example.com-Seite für mehr.",
            "See the page https://example.com for more.",
        ),
        (
            "a longer text in German",
            LONG,
            "Über jeden Antrag auf Beurlaubung entscheidet die Fakultät. Die Entscheidung ergeht innerhalb von vier \
             Wochen nach Eingang. Im Antrag ist der Grund für die Beurlaubung anzugeben. Die angegebenen Gründe werden \
             vertraulich behandelt. Wer erkrankt ist, braucht den Grund nicht anzugeben. Die Dekanin oder der Dekan \
             kann die Frist einmalig verlängern. Durch eine Beurlaubung verliert niemand den Studienplatz. Die \
             Gebühren sind ungeachtet dessen fällig. Sie können in zwei Teilbeträgen entrichtet werden.",
        ),
        (
            "a script without full stops",
            "The faculty decides. It takes four weeks. A request has a reason. It is kept secret.",
            "คณะเป็นผู้พิจารณา ใช้เวลาสี่สัปดาห์ คำขอต้องระบุเหตุผล และจะเก็บเป็นความลับ",
        ),
        (
            "a text about translations",
            "The following translation applies:\n\nAll pay.",
            "Es gilt folgende Übersetzung:\n\nAlle zahlen.",
        ),
    ];
    for (what, original, translation) in good {
        assert_eq!(check(original, translation), Ok(()), "{what}");
    }
}

#[test]
fn a_translation_of_everything_at_once_is_accepted_in_both_directions() {
    let german = "# Urlaub\n\nAlle haben {days} Tage Urlaub, siehe Abschnitt 12 und \
        <https://example.org/leave?a=1&amp;b=2>. Niemand muss sagen, wozu er ihn nimmt; die \
        Fakultät wird vor Beginn des Semesters schriftlich benachrichtigt. {contact\\_name} hilft.\n\n\
        Gebühren\n--------\n\n\
        * An die Universität\n* Von %s\n\n| Jahr | Gebühr |\n| :-- | --: |\n| erstes | 100 |\n\
        | zweites | 200 |\n\n```sh\npay --now\n```";
    assert_eq!(check(ORIGINAL, german), Ok(()));
    let chinese = "# 假期\n\n每人有{days}天假期，参见第12条和https://example.org/leave?a=1&b=2。\
        任何人都无需说明休假原因，学期开始前须书面通知学院。请询问{contact_name}。\n\n## 费用\n\n- 交给大学\n- %s的\n\n\
        | 年 | 费用 |\n|---|---|\n| 第一年 | 100 |\n| 第二年 | 200 |\n\n```sh\npay --now\n```";
    assert_eq!(check(ORIGINAL, chinese), Ok(()));
    // And back: alphabets take more letters.
    assert_eq!(check(chinese, &german.replace("siehe", "siehe §")), Ok(()));
}

#[test]
fn what_is_empty_or_cut_is_refused_with_the_reason() {
    assert_eq!(refused(ORIGINAL, " \n"), "the translation is empty");
    let cut = refused(ORIGINAL, &ORIGINAL[..ORIGINAL.find("## Fees").unwrap()]);
    assert!(cut.contains("its headings are # (1), and those of the original #, ## (2)"), "{cut}");
    assert!(cut.contains("its tables are none"), "{cut}");
    let long = "One sentence follows the other here. ".repeat(40);
    let short = refused(&long, "Ein Satz folgt dem anderen.");
    assert!(short.contains("too short"), "{short}");
    let endless = refused("A short text.", &"und ".repeat(1_000));
    assert!(endless.contains("too long"), "{endless}");
    let paragraphs = "A paragraph of a text.\n\n".repeat(20);
    let half = refused(&paragraphs, &paragraphs[..paragraphs.len() / 2]);
    assert!(half.contains("10 paragraphs, and the original 20"), "{half}");
}

#[test]
fn a_paragraph_that_is_cut_in_half_is_refused() {
    let german = "Über jeden Antrag auf Beurlaubung entscheidet die Fakultät. Das dauert höchstens vier Wochen. \
        Im Antrag steht ein Grund. Der Grund bleibt vertraulich.";
    let whole_sentences = refused(LONG, german);
    assert!(whole_sentences.contains("4 sentences for 9"), "{whole_sentences}");
    let one = "Every request for leave that is sent to the faculty before the first of March is \
        decided by the board within four weeks.";
    let within = refused(one, "Über jeden Antrag auf Beurlaubung, der bei der Fakultät vor dem");
    assert!(within.contains("ends within a sentence"), "{within}");
}

#[test]
fn what_is_lost_on_the_way_is_named() {
    for (from, to, told) in [
        ("## Fees", "### Fees", "headings"),
        ("## Fees\n\n", "", "its headings are # (1)"),
        ("| second | 200 |\n", "", "its tables are 2 columns with 1 rows (1)"),
        (
            "| year | fee |\n|---|---|\n| first | 100 |\n| second | 200 |",
            "| year |\n|---|\n| first |\n| second |",
            "its tables are 1 columns with 2 rows (1)",
        ),
        ("{contact_name}", "Frau Kontakt", "it lacks the placeholder {contact_name}"),
        (
            "{contact_name}",
            "{kontakt_name}",
            "it lacks the placeholder {contact_name}; it adds the placeholder {kontakt_name}",
        ),
        ("{days} days", "days", "it lacks {days} in braces"),
        ("%s", "s", "it lacks the placeholder %s"),
        ("of leave", "of {{leave}}", "it adds the placeholder {{leave}}"),
        ("https://example.org", "https://example.com", "it lacks the address"),
        ("§ 12", "§ 21", "it lacks § 12"),
    ] {
        let refused = refused(ORIGINAL, &ORIGINAL.replacen(from, to, 1));
        assert!(refused.contains(told), "{from}: {refused}");
    }
    for (original, translation, told) in [
        ("Hi {{name}}!", "Hallo {{Name}}!", "it lacks the placeholder {{name}}"),
        ("Hi ${name}!", "Hallo {name}!", "it lacks the placeholder ${name}"),
        ("Hi %(name)s!", "Hallo %(Name)s!", "it lacks the placeholder %(name)s"),
        ("Hi {userName}!", "Hallo {Name}!", "it lacks the placeholder {userName}"),
        ("{0} of {1}", "{0} von", "it lacks the placeholder {1}"),
    ] {
        let refused = refused(original, translation);
        assert!(refused.contains(told), "{original}: {refused}");
    }
}

#[test]
fn what_a_model_adds_of_its_own_is_refused() {
    let text = "All students pay fees. They do so in March.";
    let german = "Alle Studierenden zahlen Gebühren. Das tun sie im März.";
    for remark in [
        "Here is the translation:",
        "Sure! Here's the translated text:",
        "**Here is the German translation:**",
        "Hier ist die Übersetzung:",
        "Voici la traduction :",
        "以下是翻译：",
    ] {
        let refused = refused(text, &format!("{remark}\n\n{german}"));
        assert!(refused.contains("begins with a remark"), "{remark}: {refused}");
    }
    let before = refused("# Fees\n\nAll pay.", "Gern!\n\n# Gebühren\n\nAlle zahlen.");
    assert!(before.contains("begins with a paragraph"), "{before}");
    let fenced = refused(text, &format!("```markdown\n{german}\n```"));
    assert!(fenced.contains("in a block of code"), "{fenced}");
}

#[test]
fn an_address_that_goes_on_elsewhere_is_another_one() {
    for (from, to) in [
        ("https://example.com", "https://example.com/other"),
        ("https://example.com", "https://example.com.evil.example"),
        ("https://example.com", "https://example.com:8080"),
        ("https://example.com/a", "https://example.com/ab"),
    ] {
        let told = refused(&format!("See {from} today."), &format!("Siehe {to} heute."));
        assert!(told.contains(&format!("it adds the address {to}")), "{told}");
    }
}

#[test]
fn an_original_that_comes_back_as_it_was_is_refused_if_it_has_prose() {
    for text in [
        LONG,
        "# Leave\n\nEverybody has thirty days of leave in every year of work.",
        "本学院决定每一份休假申请的期限和理由。",
    ] {
        let told = refused(text, &format!("{text}\n"));
        assert!(told.contains("it is the original, and was not translated"), "{told}");
        assert_eq!(super::check(text, text, true), Ok(()), "in the language already");
    }
    for text in [
        "# Prof. Dr. Ada Lovelace\n\nAda Lovelace, Emmy Noether, Grace Hopper, Lise Meitner",
        "```sh\nwhoever runs this runs all of it at once and must wait\n```",
        "| 1 | 2 |\n|---|---|\n| 100 € | 200 € |",
        "{days} {of} {leave} {are} {given} {to} {all} {who} {ask}",
    ] {
        assert_eq!(check(text, text), Ok(()), "{text}");
    }
}
