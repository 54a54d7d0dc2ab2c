"""Refused forms: a page written again with its form as it was sent, and what is wrong with it.

It works on the page as it is written, so that no form has to look after this itself.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape, unescape
from typing import Final
from urllib.parse import urlsplit

import msgspec

from vettance.console.unseen_characters import named_unseen

#: The field of a form that was refused: the page it is on, which is not the address it was sent to.
PAGE_FIELD: Final = "shown-on"
_TAGS: Final = re.compile(
    r"<(/?)(form|details|input|textarea|select|option|button)\b((?:[^>\"]|\"[^\"]*\")*)>", re.ASCII
)
_MEMBERS: Final = re.compile(r"([\w-]+)(?:=\"([^\"]*)\")?", re.ASCII)
#: The field of a form that was kept past the end of its session: which one, until it is sent.
KEPT_FIELD: Final = "kept"
#: Fields that are kept nowhere: passwords and codes.
SECRET_FIELDS: Final = frozenset({"old", "new", "again", "password", "code"})
#: Fields that say what a form was filled in upon: they show who was faster.
BASES: Final = frozenset({"updatedAt", "seen", "base"})
#: Fields that say nothing of which form was sent: they differ from one look at a page to the next.
_CHANGING: Final = frozenset({"csrf", "tenant", PAGE_FIELD, KEPT_FIELD, *BASES})
#: Kinds of inputs that nobody types into, or whose text must not come back.
_NOT_TYPED: Final = frozenset({"hidden", "password", "submit", "file"})
_BOXES: Final = frozenset({"checkbox", "radio"})


class SentForm(msgspec.Struct, frozen=True):
    """A form as it was sent: how and where to, from which page, and its fields."""

    method: str
    path: str
    page: str
    pairs: Sequence[tuple[str, str]]


class SaidFaults(msgspec.Struct, frozen=True):
    """What is said of a refused form: above it, and below its fields by their names."""

    above: Sequence[str] = ()
    fields: Mapping[str, str] = {}


class _Tag(msgspec.Struct):
    """A tag of a page; `inner` are the options of a select, `closed` is where what the tag opens ends."""

    name: str
    members: dict[str, str | None]
    start: int
    end: int
    closed: tuple[int, int]
    inner: list["_Tag"]

    @property
    def field(self) -> str:
        return unescape(self.members.get("name") or "")

    @property
    def kind(self) -> str:
        return self.members.get("type") or "text"

    @property
    def is_typed(self) -> bool:
        return self.name in ("select", "textarea") or (self.name == "input" and self.kind not in _NOT_TYPED)

    def written(self) -> str:
        """Return the tag as the page should have it."""
        parts = (one if text is None else f'{one}="{text}"' for one, text in self.members.items())
        return f"<{' '.join([self.name, *parts])}>"


class _Form(msgspec.Struct):
    """A form of a page, what is folded around it, and what belongs to it."""

    tag: _Tag
    around: tuple[_Tag, ...]
    fields: list[_Tag]

    def names(self) -> set[str]:
        """Return the names of its fields that tell it from others."""
        return {one.field for one in self.fields if one.field} - _CHANGING

    def typed_names(self) -> set[str]:
        """Return the names of what people type into or choose."""
        return {one.field for one in self.fields if one.is_typed}

    def takes(self, sent: SentForm) -> bool:
        """Tell whether it is sent to where a form was sent."""
        if (self.tag.members.get("method") or "get").upper() != sent.method:
            return False
        action = self.tag.members.get("action") or urlsplit(sent.page).path
        buttons = (one.members.get("formaction") for one in self.fields if one.name == "button")
        return sent.path in (unescape(action), *map(unescape, filter(None, buttons)))

    def likeness(self, sent: SentForm) -> tuple[int, int, int]:
        """Return how like it is to a form that was sent; the greater, the more."""
        names, pairs = {name for name, _ in sent.pairs} - _CHANGING, set(sent.pairs)
        other = sum(
            one.kind == "hidden"
            and one.field not in _CHANGING
            and (one.field, unescape(one.members.get("value") or "")) not in pairs
            for one in self.fields
            if one.name == "input"
        )
        return len(names & self.names()), -other, -len(self.names() - names)


def typed_fields(page: str, sent: SentForm) -> set[str] | None:
    """Return the names of the fields that people fill in of a form; None where the page has no such form.

    A form without such fields counts as none: there is nothing to keep.
    """
    form = _form_of(page, sent)
    return form.typed_names() if form is not None else None


def filled_again(page: str, sent: SentForm, said: SaidFaults, *, same_base: bool = False) -> str:
    """Return a page with a form filled as it was sent, and what is wrong with it.

    With the `same_base`, it says what it was filled in upon, however the page has changed since.
    """
    form = _form_of(page, sent)
    if form is None:
        return page
    edits: list[tuple[int, int, str]] = []
    faults = dict(said.fields)
    typed: dict[str, list[str]] = {}
    for name, value in sent.pairs:
        typed.setdefault(name, []).append(value)
    fields = [one for one in form.fields if one.is_typed]
    for number, one in enumerate(fields):
        edits.extend(_fill(one, typed.get(one.field, [])))
        fault = faults.pop(one.field, "") if one.kind not in _BOXES else ""
        if fault:
            edits.append(_mark_fault(one, f"refused-{number}", fault))
    if said.above or said.fields:
        first = next((one for one in fields if "aria-invalid" in one.members), fields[0])
        first.members["autofocus"] = None
    for one in form.around:
        one.members.setdefault("open", None)
    bases = [one for one in form.fields if same_base and one.field in BASES and one.field in typed]
    for one in bases:
        one.members["value"] = escape(typed[one.field][0])
    written = {one.start: one for tag in (*fields, *form.around, *bases) for one in (tag, *tag.inner)}
    edits.extend((one.start, one.end, one.written()) for one in written.values())
    edits.append((form.tag.end, form.tag.end, _head(sent, [*said.above, *faults.values()])))
    return _edited(page, edits)


def _form_of(page: str, sent: SentForm) -> _Form | None:
    """Return the form of a page that is most like one that was sent, if people fill it in."""
    found = [one for one in _forms(page) if one.takes(sent)]
    if not found:
        return None
    best = max(found, key=lambda one: one.likeness(sent))
    names = best.typed_names()
    is_sent = sent.method == "POST" or any(name in names and value for name, value in sent.pairs)
    return best if names and is_sent else None


def _forms(page: str) -> list[_Form]:
    """Return the forms of a page with their fields, those included that name their form by its id."""
    reader = _FormReader()
    for match in _TAGS.finditer(page):
        if match[1]:
            reader.end(match[2], match.span())
        else:
            members = {one[1]: one[2] for one in _MEMBERS.finditer(match[3])}
            reader.begin(_Tag(match[2], members, match.start(), match.end(), (match.end(), match.end()), []))
    for form in reader.forms:
        form.fields.extend(reader.named.get(form.tag.members.get("id") or "", ()))
    return reader.forms


class _FormReader:
    """Collects the forms of a page, tag by tag."""

    def __init__(self) -> None:
        self.forms: list[_Form] = []
        self.named: dict[str, list[_Tag]] = {}
        self._folded: list[_Tag] = []
        self._opened: dict[str, _Tag] = {}
        self._form: _Form | None = None

    def begin(self, tag: _Tag) -> None:
        if tag.name == "details":
            self._folded.append(tag)
        elif tag.name == "form":
            self._form = _Form(tag, tuple(self._folded), [])
            self.forms.append(self._form)
        elif tag.name == "option":
            if "select" in self._opened:
                self._opened["select"].inner.append(tag)
        else:
            self._add(tag)

    def _add(self, field: _Tag) -> None:
        self._opened[field.name] = field
        if owner := field.members.get("form"):
            self.named.setdefault(owner, []).append(field)
        elif self._form is not None:
            self._form.fields.append(field)

    def end(self, name: str, span: tuple[int, int]) -> None:
        if name == "details" and self._folded:
            self._folded.pop()
        elif name == "form":
            self._form = None
        elif name in self._opened:
            self._opened.pop(name).closed = span


def _fill(field: _Tag, typed: list[str]) -> list[tuple[int, int, str]]:
    """Put what was typed into a field; returns what that changes besides its own tag."""
    members = field.members
    if field.kind in _BOXES and field.name == "input":
        members.pop("checked", None)
        if unescape(members.get("value") or "on") in typed:
            members["checked"] = None
    elif field.name == "select":
        if any(unescape(one.members.get("value") or "") in typed for one in field.inner):
            for one in field.inner:
                one.members.pop("selected", None)
                if unescape(one.members.get("value") or "") in typed:
                    one.members["selected"] = None
    elif typed and field.name == "textarea":
        # A line break right behind the tag is none of the text.
        return [(field.end, field.closed[0], "\n" + escape(typed.pop(0)))]
    elif typed:
        members["value"] = escape(typed.pop(0))
    return []


def _mark_fault(field: _Tag, fault_id: str, fault: str) -> tuple[int, int, str]:
    """Mark a field as faulty; returns the sentence that says why, behind it."""
    field.members["aria-invalid"] = "true"
    described = field.members.get("aria-describedby")
    field.members["aria-describedby"] = f"{described} {fault_id}" if described else fault_id
    place = field.closed[1]
    return place, place, f'<p class="fault" id="{fault_id}">{_shown(fault)}</p>'


def _shown(said: str) -> str:
    # The page is made already, and what is said may quote what was sent.
    return named_unseen(escape(said))


def _head(sent: SentForm, above: Sequence[str]) -> str:
    """Return what a refused form begins with: why it was refused, and the page it is on."""
    parts = []
    if above:
        lead, *rest = map(_shown, above)
        parts.append(
            f'<div class="refused" role="alert"><p><strong>{lead}</strong> {" ".join(rest)}</p></div>'
        )
    if sent.method == "POST":
        parts.append(f'<input type="hidden" name="{PAGE_FIELD}" value="{escape(sent.page)}">')
        kept = [value for name, value in sent.pairs if name == KEPT_FIELD][:1]
        parts += [f'<input type="hidden" name="{KEPT_FIELD}" value="{escape(one)}">' for one in kept]
    return "".join(parts)


def _edited(page: str, edits: list[tuple[int, int, str]]) -> str:
    """Return a text with pieces of it replaced."""
    parts: list[str] = []
    after = 0
    for start, end, text in sorted(edits, key=lambda one: one[:2]):
        parts += (page[after:start], text)
        after = end
    return "".join([*parts, page[after:]])
