"""What the commands of both kinds of models share: asking for a training, lists and cards."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from vettance.commands import fail, show, show_table
from vettance.learning.steering_cli import work_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from vettance.db.engine import Store

_WAIT_S = 1_800.0
_LOOK_S = 0.5
_SHOWN = 12


class TrainedSetting(Protocol):
    """How models are made: whether another is asked for, and why the last training gave none."""

    @property
    def wanted(self) -> bool:
        """Whether a training is asked for."""
        ...

    @property
    def failure(self) -> str | None:
        """Why the last training gave no model."""
        ...


SomeSetting = TypeVar("SomeSetting", bound=TrainedSetting)


def request(
    data: str | None,
    tenant: str,
    ask: Callable[[Store], Awaitable[Any]],
    find: Callable[[Store, str], Awaitable[SomeSetting]],
    *,
    wait: bool,
) -> SomeSetting:
    """Ask for a training and return the setting, with `wait` that after it; a failure ends the command."""

    async def work(store: Store) -> SomeSetting:
        await ask(store)
        until_s = time.monotonic() + _WAIT_S
        while True:
            setting = await find(store, tenant)
            if not wait or not setting.wanted or time.monotonic() > until_s:
                return setting
            await asyncio.sleep(_LOOK_S)

    setting: SomeSetting = work_on(data, tenant, work)
    if wait and (setting.failure is not None or setting.wanted):
        fail(setting.failure or "no server trained within half an hour; does one run?")
    return setting


def show_models(
    found: Sequence[dict[str, Any]], said: str, *, failure: str | None = None, as_json: bool
) -> None:
    """Show a table of models below what is in service, or the models alone for scripts."""
    if as_json:
        show(list(found), "", as_json=True)
        return
    click.echo(said)
    if failure is not None:
        click.echo(f"The last training gave no model: {failure}.")
    show_table("Models", list(found), as_json=False)


def show_card(found: dict[str, Any], words: str, values: str, *, as_json: bool) -> None:
    """Show the card of a model: in words, its calibration, and which of its values tell most."""
    if as_json:
        show(found, "", as_json=True)
        return
    click.echo(f"Model {found['version']} ({found['state']}), {words}")
    show_table("Calibration", found["card"]["calibration"], as_json=False)
    show_table(values, found["card"]["gain"][:_SHOWN], as_json=False)
