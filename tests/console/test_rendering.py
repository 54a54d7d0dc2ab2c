"""Templates are compiled when they are first needed, in a thread, with all that they build on."""

import threading

import pytest
from jinja2 import Environment, FileSystemLoader

from vettance.console import rendering
from vettance.console.catalogue import ENGLISH
from vettance.console.error_pages import error_view
from vettance.errors import NotFound


class RecordingLoader(FileSystemLoader):
    """Reads templates as the console does, and tells which of them where."""

    def __init__(self) -> None:
        super().__init__(rendering.TEMPLATES)
        self.read: list[tuple[str, int]] = []

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, object]:  # type: ignore[override]
        self.read.append((template, threading.get_ident()))
        return super().get_source(environment, template)


async def test_no_template_is_compiled_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loader, templates = RecordingLoader(), rendering.environment(ENGLISH)
    monkeypatch.setattr(templates, "loader", loader)
    monkeypatch.setattr(rendering, "_compiled", set())
    assert templates.cache is not None
    templates.cache.clear()
    view = error_view(NotFound())
    values = {**view.values, "layout": "fragment.html", "view": view, "page": {}}
    content = await rendering.render(view.template, values)
    read = [name for name, _ in loader.read]
    assert view.template in read
    assert "fragment.html" in read
    assert threading.get_ident() not in {thread for _, thread in loader.read}
    before = len(loader.read)
    assert await rendering.render(view.template, values) == content
    assert len(loader.read) == before
