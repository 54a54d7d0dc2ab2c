"""Commands about rules against a running service: `--server URL`, with the key in `VETTANCE_API_KEY`."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from vettance.commands import fail
from vettance.rules.fault import pointed
from vettance.rules.rule import Fault
from vettance.wire.payload import decode, encode

KEY_VARIABLE: Final = "VETTANCE_API_KEY"
_ANSWER_S_MAX: Final = 60.0
#: An answer of this size holds a thousand versions, or a backtest of years.
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_PAGE: Final = 100
#: What is not there where the service answers 404: a part of its path, a noun, the command that lists it.
_SHOWN_BY: Final = (
    ("/snoozes/", "snooze", "snoozes"),
    ("/rulesets/", "version", "list"),
    ("/models/features/", "version", "features versions"),
    ("/models/", "model", "list"),
)

Command = TypeVar("Command", bound=Callable[..., Any])


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves redirects alone: the key is for the address that was named, and for no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


class RemoteRules:
    """A running service that commands ask instead of the store. Every fault ends the command.

    The exit code is 1 where the service refuses what it was asked (rules that do not pass the gate, a version
    that is not there), and 2 where it could not be asked: no key, one that may not, nobody at the address.
    """

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise click.BadParameter("must be an address like https://risk.example.com")
        self.url = url.rstrip("/")
        self._key = os.environ.get(KEY_VARIABLE, "").strip()
        if not self._key or not self._key.isprintable() or not self._key.isascii():
            raise click.UsageError(
                f"--server needs an API key of the scope `rules` in {KEY_VARIABLE}; "
                "`vettance key create --scope rules` makes one"
            )
        self._opener = urllib.request.build_opener(_NoRedirects)

    def get(self, path: str, **query: Any) -> Any:
        """Return the answer of a GET below `/api/v1`; members of the query that are None are left out."""
        given = {name.rstrip("_"): value for name, value in query.items() if value is not None}
        return self._ask("GET", f"{path}?{urllib.parse.urlencode(given)}" if given else path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer of a POST."""
        return self._ask("POST", path, body)

    def change(self, path: str, members: dict[str, Any]) -> Any:
        """Change members of what is at the path, leaving those that are None; return how it is then."""
        given = {name: value for name, value in members.items() if value is not None}
        return self._ask("PUT", path, given) if given else self.get(path)

    def delete(self, path: str) -> Any:
        """Return the answer of a DELETE."""
        return self._ask("DELETE", path)

    def every(self, path: str) -> list[Any]:
        """Return all rows of a list, page by page."""
        rows: list[Any] = []
        cursor = None
        while True:
            page = self.get(path, limit=_PAGE, cursor=cursor)
            rows += page["data"]
            cursor = page.get("nextCursor")
            if not page.get("hasMore") or cursor is None:
                return rows

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310  The scheme was looked at.
            f"{self.url}/api/v1{path}",
            data=None if body is None else encode(body),
            method=method,
            headers={
                "x-api-key": self._key,
                "Accept": "application/json",
                **({"Content-Type": "application/json"} if body is not None else {}),
            },
        )
        try:
            with self._opener.open(request, timeout=_ANSWER_S_MAX) as reply:
                return self._read(reply.read(_ANSWER_BYTES_MAX), reply.status)
        except urllib.error.HTTPError as error:
            with error:
                self._refuse(
                    path, error.code, error.read(_ANSWER_BYTES_MAX), (body or {}).get("document", "")
                )
        except urllib.error.URLError as error:
            self._not_asked(f"{self.url} cannot be reached: {_plain(error.reason)}")
        except (OSError, http.client.HTTPException) as error:
            self._not_asked(f"{self.url} did not answer: {_plain(error)}")

    def _read(self, body: bytes, status: int) -> Any:
        try:
            return decode(body)
        except ValueError:
            self._not_asked(f"{self.url} answered {status} with something else than JSON; is it the service?")

    def _refuse(self, path: str, status: int, body: bytes, document: str) -> NoReturn:
        try:
            error = decode(body)["error"]
            message, details = str(error["message"]), dict(error.get("details") or {})
        except (ValueError, KeyError, TypeError):
            self._not_asked(f"{self.url} answered {status} with something else than JSON; is it the service?")
        if status == 401:
            self._not_asked(f"{self.url} does not know the key in {KEY_VARIABLE}: it is wrong or was revoked")
        if status == 403 and details.get("reason") == "insufficient_scope":
            scope = details.get("scope", "rules")
            self._not_asked(
                f"the key in {KEY_VARIABLE} lacks the scope `{scope}`; "
                f"`vettance key create --scope {scope}` makes one that has it"
            )
        if status in (403, 429) or status >= 500:
            self._not_asked(f"{self.url} answered {status}: {message}")
        if status == 404:
            fail(_missing(path, message), status=status)
        faults = [fault_of(one, document) for one in details.pop("faults", ())]
        if faults:
            more = "".join(f"\n\n{fault}" for fault in faults)
            fail(message, more=more, faults=error["details"]["faults"])
        named = "".join(f"\n  {name}: {said}" for name, said in details.items() if name != "reason")
        fail(message, more=named, status=status, **details)

    def _not_asked(self, message: str) -> NoReturn:
        """End the command with exit code 2: nothing was said of the rules."""
        raise _NotAsked(message)


class _NotAsked(click.ClickException):
    """The service could not be asked."""

    exit_code = 2


def _missing(path: str, message: str) -> str:
    """Return which thing is not there, in the words of the same command with a store."""
    for part, noun, command in _SHOWN_BY:
        if part in path:
            group = "model" if path.startswith("/models/") else "aml" if path.startswith("/aml/") else "rules"
            return f"there is no such {noun}; `vettance {group} {command}` shows them"
    return message


def _plain(reason: object) -> str:
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return str(text)


def fault_of(answer: dict[str, Any], document: str) -> Fault:
    """Make a fault of what the service answers of it; the place is shown in the document that was sent."""
    where, line, column = str(answer["path"]), answer.get("line"), answer.get("column")
    excerpt = pointed(document, line, column, 1) if document and line and column else ()
    return Fault(
        where.replace("rules.", "rule ", 1) if where.startswith("rules.") else where,
        str(answer["message"]),
        line,
        column,
        answer.get("hint"),
        answer.get("severity") == "warning",
        tuple(excerpt),
    )


def _read_server(_context: click.Context, _option: click.Parameter, value: str | None) -> RemoteRules | None:
    return RemoteRules(value) if value is not None else None


def _read_tenant(context: click.Context, option: click.Parameter, value: str | None) -> str:
    """Return whose rules: what was given, or nobody where a key says it."""
    if value is None and context.params.get("server") is None and not context.resilient_parsing:
        raise click.MissingParameter(ctx=context, param=option)
    return value or ""


server_option: Final = click.option(
    "--server",
    metavar="URL",
    is_eager=True,
    callback=_read_server,
    help=f"Ask a running service instead of the store, with the key in {KEY_VARIABLE}.",
)


def tenant_or_server(command: Command) -> Command:
    """Give a command `--tenant`, and `--server` with whose key no tenant needs to be named."""
    tenant = click.option(
        "--tenant",
        "tenant_id",
        metavar="ID",
        callback=_read_tenant,
        help="Whose rules; with --server the key's.",
    )
    return tenant(server_option(command))


def local_only(*names: str) -> None:
    """Refuse parameters that a service cannot be asked for, where they were given (exit code 2)."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} needs the store; leave it out with --server")
