"""JavaScript and TypeScript of every page is type-checked against the client as it is; the how-to's runs."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.clients.framework_shops import free_port
from tests.clients.three_clients import TYPESCRIPT
from tests.docs.shell import PROJECT
from tests.docs.test_snippets import PAGES, blocks, name_of
from vettance_client.testing import StandIn

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or not (TYPESCRIPT / "dist" / "express.js").exists(),
        reason="the TypeScript client is not built: `make typescript` (needs Node 20 with npm)",
    ),
]
#: What the blocks of a page leave to the reader, by name.
LEFT_OUT = {
    "apiKey": "string",
    "client": "import('@vettance/client').Client",
    "yesterday": "Date",
    "rawBody": "Uint8Array<ArrayBuffer>",
    "request": "{ headers: Record<string, string | string[] | undefined> }",
    "signingSecret": "string",
    "seen": "(eventType: string, id: string) => Promise<boolean>",
    "later": "(data: object) => void",
    "secret": "string",
    "risk": "import('@vettance/client/express').Risk",
    "app": "import('express').Express",
}
#: Of another project, and not installed here: the types are what its page says of it.
ELSEWHERE = """declare module "standardwebhooks" {
  export class Webhook { constructor(secret: string); verify(body: unknown, headers: unknown): unknown }
}
"""
OPTIONS = ("--noEmit", "--target", "ES2022", "--module", "NodeNext", "--moduleResolution", "NodeNext")
LIBRARIES = ("--lib", "ES2022,DOM,DOM.Iterable,DOM.AsyncIterable", "--types", "node", "--skipLibCheck")


def place_modules(folder: Path) -> None:
    """Have the client and what it is developed with found from a folder."""
    modules = folder / "node_modules"
    (modules / "@vettance").mkdir(parents=True)
    (modules / "@vettance" / "client").symlink_to(TYPESCRIPT)
    for name in ("@types", "express"):
        (modules / name).symlink_to(TYPESCRIPT / "node_modules" / name)
    (folder / "package.json").write_text('{"type": "module"}')


def module_of(body: str) -> str:
    """A block as a module of its own, with what it leaves out declared."""
    own = set(re.findall(r"\b(?:const|let|function|class) (\w+)", body)) | set(
        re.findall(r"import \{([^}]*)\}", body)
    )
    used = {name for name in LEFT_OUT if re.search(rf"(?<![\w.]){name}\b", body)} - own
    declared = "".join(f"declare const {name}: {LEFT_OUT[name]};\n" for name in sorted(used))
    return f"{declared}{body}\nexport {{}};\n"


def check(folder: Path, files: list[Path], *options: str) -> str:
    tsc = TYPESCRIPT / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [str(tsc), *OPTIONS, *LIBRARIES, *options, *map(str, files)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    return done.stdout


def test_typescript_of_every_page_has_the_types_of_the_client(tmp_path: Path) -> None:
    place_modules(tmp_path)
    (tmp_path / "elsewhere.d.ts").write_text(ELSEWHERE)
    files = [tmp_path / "elsewhere.d.ts"]
    for page in PAGES:
        for number, body in enumerate(blocks(page, "ts")):
            files.append(tmp_path / f"{name_of(page).replace('/', '-')}-{number}.ts")
            files[-1].write_text(module_of(body))
    assert len(files) > 4
    assert check(tmp_path, files, "--strict") == ""


def test_javascript_of_every_page_has_the_types_of_the_client(tmp_path: Path) -> None:
    place_modules(tmp_path)
    files = []
    for page in PAGES:
        bodies = list(blocks(page, "js"))
        if bodies:
            files.append(tmp_path / f"{name_of(page).replace('/', '-')}.js")
            files[-1].write_text("\n".join(bodies))
    assert len(files) >= 3
    assert check(tmp_path, files, "--allowJs", "--checkJs") == ""


def test_the_example_shop_has_the_types_of_the_client() -> None:
    tsc = TYPESCRIPT / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [str(tsc), "-p", "tsconfig.examples.json"],
        cwd=TYPESCRIPT,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.stdout == ""


def test_the_application_of_the_express_page_runs(tmp_path: Path) -> None:
    place_modules(tmp_path)
    port = free_port()
    site = f"http://127.0.0.1:{port}"
    with StandIn() as stand_in:
        code = "\n".join(blocks(PROJECT / "docs" / "howto" / "express.md", "js"))
        code = code.replace("https://risk.example.com", stand_in.url)
        code += f'\napp.listen({port}, "127.0.0.1", () => console.log("listens"));\n'
        (tmp_path / "page.js").write_text(code)
        env = {**os.environ, "VETTANCE_KEY": "key"}
        with subprocess.Popen(["node", "page.js"], cwd=tmp_path, env=env, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == b"listens\n"
            try:
                with urlopen(site) as answer:
                    assert b'src="/vettance/start.js"' in answer.read()
                for word, state in (("approve", "paid"), ("review", "held")):
                    stand_in.answers("evaluate", {"decision": word})
                    asked = Request(f"{site}/pay", b'{"amount": 2}', {"Content-Type": "application/json"})
                    with urlopen(asked) as answer:
                        assert json.loads(answer.read())["state"] == state
            finally:
                running.kill()
