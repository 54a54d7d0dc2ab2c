"""The client of the demo and of the load generators reads every answer that the service gives."""

import pytest

from vettance.demo.demo_client import read_answer

HEAD = b"HTTP/1.1 200 OK\r\nx-request-id: 1\r\n"
WITH_LENGTH = HEAD + b"content-length: 5\r\n\r\nhello"
IN_CHUNKS = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;more=1\r\nlo\r\n0\r\n\r\n"


@pytest.mark.parametrize("whole", [WITH_LENGTH, IN_CHUNKS, HEAD + b"Content-Length: 5\r\n\r\nhello"])
def test_an_answer_is_read_once_all_of_it_is_there(whole: bytes) -> None:
    for end in range(len(whole)):
        assert read_answer(whole[:end]) is None
    answer = read_answer(whole)
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"hello")


def test_an_answer_without_a_body_ends_with_its_head() -> None:
    answer = read_answer(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert answer is not None
    assert (answer.status, answer.body) == (204, b"")


def test_what_is_no_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        read_answer(HEAD + b"transfer-encoding: chunked\r\n\r\nhello\r\n")
