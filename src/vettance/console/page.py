"""A page of the console: its row in the table of pages, what a visit brings, and what a page answers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from vettance.console.masking import Sight
from vettance.console.shown_values import ValueFormatter
from vettance.people.role import Role
from vettance.people.session import SignedIn
from vettance.tenants.tenant import Tenant

#: What nobody needs to be signed in for.
ANYBODY: Final[frozenset[Role]] = frozenset()
#: Who may read what the fraud product knows.
READERS: Final = frozenset(Role)
#: Who works: labels, notes, list entries.
WORKERS: Final = frozenset({Role.ANALYST, Role.LEAD})
#: Who sees the queue; administrators and auditors read it.
QUEUE_READERS: Final = WORKERS | {Role.ADMIN, Role.AUDITOR}
#: Who takes from others, gives the second signature and checks quality.
LEADS: Final = frozenset({Role.LEAD})
#: Who reads the audit log, and how the organisation is set up.
OVERSEERS: Final = frozenset({Role.ADMIN, Role.AUDITOR})
#: Who changes how the organisation is set up.
ADMINS: Final = frozenset({Role.ADMIN})

HOME: Final = "/console/"
SIGN_IN: Final = "/console/sign-in"
#: Where a session goes that lacks the second factor.
SECOND_FACTOR: Final = "/console/second-factor"

#: The id of the part of a page that asks for itself again and again.
LIVE_ID: Final = "live"
#: The id of the part of an editor that says what is wrong with what is typed.
CHECK_ID: Final = "check"

#: Fields of a form beyond this are no form of ours.
_FIELDS_MAX: Final = 2_000


class FormFields:
    """The fields of a query or a form; a name may come several times, and is empty when it is not there."""

    def __init__(self, pairs: list[tuple[str, str]] | None = None) -> None:
        self.pairs = pairs or []
        self._first: dict[str, str] = {}
        for name, value in self.pairs:
            self._first.setdefault(name, value)

    @classmethod
    def parse(cls, raw: bytes) -> "FormFields":
        """Read URL-encoded fields. Raises `ValueError` when there are too many, or they are no UTF-8 text."""
        text = raw.decode("ascii")
        sent = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)
        # Browsers send each line break as two characters, and count it as one against `maxlength`.
        pairs = [(name, value.replace("\r\n", "\n")) for name, value in sent]
        if any("\x00" in name or "\x00" in value for name, value in pairs):
            raise ValueError("a field holds a NUL character")
        return cls(pairs)

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field without blanks around it."""
        return self._first.get(name, default).strip()

    def raw(self, name: str) -> str:
        """Return the first value as it was sent; passwords may begin with a blank."""
        return self._first.get(name, "")

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return [value for found, value in self.pairs if found == name]

    def __contains__(self, name: str) -> bool:
        return name in self._first


class View(msgspec.Struct, frozen=True):
    """An answer that is a page: a template with its values. `headers` are added to those of every page."""

    template: str
    values: Mapping[str, Any] = {}
    title: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()

    def with_headers(self, *more: tuple[str, str]) -> "View":
        """Return the same page with more headers."""
        return msgspec.structs.replace(self, headers=(*self.headers, *more))


class Redirect(msgspec.Struct, frozen=True):
    """An answer that leads to another page (303): what every change ends with."""

    to: str
    headers: tuple[tuple[str, str], ...] = ()


class Download(msgspec.Struct, frozen=True):
    """An answer that is a file."""

    content: bytes
    content_type: str
    name: str


PageAnswer = View | Redirect | Download


class Ask(Protocol):
    """Asks an endpoint of the API, in process, for the tenant of a visit."""

    async def __call__(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> Any:
        """Return the JSON that the endpoint answers. Raises what it refuses with."""


class Visit(msgspec.Struct, kw_only=True):
    """One request for a page, after all checks that do not concern the page itself.

    `signed` and `tenant` are there on every page that asks for a role; `nobody` may visit the others.
    """

    method: str
    url: str  # path and query, as asked for
    path: Mapping[str, str]
    query: FormFields
    form: FormFields
    headers: Mapping[bytes, bytes]
    now_ms: int
    client: str | None
    is_https: bool
    is_partial: bool
    show: ValueFormatter
    sight: Sight
    parts: Any
    #: The roles that may read the page at a path; None where there is no page.
    roles_at: Callable[[str], frozenset[Role] | None]
    request_id: str = ""
    cookie: str | None = None
    signed_in: SignedIn | None = None
    at_tenant: Tenant | None = None
    asking: Ask | None = None

    @property
    def signed(self) -> SignedIn:
        """Who visits."""
        assert self.signed_in is not None, "the page asks for no role"
        return self.signed_in

    @property
    def tenant(self) -> Tenant:
        """The tenant whose data the page shows."""
        assert self.at_tenant is not None, "the page asks for no role"
        return self.at_tenant

    @property
    def ask(self) -> Ask:
        """The API, as the tenant of the visit calls it."""
        assert self.asking is not None, "the page asks for no role"
        return self.asking

    def may(self, *roles: Role) -> bool:
        """Tell whether the visitor has one of some roles."""
        return self.signed_in is not None and not self.signed_in.roles.isdisjoint(roles)

    def redirect(self, to: str, notice: str = "", count: int = 0) -> Redirect:
        """Lead to a page of the console; `notice` names a sentence of `notices.NOTICES` shown there.

        With a count that is not 0, it is the one of `notices.COUNTED` that says it.
        """
        if notice:
            said = {"notice": f"{notice}-some", "count": str(count)} if count else {"notice": notice}
            to += ("&" if "?" in to else "?") + urlencode(said)
        return Redirect(to)


Handler = Callable[[Visit], Awaitable[PageAnswer]]


class ConsolePage(msgspec.Struct, frozen=True):
    """One row of the table of pages: a path as in `web.routing`, and the roles of which one is needed.

    A form that `begins_session` needs no token of the session before it: our `Origin` alone keeps other sites
    from signing somebody in, with a cookie as without one.
    """

    method: str
    path: str
    roles: frozenset[Role]
    handler: Handler
    begins_session: bool = False


def own_path(text: str) -> str:
    """Return a path of the console that somebody named for going back to; home for anything else.

    Browsers read a backslash as a slash, drop tabs and line breaks, and take `//` for another host.
    """
    is_safe = (
        text.startswith(HOME)
        and text.isprintable()
        and not any(bad in text for bad in ("\\", "//", " ", "/.."))
    )
    return text if is_safe else HOME


def url_of(path: str, **fields: Any) -> str:
    """Return a path with a query; fields that are None or empty are left out."""
    given = {name: value for name, value in fields.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def segment(text: str) -> str:
    """Return a text as one segment of a path."""
    return quote(text, safe="")
