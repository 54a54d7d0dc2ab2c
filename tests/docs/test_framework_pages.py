"""The how-tos of web frameworks: their code, put together, is an application that runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.clients.framework_shops import PYTHON
from tests.docs.shell import PROJECT
from tests.docs.test_snippets import blocks
from tests.web.sample_service import serving
from vettance_client.testing import StandIn
from vettance_client.web.deliveries import LEASE_S


def python_of(page: str) -> str:
    text = (PROJECT / "docs" / "howto" / page).read_text("utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def test_the_application_of_the_fastapi_page_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with StandIn() as stand_in:
        monkeypatch.setenv("VETTANCE_KEY", "key")
        code = python_of("fastapi.md").replace("https://risk.example.com", stand_in.url)
        names: dict[str, object] = {"__name__": "page"}
        exec(compile(code, "fastapi.md", "exec", dont_inherit=True), names)
        with serving(names["app"], "auto") as port:
            site = f"http://127.0.0.1:{port}"
            with urlopen(site) as answer:
                assert b'src="/vettance/start.js"' in answer.read()
            for word, said in (("approve", {"state": "paid"}), ("review", {"state": "held"})):
                stand_in.answers("evaluate", {"decision": word})
                with urlopen(Request(f"{site}/pay?amount=2", method="POST")) as answer:
                    assert said.items() <= json.loads(answer.read()).items()
    table = names["TableOfDeliveries"](str(tmp_path / "deliveries.db"))  # type: ignore[operator]
    assert [table.claim("a"), table.claim("a"), table.claim("b")] == ["new", "busy", "new"]
    table.finish("a")
    table.release("b")
    assert [table.claim("a"), table.claim("b")] == ["done", "new"]
    assert f"now + {LEASE_S:.0f}," in code


DJANGO = """
import sys
sys.path.insert(0, sys.argv[1])
import django
from django.conf import settings
import page_settings
settings.configure(**{
    **{name: getattr(page_settings, name) for name in dir(page_settings) if name.isupper()},
    "ROOT_URLCONF": "page_urls", "ALLOWED_HOSTS": ["*"],
    "DATABASES": {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    "TEMPLATES": [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
})
django.setup()
import asyncio
from django.core.checks import run_checks
from django.template import engines
from django.test import RequestFactory
import page_urls, page_views
assert run_checks() == [], run_checks()
request = RequestFactory().get("/")
print(page_views.pay(request).content.decode())
print(asyncio.run(page_views.pay_async(request)).content.decode())
print(engines["django"].from_string(open(sys.argv[1] + "/page.html").read()).render({}, request))
"""


def test_the_code_of_the_django_page_runs(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "howto" / "django.md").read_text("utf-8")
    with StandIn() as stand_in:
        for name in ("settings", "urls"):
            body = re.search(rf"^```python {name}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
            assert body is not None
            code = body[1].replace("https://risk.example.com", stand_in.url)
            (tmp_path / f"page_{name}.py").write_text(code)
        (tmp_path / "page_views.py").write_text(python_of("django.md"))
        (tmp_path / "page.html").write_text("\n".join(blocks(PROJECT / "docs/howto/django.md", "html")))
        done = subprocess.run(
            [sys.executable, "-c", DJANGO, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(PYTHON / "src"), "VETTANCE_KEY": "key"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("paid\npaid\n")
    assert 'src="/vettance/start.js"' in done.stdout
    assert "csrfmiddlewaretoken" in done.stdout
