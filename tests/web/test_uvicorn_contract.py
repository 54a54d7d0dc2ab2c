"""What we use of uvicorn's inside is there: its HTTP protocol, its request cycle and its server.

`web/server.py` and `server/web_process.py` build on parts of uvicorn that it does not promise to keep. They
are listed here by name, so that a release without one of them fails here with the name of what is gone.
"""

import ast
import asyncio
import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from vettance.server.web_process import Server, server_config
from vettance.web.server import EdgeProtocol

ROOT = Path(__file__).parents[2]
MEND = (
    "uvicorn {} has no {}. Compare uvicorn/protocols/http/httptools_impl.py of that release with "
    "web/server.py, follow the change, run tests/web, and move the range in pyproject.toml (docs/adr/0091)."
)

#: What the protocol inherits and uses, or overrides and so relies on being called.
PROTOCOL = {
    *("access_log", "access_logger", "app", "client", "connections", "cycle", "expect_100_continue", "flow"),
    *("headers", "logger", "loop", "parser", "pipeline", "scope", "server_state", "timeout_keep_alive_task"),
    *("transport", "url", "_start_asgi_task", "_unset_keepalive_if_required"),
}
OVERRIDDEN = {
    *("connection_made", "connection_lost", "data_received", "on_header", "on_headers_complete"),
    *("on_message_complete", "on_response_complete", "resume_writing"),
}
CYCLE = {
    *("body", "default_headers", "disconnected", "flow", "keep_alive", "message_event", "more_body"),
    *(
        "on_response",
        "response_complete",
        "response_started",
        "scope",
        "transport",
        "waiting_for_100_continue",
    ),
}
#: In the order in which the protocol passes them.
CYCLE_ARGUMENTS = [
    *("scope", "transport", "flow", "logger", "access_logger", "access_log", "default_headers"),
    *("message_event", "expect_100_continue", "keep_alive", "on_response"),
]
FLOW = {"pause_reading", "read_paused", "write_paused"}
SERVER = {
    "config",
    "lifespan",
    "serve",
    "servers",
    "server_state",
    "should_exit",
    "shutdown",
    "started",
    "startup",
}


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    pass


def protocol() -> HttpToolsProtocol:
    """Return a protocol of uvicorn's own, as it is at the start of a request."""
    config = server_config(_nothing)
    config.load()
    made = HttpToolsProtocol(config, uvicorn.Server(config).server_state, {}, asyncio.get_running_loop())
    made.on_message_begin()
    return made


def assert_has(thing: Any, names: set[str], what: str) -> None:
    lacking = sorted(name for name in names if not hasattr(thing, name))
    assert not lacking, MEND.format(version("uvicorn"), ", ".join(f"{what}.{name}" for name in lacking))


def used_of(module: Path, variable: str, within: str = "") -> set[str]:
    """Return the attributes that code takes from a variable, in a class or anywhere in a module."""
    tree: ast.AST = ast.parse(module.read_text("utf-8"))
    if within:
        tree = next(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == within)
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name | ast.Attribute)
        and (node.value.id if isinstance(node.value, ast.Name) else node.value.attr) == variable
    }


async def test_uvicorns_protocol_has_what_ours_uses() -> None:
    assert_has(protocol(), PROTOCOL | OVERRIDDEN - {"resume_writing"}, "HttpToolsProtocol")
    assert_has(asyncio.Protocol, {"resume_writing"}, "Protocol")
    assert STATUS_LINE[200] == b"HTTP/1.1 200 OK\r\n"


async def test_uvicorns_request_cycle_is_made_and_read_as_we_do() -> None:
    taken = list(inspect.signature(RequestResponseCycle).parameters)
    assert taken == CYCLE_ARGUMENTS, MEND.format(version("uvicorn"), f"RequestResponseCycle{CYCLE_ARGUMENTS}")
    values: dict[str, Any] = dict.fromkeys(taken) | {"message_event": asyncio.Event()}
    assert_has(RequestResponseCycle(**values), CYCLE, "RequestResponseCycle")
    assert_has(FlowControl(None), FLOW, "FlowControl")  # type: ignore[arg-type]


def test_uvicorns_server_starts_and_stops_as_ours_does() -> None:
    server = uvicorn.Server(server_config(_nothing))
    # It makes these two when it starts to serve.
    made_late = {"lifespan", "servers"}
    assert_has(server, SERVER - made_late, "Server")
    source = inspect.getsource(uvicorn.Server)
    lacking = sorted(name for name in made_late if f"self.{name}" not in source)
    assert not lacking, MEND.format(version("uvicorn"), ", ".join(f"Server.{name}" for name in lacking))


def test_these_lists_are_whole() -> None:
    module = ROOT / "src/vettance/web/server.py"
    own = set(vars(EdgeProtocol)) | set(
        re.findall(r"self\.(_\w+)(?::[^=\n]+)? = ", module.read_text("utf-8"))
    )
    inherited = used_of(module, "self", "EdgeProtocol") - (own - OVERRIDDEN)
    assert inherited - OVERRIDDEN <= PROTOCOL, "name what web/server.py uses of uvicorn in PROTOCOL above"
    overridden = {name for name in vars(EdgeProtocol) if hasattr(HttpToolsProtocol, name) and name[0] != "_"}
    assert overridden == OVERRIDDEN, "name what EdgeProtocol overrides in OVERRIDDEN above"
    assert used_of(module, "cycle") <= CYCLE, "name what web/server.py uses of a cycle in CYCLE above"
    assert used_of(module, "flow") <= FLOW, "name what web/server.py uses of the flow in FLOW above"
    process = ROOT / "src/vettance/server/web_process.py"
    own = {"_others", "_place", "_say", "_shares"}
    ours = {name for name in vars(Server) if name not in vars(uvicorn.Server)} | own
    assert used_of(process, "self", "Server") - ours <= SERVER, (
        "name what Server uses of uvicorn in SERVER above"
    )


def test_the_range_of_uvicorn_ends_with_the_release_that_was_read() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    (uvicorns,) = [one for one in declared if one.startswith("uvicorn")]
    major, minor, _ = version("uvicorn").split(".", 2)
    assert uvicorns == f"uvicorn>={major}.{minor},<{major}.{int(minor) + 1}"
