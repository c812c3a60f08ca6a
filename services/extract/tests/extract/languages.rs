//! In which language a text is.

use keyward_extract::Language;

const PARAGRAPHS: [(&str, &str); 9] = [
    (
        "de",
        "Die Betreuenden nehmen sich Zeit für regelmäßige Gespräche und geben Rückmeldung zu den vorgelegten Texten. Wenn es Schwierigkeiten gibt, hilft die Ombudsperson, eine Lösung zu finden, mit der alle leben können.",
    ),
    (
        "en",
        "The supervisors take time for regular meetings and comment on the drafts that they are given. If there are difficulties, the ombudsperson helps to find a solution that everybody can live with.",
    ),
    (
        "es",
        "Las personas que dirigen la tesis dedican tiempo a reuniones periódicas y comentan los textos que reciben. Si hay dificultades, la defensora ayuda a encontrar una solución con la que todos puedan vivir.",
    ),
    (
        "fr",
        "Les personnes qui encadrent la thèse prennent le temps de réunions régulières et commentent les textes reçus. En cas de difficultés, la médiatrice aide à trouver une solution qui convienne à tout le monde.",
    ),
    (
        "it",
        "Chi segue la tesi dedica tempo a incontri regolari e commenta i testi che riceve. Se ci sono difficoltà, la persona di fiducia aiuta a trovare una soluzione con la quale tutti possano vivere bene.",
    ),
    (
        "pt",
        "Quem orienta a tese dedica tempo a reuniões regulares e comenta os textos que recebe. Se houver dificuldades, a provedora ajuda a encontrar uma solução com a qual todas as pessoas possam viver bem.",
    ),
    (
        "ro",
        "Conducătorii de doctorat își fac timp pentru întâlniri regulate și comentează textele pe care le primesc. Dacă apar dificultăți, mediatorul ajută la găsirea unei soluții cu care toată lumea poate trăi.",
    ),
    (
        "fi",
        "Ohjaajat varaavat aikaa säännöllisille tapaamisille ja kommentoivat heille annettuja luonnoksia. Jos vaikeuksia ilmenee, sovittelija auttaa löytämään ratkaisun, jonka kanssa kaikki voivat elää.",
    ),
    (
        "sv",
        "Handledarna tar sig tid för regelbundna möten och kommenterar de utkast som de får. Om det uppstår svårigheter hjälper ombudspersonen till att hitta en lösning som alla kan leva med.",
    ),
];

#[test]
fn a_paragraph_tells_its_language() {
    for (code, paragraph) in PARAGRAPHS {
        let found = Language::of_text(paragraph).map(Language::as_str);
        assert_eq!(found, Some(code), "{paragraph}");
    }
}

#[test]
fn what_is_no_text_in_a_language_has_none() {
    for text in ["", "OK", "12 345 67.8", "https://a.example", "| --- | --- |"] {
        assert_eq!(Language::of_text(text), None, "{text}");
    }
}
