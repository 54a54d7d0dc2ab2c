"""Probe: try what a server will need of its machine and only the machine can tell, before it starts."""

import asyncio

from vettance.decisions.network import FileUnreadable, open_records
from vettance.ops.metrics_server import try_address
from vettance.settings.settings import Settings, SettingsError
from vettance.settings.urls import is_cluster


def probe_addresses(settings: Settings) -> None:
    """Open the files of addresses that the settings name. Raises `SettingsError`."""
    for variable, path in (
        ("VETTANCE_GEOIP_COUNTRY", settings.geoip_country),
        ("VETTANCE_GEOIP_ASN", settings.geoip_asn),
    ):
        if path is None:
            continue
        try:
            open_records(path)
        except FileUnreadable as fault:
            raise SettingsError(f"{variable}: {fault}") from None


def probe_listening(settings: Settings, api: tuple[str, int] | None) -> None:
    """Listen for a moment where the metrics and the console will answer. Raises `SettingsError`.

    None of them is where another one of them will answer, or the API: nobody listens there yet.
    """
    taken = [] if api is None else [("the API", api)]
    for variable, address in (
        ("VETTANCE_METRICS", settings.metrics),
        ("VETTANCE_CONSOLE", settings.console_address),
    ):
        if address is None:
            continue
        host, port = address
        for other, there in taken:
            if _meet(address, there):
                raise SettingsError(
                    f"{variable}: cannot listen on {host}:{port}: {other} does; name another port"
                )
        taken.append((variable, address))
        try:
            asyncio.run(try_address(host, port))
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"{variable}: cannot listen on {host}:{port}: {reason}") from None


def _meet(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Tell whether two addresses of this machine are one; port 0 takes a free one."""
    hosts = {"127.0.0.1" if host == "localhost" else host for host, _ in (one, other)}
    return one[1] == other[1] != 0 and (len(hosts) == 1 or not hosts.isdisjoint(("0.0.0.0", "::")))  # noqa: S104


def probe_redis(settings: Settings) -> None:
    """Check that a Redis which answers can serve; wait for one that does not. Raises `SettingsError`."""
    if settings.redis is None:
        return
    from vettance.redis_link.cluster_connection import try_cluster
    from vettance.redis_link.redis_connection import (  # redis-py is loaded only for those who ask for it.
        Unfit,
        try_line,
    )

    try:
        if is_cluster(settings.redis):
            asyncio.run(try_cluster(settings.redis))
        else:
            asyncio.run(try_line(settings.redis))
    except Unfit as unfit:
        raise SettingsError(f"VETTANCE_REDIS_URL: {unfit}. {unfit.mend}") from None
