"""The command line of webhooks, for authors of receivers: listen to deliveries, verify one."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from vettance import clock
from vettance.commands import data_option, fail, find_tenant, json_option, open_store, show
from vettance.db.engine import Store, StoreDown
from vettance.ids import IdSource
from vettance.option_types import Whole
from vettance.outbox import MessageType
from vettance.settings.settings import Environment, Settings
from vettance.tenants.sql import note_change
from vettance.webhooks import sql
from vettance.webhooks.listening import hindrance, unheard
from vettance.webhooks.webhook import SignatureInvalid, Subscription, free_slot, make_secret, verify
from vettance.wire.numbers import read_whole
from vettance.wire.payload import BODY_BYTES_MAX, decode, encode, timestamp

if TYPE_CHECKING:
    from vettance.webhooks.http_client import WebhookClient

#: The headers of a delivery that are passed on; the rest belongs to the connection it came by.
_PASSED: Final = ("content-type", "user-agent")
_PASSED_PREFIXES: Final = ("x-webhook-", "webhook-")

#: How often it is looked whether deliveries come.
_WATCH_S: Final = 1.0

Message = MutableMapping[str, Any]


@click.group()
def webhooks() -> None:
    """Listen to deliveries on this machine, and verify signatures.

    Example: vettance webhooks listen --tenant ten_0190…
    """


@webhooks.command()
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose events.")
@click.option("--forward-to", metavar="URL", help="Pass every delivery on to this address.")
@click.option(
    "--event",
    "events",
    multiple=True,
    metavar="TYPE",
    type=click.Choice([kind.value for kind in MessageType]),
    help=f"Only this type; may be repeated. Default: all. One of {', '.join(MessageType)}.",
)
@click.option("--port", default=0, type=Whole(0, 65535), help="Where to listen; default a free one.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on each line.")
@data_option
def listen(
    tenant_id: str,
    forward_to: str | None,
    events: tuple[str, ...],
    port: int,
    as_json: bool,
    data: str | None,
) -> None:
    """Subscribe this machine to a tenant's events until Ctrl-C: verify, print and forward each delivery.

    The server must run on this machine with VETTANCE_UNSAFE_WEBHOOKS=1. The subscription and its secret are
    made for this session and removed at its end. With --json, the first line holds both, and each further one
    a delivery with its body.

    Example: vettance webhooks listen --tenant ten_0190… --forward-to http://localhost:3000/hooks
    """
    from vettance.webhooks.receiver_address import AddressForbidden, read_target

    types = tuple(MessageType(name) for name in events) or tuple(MessageType)
    if forward_to is not None:
        try:
            read_target(forward_to, unsafe=True)
        except AddressForbidden as forbidden:
            fail(f"--forward-to {forbidden}")

    async def whole() -> None:
        async with open_store(data) as (store, settings):
            await find_tenant(store, tenant_id)
            with _bound(port) as listener:
                url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
                async with _subscribed(store, settings, tenant_id, url, types) as (made, secret):
                    _print_start(url, secret, forward_to, as_json=as_json)
                    for line in unheard(types, tuple(MessageType), forward_to):
                        click.echo(f"Not received here: {line}", err=True)
                    watching = asyncio.create_task(_watch(store, tenant_id, made))
                    try:
                        await _serve(listener, secret, forward_to, as_json=as_json)
                    finally:
                        watching.cancel()
                        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(whole())


def _bound(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # What comes before the server is up waits, and is not refused.
    except OSError as error:
        listener.close()
        fail(f"cannot listen on port {port}: {error.strerror or error}")
    return listener


def _print_start(url: str, secret: str, forward_to: str | None, *, as_json: bool) -> None:
    if as_json:
        click.echo(encode({"url": url, "signingSecret": secret, "forwardTo": forward_to}).decode())
    else:
        click.echo(f"Listening on {url}" + (f", forwarding to {forward_to}" if forward_to else ""), err=True)
        click.echo(f"Signing secret of this session: {secret}", err=True)
    click.echo("The server must run with VETTANCE_UNSAFE_WEBHOOKS=1. Ctrl-C ends.", err=True)


@contextlib.asynccontextmanager
async def _subscribed(
    store: Store, settings: Settings, tenant: str, url: str, types: tuple[MessageType, ...]
) -> AsyncIterator[tuple[str, str]]:
    """Subscribe a local address until the block ends; yields the subscription's id and its signing secret."""
    from vettance.tenants.vault import Vault
    from vettance.webhooks.secret_check import prove_secret

    if settings.environment is Environment.PRODUCTION:
        fail("a production server does not deliver to local addresses")
    vault = Vault(await prove_secret(store, settings))
    now_ms, secret = clock.now_ms(), make_secret()
    rows = await store.read(sql.select_subscriptions(tenant))
    made = Subscription(
        id=IdSource().make("whs", now_ms),
        tenant=tenant,
        slot=free_slot([sql.subscription_of(row).slot for row in rows]),
        url=url,
        event_types=types,
        created_at_ms=now_ms,
        updated_at_ms=now_ms,
    )
    sealed = sql.seal(vault, secret, tenant, made.id)
    change = note_change(sql.AREA, tenant, made.id, now_ms)
    await store.write(*sql.insert_subscription(made, sealed), change)
    try:
        yield made.id, secret
    finally:
        await store.write(*sql.delete_subscription(tenant, made.id), change)


async def _watch(store: Store, tenant: str, subscription_id: str) -> None:
    """Say what keeps deliveries from coming, once for each reason, for ever."""
    said: str | None = None
    while True:
        await asyncio.sleep(_WATCH_S)
        try:
            rows = await store.read(sql.select_subscription(tenant, subscription_id))
            _, oldest_at_ms = (await store.read(sql.select_backlog(tenant, subscription_id)))[0]
        except StoreDown as error:
            why: str | None = f"the store cannot be read ({error})"
        else:
            found = sql.subscription_of(rows[0]) if rows else None
            why = hindrance(found, oldest_at_ms, clock.now_ms())
        if why is not None and why != said:
            click.echo(f"Deliveries do not come: {why}.", err=True)
        said = why


class _ReceivedRequest(msgspec.Struct, frozen=True, rename="camel"):
    """One request that came in, as --json prints it; `status` is what it was answered with."""

    received_at: str
    status: int
    fault: str | None
    verified: bool = True
    event_type: str = "?"
    attempt: int | None = None
    delivery_id: str | None = None
    body: Any = None

    def line(self) -> str:
        """Say it to a person."""
        if not self.verified:
            return f"refused: {self.fault}"
        about = self.body.get("data", {})
        subject = about.get("id") or about.get("decisionId", "?")
        told = f"{time.strftime('%H:%M:%S')} {self.event_type} {subject} attempt {self.attempt}"
        return f"{told} -> {self.fault or self.status}"


async def _serve(listener: socket.socket, secret: str, forward_to: str | None, *, as_json: bool) -> None:
    import uvicorn

    from vettance.webhooks.http_client import WebhookClient

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    faults: list[OSError] = []

    def tell(received: _ReceivedRequest) -> None:
        try:
            click.echo(encode(received).decode() if as_json else received.line())
        except OSError as fault:  # Nobody reads any more, or what is written to is full.
            faults.append(fault)
            stopped.set()

    postman = WebhookClient(unsafe=True)
    config = uvicorn.Config(
        _receiver(postman, secret, forward_to, tell),
        lifespan="off",
        log_config=None,
        access_log=False,
        ws="none",
    )
    server = uvicorn.Server(config)
    # The signals are handled here, so that the subscription is removed before the process ends.
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await stopped.wait()
    server.should_exit = True
    await serving
    await postman.close()
    if faults:
        raise faults[0]


def _receiver(
    postman: WebhookClient, secret: str, forward_to: str | None, tell: Callable[[_ReceivedRequest], None]
) -> Any:
    """Return an ASGI application that verifies, prints and forwards what it gets."""

    async def receive_one(scope: Message, receive: Any, send: Any) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body") or len(body) > BODY_BYTES_MAX:
                break
        received = await _handle(postman, secret, forward_to, headers, body)
        tell(received)
        await send({"type": "http.response.start", "status": received.status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return receive_one


async def _handle(
    postman: WebhookClient, secret: str, forward_to: str | None, headers: dict[str, str], body: bytes
) -> _ReceivedRequest:
    """Verify a delivery and pass it on."""
    received_at = timestamp(clock.now_ms())
    try:
        verify(secret, headers, body, int(time.time()))
    except SignatureInvalid as unverified:
        return _ReceivedRequest(received_at, 401, str(unverified), verified=False)
    status, fault = 200, None
    attempt = headers.get("x-webhook-attempt", "")
    if forward_to is not None:
        passed = [
            (name, value)
            for name, value in headers.items()
            if name in _PASSED or name.startswith(_PASSED_PREFIXES)
        ]
        outcome = await postman.post(forward_to, passed, body)
        status = outcome.status or 502
        if not outcome.status and outcome.failure is not None:
            fault = outcome.failure.value
    return _ReceivedRequest(
        received_at,
        status,
        fault,
        event_type=headers.get("x-webhook-event-type", "?"),
        attempt=read_whole(attempt),
        delivery_id=headers.get("webhook-id"),
        body=decode(body),
    )


@webhooks.command("verify")
@click.option(
    "--secret",
    envvar="VETTANCE_WEBHOOK_SECRET",
    required=True,
    help="The signing secret (VETTANCE_WEBHOOK_SECRET keeps it out of the shell's history).",
)
@click.option(
    "--header", "headers", multiple=True, metavar='"NAME: VALUE"', help="A header as received; repeat."
)
@click.option("--any-time", is_flag=True, help="Take a delivery of any age.")
@click.argument("file", default="-", type=click.Path(allow_dash=True, dir_okay=False))
@json_option
def verify_command(secret: str, headers: tuple[str, ...], any_time: bool, file: str, as_json: bool) -> None:
    """Tell whether the body in FILE (or standard input) and its headers were signed with a secret.

    Example: vettance webhooks verify --header "X-Webhook-Signature: sha256=5d5d…" body.json
    """
    try:
        body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    received = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in headers)
    }
    stamp = received.get("webhook-timestamp", "")
    sent_s = read_whole(stamp) if any_time else None
    now_s = sent_s if sent_s is not None else int(time.time())
    try:
        verify(secret, received, body, now_s)
    except SignatureInvalid as unverified:
        fail(f"not verified: {unverified}")
    except ValueError:
        fail("the secret is not one of ours: whsec_ and base64")
    show({"verified": True}, "The signature holds.", as_json=as_json)
