"""Rendering: templates into pages, in small steps between which decisions are answered."""

import asyncio
import functools
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vettance.console.catalogue import ENGLISH, FOLDER, catalogue_of
from vettance.console.unseen_characters import is_asked, isolated, with_unseen_shown
from vettance.console.words import Words
from vettance.fairness.time_slice import DECISIONS, TimeSlice

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES: Final = Path(__file__).parent / "templates"
#: Smaller answers are sent as they are; larger ones than the second are compressed in a thread.
_ZIPPED_BYTES_MIN: Final = 1_024
_INLINE_BYTES_MAX: Final = 32 * 1024
_LEVEL: Final = 5

#: Languages and templates that are compiled, with all that they need.
_compiled: set[tuple[str, str]] = set()


@functools.cache
def environment(language: str = ENGLISH, folder: Path = FOLDER) -> "Environment":
    """Return the environment of all templates in a language: every value is escaped."""
    words = catalogue_of(language, folder)
    return translating(lambda said, _: words.get(said, said))


def translating(say: Callable[[str, int], str]) -> "Environment":
    """Return an environment whose templates say everything as `say(words, line)` has it."""
    from jinja2 import Environment, FileSystemLoader

    from vettance.console.missing_members import MissingMember
    from vettance.console.translated_templates import TranslatedTemplates

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=MissingMember,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=[TranslatedTemplates],
        finalize=lambda value: _final(value, say),
    )
    made.extend(say=say)
    return made


def _final(value: Any, say: Callable[[str, int], str]) -> Any:
    if type(value) is Words:
        return say(value, 0)
    return isolated(value) if isinstance(value, str) else value


async def render(template: str, values: Mapping[str, Any], language: str = ENGLISH) -> bytes:
    """Fill a template, leaving the event loop to others every millisecond, and to decisions first.

    A template is compiled when it is first needed, in a thread: one takes up to 50 ms.
    """
    for name in (template, values.get("layout")):
        if name is not None and (language, name) not in _compiled:
            await asyncio.to_thread(_compile, language, name)
            _compiled.add((language, name))
    await DECISIONS.go_first()
    pieces: list[str] = []
    turn, has_unseen = TimeSlice(), False
    for piece in environment(language).get_template(template).generate(values):
        pieces.append(piece)
        has_unseen = has_unseen or is_asked(piece)
        await turn.pause_when_over()
    page = "".join(pieces)
    return (await asyncio.to_thread(with_unseen_shown, page) if has_unseen else page).encode()


def _compile(language: str, name: str) -> None:
    """Have a template compiled, and those that it builds on, includes or imports from."""
    from jinja2.meta import find_referenced_templates

    templates = environment(language)
    assert templates.loader is not None
    source, _, _ = templates.loader.get_source(templates, name)
    for other in find_referenced_templates(templates.parse(source)):
        if other is not None:
            _compile(language, other)
    templates.get_template(name)


async def zipped(content: bytes) -> bytes | None:
    """Return the content compressed by gzip; None where that is not worth it."""
    if len(content) < _ZIPPED_BYTES_MIN:
        return None
    if len(content) <= _INLINE_BYTES_MAX:
        return gzip(content)
    return await asyncio.to_thread(gzip, content)


def gzip(content: bytes, level: int = _LEVEL) -> bytes:
    """Compress by gzip, without the moment in its header."""
    packer = zlib.compressobj(level, wbits=31)
    return packer.compress(content) + packer.flush()
