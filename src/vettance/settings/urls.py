"""URLs by which the settings name what the service connects to, read strictly.

Each function returns the URL as it was given, or raises `ValueError` with what is wrong with it, in words
that go on from the name of the setting. They repeat nothing of the URL, which may hold a password.
"""

import re
import urllib.parse
from ipaddress import ip_address
from typing import Final, NamedTuple

from vettance.wire.numbers import read_whole

_PORT_MAX: Final = 65535
#: A path that is no number would be taken for database 0. Redis counts them in 32 bits.
_REDIS_NUMBER_MAX: Final = 2**31 - 1
_REDIS_PORT: Final = 6379
#: What names a cluster, and what each of its nodes is named by.
_CLUSTERS: Final = {"redis+cluster": "redis", "rediss+cluster": "rediss"}
#: Parts of a tenant's keys where the URL does not say: they fall evenly on 2, 3 or 6 shards.
_PARTS: Final = 6
_PARTS_MAX: Final = 64
#: An address with a port, that of IPv6 in brackets.
_NAME_SERVER: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?", re.ASCII)
_ESCAPES: Final = "in user and password write / as %2F, ? as %3F, # as %23 and @ as %40"


def read_database_url(text: str) -> str:
    """Read the URL of a PostgreSQL database, which must name host and database: drivers guess what lacks."""
    parts = _parts(text)
    if parts.scheme not in ("postgresql", "postgres"):
        raise ValueError("must be a URL that begins with postgresql://")
    options = dict(urllib.parse.parse_qsl(parts.query))
    hosts = parts.netloc.partition("@")[2] if "@" in parts.netloc else parts.netloc
    if not (hosts or options.get("host")):
        raise ValueError("must name a host, as in postgresql://db.internal/vettance")
    if not (parts.path.strip("/") or options.get("dbname") or options.get("database")):
        raise ValueError("must name a database, as in postgresql://db.internal/vettance")
    # Several hosts may be in one URL; a path among them is that of a socket.
    named = [*hosts.split(","), *options.get("host", "").split(",")]
    ports = [_port_of(host) for host in named if not host.startswith("/")]
    _check_ports([*ports, *options.get("port", "").split(",")])
    return text


def read_replica_url(text: str) -> str:
    """Read the URL of a replica, which is one: how far it is behind is known of that one only."""
    if len(hosts_apart(read_database_url(text))) > 1:
        raise ValueError("must name one host; several connections to several replicas would not agree")
    return text


def hosts_apart(url: str) -> list[str]:
    """Return the URLs of the hosts that the URL of a database names, each of which names one of them."""
    parts = urllib.parse.urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if hosts:
        return [parts._replace(netloc=f"{user}{at}{host}").geturl() for host in hosts.split(",")]
    options = dict(urllib.parse.parse_qsl(parts.query))
    if "," not in options.get("host", ""):
        return [url]
    named, ports = options.get("host", "").split(","), options.get("port", "").split(",")
    each = [(host, ports[number % len(ports)]) for number, host in enumerate(named)]
    apart = [{**options, "host": host, **({"port": port} if port else {})} for host, port in each]
    return [f"{parts.scheme}://{parts.path}?{urllib.parse.urlencode(one)}" for one in apart]


def host_of(url: str) -> str:
    """Name where the URL of a database with one host leads: host and port, or the folder of its socket."""
    parts = urllib.parse.urlsplit(url)
    options = dict(urllib.parse.parse_qsl(parts.query))
    host = parts.netloc.rpartition("@")[2] or options.get("host", "")
    if ":" in host.rpartition("]")[2] or host.startswith("/"):
        return host
    return f"{host or 'localhost'}:{options.get('port', '5432')}"


def read_redis_url(text: str) -> str:
    """Read the URL of a Redis: its host, or the path of its socket, and the number of a database."""
    parts = _parts(text)
    if is_cluster(text):
        read_cluster_url(text)
        return text
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise ValueError("must be a URL that begins with redis://, rediss://, redis+cluster:// or unix://")
    number = dict(urllib.parse.parse_qsl(parts.query)).get("db", "")
    if parts.scheme == "unix":
        if not parts.path.strip("/"):
            raise ValueError("must name a socket, as in unix:///run/redis.sock?db=0")
    else:
        host = parts.netloc.rpartition("@")[2]
        _check_ports([_port_of(host)])
        if not parts.hostname:
            raise ValueError("must name a host, as in redis://redis.internal:6379/0")
        number = number or parts.path
    if number.strip("/") and read_whole(number.removeprefix("/"), 0, _REDIS_NUMBER_MAX) is None:
        raise ValueError(f"must end with the number of a database, as in /0 ({_ESCAPES})")
    return text


class ClusterAddress(NamedTuple):
    """What the URL of a Redis Cluster says."""

    seeds: tuple[tuple[str, int], ...]  # nodes that are asked for the others
    before: str  # of the URL of any node: what is in front of its host
    behind: str  # and behind its port
    parts: int  # over how many parts the keys of one tenant are spread

    def url(self, host: str, port: int) -> str:
        """Return the URL of one node."""
        named = f"[{host}]" if ":" in host else host
        return f"{self.before}{named}:{port}{self.behind}"


def is_cluster(redis_url: str) -> bool:
    """Tell whether a URL names a cluster."""
    return redis_url.partition("://")[0] in _CLUSTERS


def read_cluster_url(text: str) -> ClusterAddress:
    """Read the URL of a Redis Cluster, `redis+cluster://user:password@host:port,host:port?parts=6`."""
    split = _parts(text)
    login, at, named = split.netloc.rpartition("@")
    hosts = named.split(",")
    _check_ports([_port_of(host) for host in hosts])
    nodes = [urllib.parse.urlsplit(f"//{host}") for host in hosts]
    if not all(node.hostname for node in nodes):
        raise ValueError("must name hosts, as in redis+cluster://redis-1:6379,redis-2:6379")
    if split.path.strip("/") not in ("", "0"):
        raise ValueError("must not end with the number of a database: a cluster has one")
    options = dict(urllib.parse.parse_qsl(split.query))
    parts = read_whole(options.pop("parts", str(_PARTS)), 1, _PARTS_MAX)
    if parts is None:
        raise ValueError(f"must say from 1 to {_PARTS_MAX} parts, as in ?parts={_PARTS}")
    seeds = tuple((node.hostname or "", node.port or _REDIS_PORT) for node in nodes)
    behind = f"/0?{urllib.parse.urlencode(options)}" if options else "/0"
    return ClusterAddress(seeds, f"{_CLUSTERS[split.scheme]}://{login}{at}", behind, parts)


def read_collector_url(text: str) -> str:
    """Read the URL of a collector of traces."""
    parts = _parts(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be a URL such as http://127.0.0.1:4318")
    _check_ports([_port_of(parts.netloc.rpartition("@")[2])])
    return text


def read_name_servers(text: str) -> str:
    """Check a list of name servers, addresses with commas between; returns it without spaces."""
    servers = [part.strip() for part in text.split(",")]
    for server in servers:
        parts = _NAME_SERVER.fullmatch(server)
        try:
            ip_address((parts[1] or parts[2]) if parts else server)
            _check_ports([(parts[3] if parts else None) or ""])
        except ValueError:
            raise ValueError(
                "must list IP addresses, each with or without a port, such as 10.0.0.53 or [fd00::53]:5353"
            ) from None
    return ",".join(servers)


def _parts(text: str) -> urllib.parse.SplitResult:
    if not text.isprintable():
        # Python's parser drops line breaks and tabs without a word; what is given on would still have them.
        raise ValueError("must hold no line breaks or other control characters")
    try:
        return urllib.parse.urlsplit(text)
    except ValueError:
        raise ValueError("is no URL") from None


def _port_of(host: str) -> str:
    return host.rpartition("]")[2].partition(":")[2]


def _check_ports(ports: list[str]) -> None:
    for port in ports:
        if port and read_whole(port, 1, _PORT_MAX) is None:
            raise ValueError(f"must name a port from 1 to {_PORT_MAX} ({_ESCAPES})")
