"""The console as an ASGI application: it answers under /console and hands everything else on."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Final
from urllib.parse import urlsplit

from vettance import clock
from vettance.audit.act import Act, acting
from vettance.console import guard
from vettance.console.assets import assets_by_url
from vettance.console.error_pages import error_view, forbidden_view
from vettance.console.inner_api import asker
from vettance.console.late_forms import ask_to_sign_in, page_of, shown_kept, without_kept
from vettance.console.layout import page_values
from vettance.console.masking import Sight, is_masked_for
from vettance.console.page import (
    ANYBODY,
    CHECK_ID,
    HOME,
    SECOND_FACTOR,
    ConsolePage,
    Download,
    FormFields,
    PageAnswer,
    Redirect,
    View,
    Visit,
    own_path,
    url_of,
)
from vettance.console.page_table import PageTable
from vettance.console.parts import ConsoleParts
from vettance.console.refused_forms import KEPT_FIELD, PAGE_FIELD, SECRET_FIELDS
from vettance.console.rendering import render, zipped
from vettance.console.reveal_page import revealed_until
from vettance.console.shown_again import ShownAgain, places, refilled, shown_again
from vettance.console.shown_values import ValueFormatter, locale_of
from vettance.console.unsent_forms import unsent_form
from vettance.db.engine import StoreDown
from vettance.errors import (
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    Refusal,
    Unavailable,
    UnsupportedMediaType,
)
from vettance.people.role import Role
from vettance.people.session import Stage
from vettance.web.asgi import Header, Message
from vettance.web.cors import client_address
from vettance.web.edge import Asgi, LogError, Send
from vettance.web.request_body import ARRIVAL_S_MAX, Disconnected, Receive
from vettance.wire.payload import BODY_BYTES_MAX

_ROOT: Final = b"/console"
_HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_FORM: Final = b"application/x-www-form-urlencoded"
_VARY: Final = (b"vary", b"accept-encoding, cookie, hx-request")
_IMMUTABLE: Final = (b"cache-control", b"public, max-age=31536000, immutable")
#: Pages at work at one time. People wait for seconds rather than have decisions wait for them.
_AT_WORK_MAX: Final = 64
#: Statuses of pages that say themselves why their form was refused.
_REFUSED: Final = (400, 409, 422)
_LANGUAGE_CHARS_MAX: Final = 200
#: Fields of forms that the audit log does not need, or must not know.
_NOT_TOLD: Final = frozenset({"csrf", "tenant", "next", PAGE_FIELD, KEPT_FIELD}) | SECRET_FIELDS


class Console:
    """Serves the pages; `behind` gets what is not under /console."""

    def __init__(self, parts: ConsoleParts, pages: PageTable, behind: Asgi, log_error: LogError) -> None:
        self._parts = parts
        self._pages = pages
        self._behind = behind
        self._log_error = log_error
        self._turns = asyncio.Semaphore(_AT_WORK_MAX)

    def __call__(self, scope: Message, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            path: bytes = scope["raw_path"]
            if path == _ROOT or path.startswith(b"/console/"):
                return self._serve(scope, receive, send)
        return self._behind(scope, receive, send)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        asset = assets_by_url().get(scope["raw_path"].decode("latin-1"))
        if asset is not None and scope["method"] in ("GET", "HEAD"):
            is_zipped = b"gzip" in headers.get(b"accept-encoding", b"")
            content = asset.zipped if is_zipped else asset.content
            kind = (b"content-type", asset.content_type.encode())
            named = [kind, _IMMUTABLE, (b"vary", b"accept-encoding"), *guard.GUARDS]
            await _send(send, scope, 200, content, named, is_zipped=is_zipped)
            return
        async with self._turns:
            visit = self._visit(scope, headers)
            try:
                answer = await self._answer(scope, receive, visit)
            except Disconnected:
                return
            except Exception as error:  # noqa: BLE001  Whatever goes wrong, the visitor gets a page.
                answer = self._refuse(visit, error)
            status, content, sent = await self._content(answer, visit)
        packed = None
        if b"gzip" in headers.get(b"accept-encoding", b""):
            packed = await zipped(content)
        base = [(b"x-request-id", visit.request_id.encode()), guard.NO_STORE, _VARY, *guard.GUARDS, *sent]
        await _send(send, scope, status, packed or content, base, is_zipped=packed is not None)

    def _visit(self, scope: Message, headers: Mapping[bytes, bytes]) -> Visit:
        """Return what is known of a request before it is known who makes it."""
        parts, now_ms = self._parts, clock.now_ms()
        language = headers.get(b"accept-language", b"")[:_LANGUAGE_CHARS_MAX].decode("latin-1")
        secure = guard.is_https(scope.get("scheme", "http"), headers, parts.proxies)
        query: bytes = scope["query_string"]
        url = scope["raw_path"].decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        return Visit(
            method=scope["method"],
            url=url,
            path={},
            query=FormFields(),
            form=FormFields(),
            headers=headers,
            now_ms=now_ms,
            client=client_address(scope.get("client"), scope["headers"], parts.proxies),
            is_https=secure,
            is_partial=headers.get(b"hx-request") == b"true",
            show=ValueFormatter(now_ms, locale=locale_of(language)),
            sight=Sight(parts.tokens, "", is_masked=True),
            parts=parts,
            roles_at=self._roles_at,
            request_id=parts.ids.make("req", now_ms),
            cookie=guard.read_cookie(headers, is_https=secure),
        )

    async def _answer(self, scope: Message, receive: Receive, visit: Visit) -> PageAnswer | ShownAgain:
        """Go through the checks and have the page answer."""
        raw_path: bytes = scope["raw_path"]
        if raw_path == _ROOT:
            return Redirect(HOME)
        try:
            await self._recognize(visit)
        except StoreDown:
            if visit.method == "POST" and self._is_own(visit):
                visit.form = _fields(await _read_form(receive, visit.headers))
            raise
        found = self._pages.find(scope["method"], raw_path)
        page, visit.path = found if found is not None else (None, {})
        if page is None or page.roles != ANYBODY:
            if visit.signed_in is None:
                return await self._ask_to_sign_in(receive, visit, page)
            if visit.signed_in.stage is not Stage.FULL:
                return Redirect(url_of(SECOND_FACTOR, next=own_path(visit.url)))
        if page is None:
            if visit.signed_in is not None and visit.signed_in.stage is Stage.FULL:
                await self._place(visit, "")  # So that the page has the navigation.
            raise NotFound
        visit.query = _fields(scope["query_string"])
        kept_id = without_kept(visit)
        if visit.signed_in is not None and visit.signed_in.stage is Stage.FULL:
            await self._place(visit, visit.query.get("tenant"))
            visit.sight.is_revealed = revealed_until(visit) is not None
        is_earlier = False
        if visit.method == "POST":
            is_earlier = await self._take_form(receive, visit, page)
        if page.roles != ANYBODY and not visit.may(*page.roles):
            return forbidden_view(page.roles)
        answer = await self._answer_of(page, visit, is_earlier=is_earlier)
        if kept_id and isinstance(answer, View) and page.roles != ANYBODY and not visit.is_partial:
            return await shown_kept(visit, answer, kept_id, self._pages)
        return answer

    async def _ask_to_sign_in(self, receive: Receive, visit: Visit, page: ConsolePage | None) -> Redirect:
        """Lead to the sign-in page; a form that a page of ours sent is kept where it can be."""
        is_own = self._is_own(visit)

        async def read_form() -> FormFields:
            return _fields(await _read_form(receive, visit.headers))

        return await ask_to_sign_in(visit, read_form if is_own and page is not None else None)

    async def _answer_of(
        self, page: ConsolePage, visit: Visit, *, is_earlier: bool = False
    ) -> PageAnswer | ShownAgain:
        """Have a page answer; one whose form is refused is shown again with what was typed."""
        if page.roles == ANYBODY:
            return await page.handler(visit)
        try:
            if is_earlier:
                raise EarlierForm
            return await (self._change(page, visit) if visit.method == "POST" else page.handler(visit))
        except Refusal as refused:
            shown = await shown_again(visit, refused, self._pages)
            if shown is None:
                raise
            return shown

    def _roles_at(self, path: str) -> frozenset[Role] | None:
        """Return who may read the page at a path; None where there is none."""
        try:
            found = self._pages.find("GET", path.encode())
        except MethodNotAllowed:
            return None
        return found[0].roles if found is not None and found[0].roles != ANYBODY else None

    async def _change(self, page: ConsolePage, visit: Visit) -> PageAnswer:
        """Have a page change something, and the audit log know who did it."""
        sent: dict[str, list[str]] = {}
        for name, value in visit.form.pairs:
            if name not in _NOT_TOLD:
                sent.setdefault(name, []).append(value)
        typed = {name: values if len(values) > 1 else values[0] for name, values in sent.items()}
        subject = ", ".join(visit.path.values())
        action = f"{page.method} {page.path}"
        with acting(Act(visit.signed.actor, action, tenant=visit.tenant.id, subject=subject, after=typed)):
            answer = await page.handler(visit)
            if not isinstance(answer, View):  # A form that is shown again has changed nothing.
                await self._parts.acts.record()
                if kept_id := visit.form.get(KEPT_FIELD):
                    await self._parts.kept.forget(visit.signed.user_id, kept_id)
        return answer

    async def _recognize(self, visit: Visit) -> None:
        """Find out who visits."""
        if visit.cookie:
            # Of what a page asks for by itself, only the check of an editor follows upon somebody's typing.
            is_used = not visit.is_partial or visit.headers.get(b"hx-target") == CHECK_ID.encode()
            visit.signed_in = await self._parts.sessions.find(visit.cookie, used=is_used)

    async def _place(self, visit: Visit, tenant_id: str) -> None:
        """Set the tenant of a visit: that of the session, or another one of the user's that is named."""
        signed, parts = visit.signed, self._parts
        if tenant_id and tenant_id != signed.tenant_id:
            if tenant_id not in signed.memberships:
                raise NotFound
            await parts.sessions.choose_tenant(signed, tenant_id)
            await self._recognize(visit)
            if visit.signed_in is None:
                raise NotFound
            signed = visit.signed
        visit.at_tenant = tenant = parts.keys.tenant(signed.tenant_id)
        if tenant is None:
            raise NotFound
        visit.show = ValueFormatter(visit.now_ms, signed.time_zone, visit.show.locale)
        visit.sight = Sight(parts.tokens, tenant.id, is_masked=is_masked_for(signed.roles))
        visit.asking = asker(parts.routes, tenant, signed.user_id, visit.request_id, visit.now_ms)

    async def _take_form(self, receive: Receive, visit: Visit, page: ConsolePage) -> bool:
        """Read a form, and check that a page of ours sent it, for this session. Raises `Refusal`.

        Returns whether it is one of an earlier session: nothing is done, but it can be shown again.
        """
        if not self._is_own(visit):
            raise ForeignForm
        visit.form = _fields(await _read_form(receive, visit.headers))
        if visit.signed_in is None or page.begins_session:
            return False
        is_earlier = not guard.fits_token(visit.form.get("csrf"), visit.signed.csrf_token)
        if is_earlier and page.roles == ANYBODY:
            raise ForeignForm
        # A form is about the tenant whose page it was on, whichever another tab has chosen since.
        if visit.signed.stage is Stage.FULL:
            await self._place(visit, visit.form.get("tenant"))
        return is_earlier

    def _is_own(self, visit: Visit) -> bool:
        """Tell whether a page of ours sent a form."""
        return guard.is_own_origin(visit.headers, is_https=visit.is_https, proxies=self._parts.proxies)

    def _refuse(self, visit: Visit, error: Exception) -> View:
        """Turn any exception into the page that tells of it."""
        if isinstance(error, StoreDown):
            error = Unavailable("The store cannot be reached at the moment. Try again.")
        elif not isinstance(error, Refusal):
            self._log_error(visit.request_id, error)
            error = InternalError(visit.request_id)
        return error_view(error, self._page_of(visit), unsent_form(visit, error.status, page_of(visit)))

    def _page_of(self, visit: Visit) -> str:
        """Return the page that a form was on, as far as the visitor may read it; nothing otherwise."""
        if visit.method != "POST" or visit.at_tenant is None:
            return ""
        for page in places(visit):
            roles = self._roles_at(urlsplit(page).path)
            if roles is not None and visit.may(*roles):
                return page
        return ""

    async def _content(
        self, answer: PageAnswer | ShownAgain, visit: Visit
    ) -> tuple[int, bytes, list[Header]]:
        """Put an answer into bytes."""
        if isinstance(answer, ShownAgain):
            return answer.status, answer.content, [_HTML]
        if isinstance(answer, Redirect):
            return 303, b"", _encoded((("location", answer.to), *answer.headers))
        if isinstance(answer, Download):
            disposition = ("content-disposition", f'attachment; filename="{answer.name}"')
            return 200, answer.content, _encoded((("content-type", answer.content_type), disposition))
        try:
            content = await self._render(answer, visit)
        except Exception as error:
            if answer.status == InternalError.status:
                raise
            answer = self._refuse(visit, error)
            content = await self._render(answer, visit)
        return answer.status, content, [_HTML, *_encoded(answer.headers)]

    async def _render(self, answer: View, visit: Visit) -> bytes:
        values = page_values(answer, visit, self._pages)
        content = await render(answer.template, values, values["language"])
        is_form = visit.method == "POST" and answer.status in _REFUSED and answer.template != "error.html"
        return refilled(visit, content) if is_form else content


class ForeignForm(Refusal):
    """403: a form that no page of ours sent, or one of a session that has ended."""

    status = 403
    code = "FORBIDDEN"

    def __init__(self) -> None:
        super().__init__(
            "This form is not from a page of this session. Go back, reload the page and send it again."
        )


class EarlierForm(Refusal):
    """403: a form of our own pages without the token of this session: somebody has signed in anew since."""

    status = 403
    code = "FORBIDDEN"

    def __init__(self) -> None:
        super().__init__("The page is not of this session. Look at it once more, and send it again.")


def _fields(raw: bytes) -> FormFields:
    try:
        return FormFields.parse(raw)
    except ValueError:
        raise Invalid("The address or the form cannot be read.") from None


async def _read_form(receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
    """Return the body of a form within bounds. Raises `Refusal` and `Disconnected`."""
    kind = headers.get(b"content-type", _FORM).partition(b";")[0].strip().lower()
    if kind != _FORM:
        raise UnsupportedMediaType("A form must be sent as application/x-www-form-urlencoded.")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(ARRIVAL_S_MAX):
            while (message := await receive())["type"] != "http.disconnect":
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > BODY_BYTES_MAX:
                    raise PayloadTooLarge("The form is too large.")
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Invalid("The form did not arrive in time.") from None
    raise Disconnected


def _encoded(headers: tuple[tuple[str, str], ...]) -> list[Header]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def _send(
    send: Send, scope: Message, status: int, content: bytes, headers: list[Header], *, is_zipped: bool
) -> None:
    if is_zipped:
        headers.append((b"content-encoding", b"gzip"))
    headers.append((b"content-length", b"%d" % len(content)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})
