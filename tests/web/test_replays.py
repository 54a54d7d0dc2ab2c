"""How the edge treats an `Idempotency-Key`, with a memory of answers that keeps the promise of `Replays`."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from tests.web.raw_client import RawClient
from tests.web.sample_service import Notebook, serving
from vettance.web.response import Response
from vettance.web.routing import Call

NOTES = "/api/v1/notes"


class AnswerMemory:
    """Keeps answers by tenant, path and key; simultaneous calls share one future."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, bytes, str], asyncio.Future[Response]] = {}

    async def answer(self, call: Call, raw_path: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
        place = (call.tenant.id, raw_path, call.idempotency_key)
        while (known := self.kept.get(place)) is not None:
            answer = await asyncio.shield(known)
            if answer is not None:
                return answer
        mine = self.kept[place] = asyncio.get_running_loop().create_future()
        answer = None
        try:
            answer = await work()
            return answer
        finally:
            if answer is None or answer.status >= 500:
                del self.kept[place]
                mine.set_result(None)
            else:
                mine.set_result(answer)


@pytest.fixture(scope="module")
def replaying():
    notebook = Notebook(replays=AnswerMemory())
    with serving(notebook.edge) as port:
        yield notebook, port


@pytest.fixture
def caller(replaying):
    client = RawClient(replaying[1], replaying[0].new_key())
    yield client
    client.close()


def add(client: RawClient, key: str | bytes, body: object = None, path: str = NOTES):
    return client.ask("POST", path, body or {"text": "hi"}, headers=[("idempotency-key", key)])


def test_a_repeated_key_has_one_effect_and_one_answer(caller):
    first, second = add(caller, "k"), add(caller, "k")
    assert (first.status, first.content) == (second.status, second.content)
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert caller.ask("GET", NOTES).json["total"] == 1


def test_a_replay_does_not_look_at_the_new_body(caller):
    first = add(caller, "k")
    assert add(caller, "k", b"not json").content == first.content
    assert add(caller, "k", {"text": "other"}).content == first.content


def test_keys_of_other_tenants_and_other_keys_are_others(caller, replaying):
    stranger = RawClient(replaying[1], replaying[0].new_key())
    answers = {add(caller, "k").content, add(caller, "l").content, add(stranger, "k").content}
    assert len(answers) == 3
    stranger.close()


def test_a_refusal_is_replayed_too(caller):
    first = add(caller, "k", {"text": ""})
    assert first.status == 400
    assert add(caller, "k", {"text": "good"}).content == first.content


@pytest.mark.parametrize("key", ["", "x" * 256, b"\xc3\xa9", "a\tb"])
def test_a_key_that_cannot_be_kept_is_refused(caller, key):
    answer = add(caller, key)
    assert answer.status == 400
    assert list(answer.error["details"]) == ["Idempotency-Key"]


def test_a_key_of_255_printable_characters_is_taken(caller):
    assert add(caller, "~" * 255).status == 201


def test_a_replay_stands_behind_the_limits(replaying):
    client = RawClient(replaying[1], replaying[0].new_key(quota=1))
    assert add(client, "k").status == 201
    assert add(client, "k").status == 429
    client.close()


def test_of_simultaneous_requests_one_takes_effect_and_all_answer_alike(replaying):
    notebook, port = replaying
    key = notebook.new_key()
    answers = []

    def ask() -> None:
        client = RawClient(port, key)
        answers.append(add(client, "same").content)
        client.close()

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 12
    assert len(set(answers)) == 1


def test_a_client_that_left_in_mid_body_stored_nothing(caller):
    headers = [("content-type", "application/json"), ("content-length", "99"), ("idempotency-key", "k")]
    caller.send(caller.head("POST", NOTES, headers, with_key=True) + b"{")
    caller.close()
    assert add(caller, "k").status == 201


def test_a_route_that_honours_no_key_ignores_it(caller):
    for key in ("k", "k", "x" * 300):
        answer = caller.ask("POST", f"{NOTES}/by-text/a", headers=[("idempotency-key", key)])
        assert answer.status == 201
    assert caller.ask("GET", NOTES).json["total"] == 3


def test_without_a_memory_the_key_is_checked_and_the_work_is_done(client):
    assert add(client, "k").status == 201
    assert add(client, "").status == 400
