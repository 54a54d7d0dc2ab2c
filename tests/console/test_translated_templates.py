"""Templates in another language: their words change, and nothing else of them."""

import pytest
from jinja2 import Environment

from vettance.console.rendering import TEMPLATES, translating
from vettance.console.words import Words


def _in(words: dict[str, str]) -> Environment:
    return translating(lambda said, _: words.get(said, said))


def _rendered(source: str, words: dict[str, str], **values: object) -> str:
    return _in(words).from_string(source).render(**values)


@pytest.mark.parametrize(
    ("source", "words", "rendered"),
    [
        ("<p> Hello there\n</p>", {"Hello there": "Guten Tag"}, "<p> Guten Tag\n</p>"),
        ('<b title="Open it">x1</b>', {"Open it": "Öffnen"}, '<b title="Öffnen">x1</b>'),
        ('<b class="Open it" data-key="Open it">x1</b>', {"Open it": "Öffnen"}, None),
        ("<code>Open it</code><kbd>Open it</kbd>", {"Open it": "Öffnen"}, None),
        ("<p>{{ 'Open it' }}</p>", {"Open it": "Öffnen"}, "<p>Öffnen</p>"),
        ("<p class='{{ 'Open it' }}'></p>", {"Open it": "Öffnen"}, "<p class='Open it'></p>"),
        ("{% if view == 'Open' %}<p>yes</p>{% endif %}", {"Open": "Offen"}, "<p>yes</p>"),
        ("{{ {'Open it': 1}['Open it'] }}", {"Open it": "Öffnen"}, "1"),
        (
            "<p>{{ name }} of {{ view }} words</p>",
            {"{1} of {2} words": "von {2} Wörtern {1}"},
            "<p>von Open Wörtern &lt;b&gt;</p>",
        ),
        (
            '<b aria-label="Mark {{ view }}">x1</b>',
            {"Mark {1}": "{1} wählen"},
            '<b aria-label="Open wählen">x1</b>',
        ),
        ("<p>{{ view }} more</p>", {"{1} more": "noch mehr"}, "<p>Open more</p>"),
        ("<p>{{ view }} more</p>", {"{1} more": "{1} {2}"}, "<p>Open more</p>"),
        ("<p>Open it</p>", {"Open it": "</p><script>"}, "<p>&lt;/p>&lt;script></p>"),
        (
            '<b title="Open it">x1</b>',
            {"Open it": '" onclick="x'},
            '<b title="&quot; onclick=&quot;x">x1</b>',
        ),
    ],
)
def test_the_words_of_a_template_are_translated(
    source: str, words: dict[str, str], rendered: str | None
) -> None:
    values = {"name": "<b>", "view": "Open"}
    assert _rendered(source, words, **values) == (rendered or _rendered(source, {}, **values))


def test_words_of_the_program_are_translated_and_the_same_words_of_a_caller_are_not() -> None:
    source = "<p>{{ ours }}</p><p>{{ theirs }}</p>"
    found = _rendered(source, {"Open": "Offen <x>"}, ours=Words("Open"), theirs="Open")
    assert found == "<p>Offen &lt;x&gt;</p><p>Open</p>"


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.name)
def test_a_translation_leaves_everything_but_the_words_of_a_page_alone(path: object) -> None:
    name = path.name  # type: ignore[attr-defined]
    plain, marked = translating(lambda said, _: said), translating(lambda said, _: f"⟦{said}⟧")
    source = (TEMPLATES / name).read_text()

    def tokens(environment: Environment) -> str:
        return " ".join("".join(str(token.value) for token in environment._tokenize(source, name)).split())

    changed = tokens(marked)
    assert changed.replace("⟦", "").replace("⟧", "").replace("&#39;", "'").replace("&quot;", '"') == tokens(
        plain
    )
    marked.get_template(name)  # It compiles.
    assert "⟦⟧" not in changed
