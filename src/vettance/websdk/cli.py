"""The command line of the browser's door: change the key that signs its tokens."""

import asyncio

import click

from vettance import clock
from vettance.commands import data_option, json_option, open_store, show
from vettance.tenants import sql as tenants_sql


@click.group()
def websdk() -> None:
    """Look after the browser SDK's tokens.

    Example: vettance websdk rotate
    """


@websdk.command("rotate")
@click.option(
    "--at-once", is_flag=True, help="Refuse tokens of the former keys now, instead of letting them expire."
)
@json_option
@data_option
def rotate(at_once: bool, as_json: bool, data: str | None) -> None:
    """Sign tokens with a new key from now on; a running server follows within seconds.

    Example: vettance websdk rotate --data ./vettance-data
    """
    from vettance.tenants.browser_token import FIRST_KID, GRACE_MS, new_kid
    from vettance.websdk import sql

    async def work() -> str:
        async with open_store(data) as (store, _settings):
            now_ms = clock.now_ms()
            statements = []
            if not await store.read(sql.select_token_keys()):
                statements.append(sql.insert_token_key(FIRST_KID, now_ms))
            kid = new_kid()
            statements += [
                sql.retire_token_keys(now_ms if at_once else now_ms + GRACE_MS),
                sql.insert_token_key(kid, now_ms),
                tenants_sql.note_change(sql.AREA, "all", kid, now_ms),
            ]
            await store.write(*statements)
            return kid

    kid = asyncio.run(work())
    show({"kid": kid}, f"Tokens are signed with the key {kid} from now on.", as_json=as_json)
