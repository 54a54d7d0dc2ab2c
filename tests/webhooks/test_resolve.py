"""A name is found for who wants it, and a name server that is silent holds up no other name."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.webhooks.names import NameServer, name_server
from tests.webhooks.receivers import receiving
from vettance.webhooks import resolve
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.resolve import ResolutionFailure, Resolver
from vettance.webhooks.webhook import AttemptFailure


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    with name_server() as server:
        yield server


@pytest.fixture
async def resolver(server: NameServer) -> AsyncIterator[Resolver]:
    made = Resolver([server.address])
    yield made
    await made.close()


async def test_seven_hundred_names_that_nobody_answers_for_hold_up_no_other(resolver: Resolver) -> None:
    silent = [asyncio.create_task(resolver.find(f"silent-{n}.example.com", 443)) for n in range(700)]
    await asyncio.sleep(0.05)
    for number in range(20):
        assert await resolver.find(f"fine-{number}.example.com", 443)
    assert not any(one.done() for one in silent)
    for one in silent:
        one.cancel()
    await asyncio.gather(*silent, return_exceptions=True)


async def test_a_name_is_asked_for_once_by_all_who_want_it_and_then_known(
    server: NameServer, resolver: Resolver
) -> None:
    found = await asyncio.gather(*(resolver.find("one.example.com", port) for port in range(443, 463)))
    assert [one[0][1] for one in found] == [("127.0.0.1", port) for port in range(443, 463)]
    await resolver.find("one.example.com", 443)
    assert server.asked["one.example.com"] == 1


async def test_who_gives_up_takes_the_answer_from_nobody_else(resolver: Resolver) -> None:
    first = asyncio.create_task(resolver.find("one.example.com", 443))
    other = asyncio.create_task(resolver.find("one.example.com", 443))
    await asyncio.sleep(0)
    first.cancel()
    assert await other


@pytest.mark.parametrize("name", ["missing.example.com", "silent.example.com"])
async def test_a_failure_is_remembered_for_some_seconds_and_then_asked_for_anew(
    server: NameServer, resolver: Resolver, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "RESOLVE_S_MAX", 0.2)
    monkeypatch.setattr(resolve, "FAILED_S", 0.3)
    for _ in range(3):
        with pytest.raises(ResolutionFailure):
            await resolver.find(name, 443)
    asked = server.asked[name]
    await asyncio.sleep(0.31)
    with pytest.raises(ResolutionFailure):
        await resolver.find(name, 443)
    assert server.asked[name] > asked > 0


async def test_the_file_of_hosts_is_heeded_and_a_literal_address_asks_nobody(
    server: NameServer, resolver: Resolver
) -> None:
    assert ("127.0.0.1", 80) in [address for _, address in await resolver.find("localhost", 80)]
    assert [address for _, address in await resolver.find("192.0.2.7", 80)] == [("192.0.2.7", 80)]
    assert [address for _, address in await resolver.find("2001:db8::7", 80)] == [("2001:db8::7", 80)]
    assert not server.asked


async def test_an_attempt_says_that_the_name_was_not_found_and_not_that_the_receiver_timed_out(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "RESOLVE_S_MAX", 0.3)
    postman = WebhookClient(unsafe=True, name_servers=[server.address])
    outcome = await postman.post("http://silent.example.com/", (), b"{}", attempt_s_max=0.1)
    assert (outcome.status, outcome.failure) == (0, AttemptFailure.DNS)
    await postman.close()


async def test_the_time_that_a_name_takes_is_not_the_receivers(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name server answers late; the receiver has its whole time from then on."""
    answer, late = server.answer, []

    def answer_late() -> None:
        asyncio.get_running_loop().remove_reader(server.socket)
        late.append(asyncio.get_running_loop().call_later(0.6, answer))

    asyncio.get_running_loop().add_reader(server.socket, answer_late)
    async with receiving(lambda _n, _r: 0.3) as receiver:
        postman = WebhookClient(unsafe=True, name_servers=[server.address])
        url = f"http://late.example.com:{receiver.port}/"
        started = time.monotonic()
        outcome = await postman.post(url, (), b"{}", attempt_s_max=0.5)
        assert (outcome.status, outcome.failure) == (200, None)
        assert time.monotonic() - started > 0.6
        await postman.close()
