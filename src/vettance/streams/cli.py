"""The command line of streams: consume."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from vettance.commands import counted, counted_word, data_option, fail, find_tenant, open_store
from vettance.jobs.sql import JobKind
from vettance.option_types import Whole
from vettance.streams.stream_address import StreamAddress, consumer_name, read_stream_address
from vettance.streams.stream_message import IdRule, read_id_rule
from vettance.wire.payload import encode

if TYPE_CHECKING:
    from vettance.streams.consume import StreamRun

#: How often progress is printed.
_TELL_S: Final = 1.0
_TELL_PEOPLE_S: Final = 10.0
_BATCH: Final = 500
_WAITING_MAX: Final = 10_000

_KINDS: Final = {"events": JobKind.FRAUD, "aml": JobKind.AML}


def _address(_context: click.Context, _option: click.Parameter, value: str | None) -> StreamAddress | None:
    try:
        return None if value is None else read_stream_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _id_rule(_context: click.Context, _option: click.Parameter, value: str | None) -> IdRule:
    try:
        return read_id_rule(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _url_option(name: str, field: str, help_text: str, *, required: bool = False) -> Callable[[Any], Any]:
    variable = f"VETTANCE_CONSUME_{name.upper()}"
    return click.option(
        f"--{name}",
        field,
        callback=_address,
        envvar=variable,
        metavar="URL",
        required=required,
        help=f"{help_text} ({variable}, which keeps a password out of the list of processes).",
    )


@click.command("consume")
@_url_option("from", "source", "Where events come from", required=True)
@click.option("--tenant", required=True, metavar="ID", help="Whose events.")
@click.option("--kind", type=click.Choice(list(_KINDS)), default="events", help="Which events they are.")
@click.option(
    "--id",
    "rule",
    callback=_id_rule,
    metavar="WHERE",
    help="Where the id of a message stands: member:PATH, header:NAME or key. Left out, it is the message id "
    "of its producer, with AML externalEventId.",
)
@click.option("--name", help="What this consumer is called; by its stream if left out.")
@_url_option("to", "to", "Where decisions go")
@_url_option("dead", "dead", "Where messages go that cannot be decided, with the reason")
@click.option("--batch", type=Whole(1, 5_000), default=_BATCH, help="Messages fetched at a time.")
@click.option(
    "--waiting-max",
    type=Whole(1, 100_000),
    default=_WAITING_MAX,
    help="Events that may wait for their decisions before no more are fetched.",
)
@click.option("--drain", is_flag=True, help="End when nothing more comes and all is decided and sent.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on each line.")
@data_option
def consume(
    source: StreamAddress,
    tenant: str,
    kind: str,
    rule: IdRule,
    name: str | None,
    to: StreamAddress | None,
    dead: StreamAddress | None,
    batch: int,
    waiting_max: int,
    drain: bool,
    as_json: bool,
    data: str | None,
) -> None:
    """Take events from a stream: nats://HOST/STREAM, amqp://HOST/QUEUE or kafka://HOSTS/TOPIC.

    Each is decided once by its id, by the running service, which shares the store. A message is confirmed to
    its broker when it is in the store, so nothing is lost or doubled whichever side is killed. Messages that
    are no events are kept with the reason. Ends cleanly on SIGTERM. Needs pip install 'vettance[streams]'.

    Example: vettance consume --from nats://127.0.0.1:4222/EVENTS --tenant ten_0190…
    """
    from vettance.streams.broker import BrokerDown
    from vettance.streams.connect_broker import MissingClient, sink_of, source_of
    from vettance.streams.consume import ConsumeLimits, StreamRun
    from vettance.streams.take_messages import StreamConsumer

    try:
        called = consumer_name(name, source)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--name") from None
    consumer = StreamConsumer(
        tenant, called, _KINDS[kind], rule, results_due=to is not None or dead is not None
    )
    limits = ConsumeLimits(batch, max(batch, waiting_max))

    async def work() -> StreamRun:
        async with open_store(data) as (store, _settings):
            owner = await find_tenant(store, tenant)
            if consumer.kind is JobKind.AML and not owner.aml:
                on = f"vettance tenant set {tenant} --aml on"
                fail(f"these are events of AML, which this tenant does not have; `{on}` turns it on")
            ends = source_of(source, called, batch)
            sinks = tuple(None if one is None else sink_of(one) for one in (to, dead))
            run = StreamRun(store, consumer, ends, (sinks[0], sinks[1]), limits, drain=drain)
            await _run(run, as_json=as_json, shown=source.shown)
            return run

    try:
        run = asyncio.run(work())
    except MissingClient as missing:
        fail(str(missing))
    except BrokerDown as down:
        fail(f"{source.shown}: {down}")
    if run.tenant_gone:
        fail(f"tenant {tenant} is deleted; what was not taken stays with the broker")


async def _run(run: StreamRun, *, as_json: bool, shown: str) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, run.stop)
    if not as_json:
        click.echo(f"Consuming {shown}.", err=True)
    telling = asyncio.create_task(_tell(run, as_json=as_json))
    try:
        await run.run()
    finally:
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await telling
    click.echo(_line(run, 0.0, as_json=as_json), err=not as_json)


async def _tell(run: StreamRun, *, as_json: bool) -> None:
    taken, at_s = 0, time.monotonic()
    told = ""
    while True:
        await asyncio.sleep(_TELL_S if as_json else _TELL_PEOPLE_S)
        now_taken, now_s = sum(run.counts[:3]), time.monotonic()
        line = _line(run, (now_taken - taken) / (now_s - at_s), as_json=as_json)
        taken, at_s = now_taken, now_s
        if as_json or line != told:
            click.echo(line, err=not as_json)
            told = line


def _line(run: StreamRun, rate: float, *, as_json: bool) -> str:
    counts = run.counts
    if as_json:
        return encode(
            {
                "accepted": counts.accepted,
                "repeated": counts.repeated,
                "refused": counts.refused,
                "resultsSent": counts.results_sent,
                "deadLettersSent": counts.dead_letters_sent,
                "waiting": run.waiting,
                "perSecond": round(rate, 1),
                "hindrances": run.hindrances,
            }
        ).decode()
    words = [
        f"{counted(counts.accepted, 'event')} taken ({rate:,.0f}/s)",
        f"{counts.repeated:,} came again",
        f"{counts.refused:,} refused",
        f"{counted_word(counts.results_sent, 'result')} sent",
        f"{counted_word(counts.dead_letters_sent, 'dead letter')} sent",
        f"{run.waiting:,} waiting",
        *(f"{what}: {why}" for what, why in run.hindrances.items()),
    ]
    return ", ".join(words) + "."
