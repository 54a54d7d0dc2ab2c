"""Signatures, the retry policy, and the verifiers that the public uses."""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from tests.webhooks.office import Office
from tests.webhooks.receivers import Received, receiving
from vettance.webhooks.retry_policy import RetryPolicy
from vettance.webhooks.webhook import (
    SignatureInvalid,
    free_slot,
    make_secret,
    plain_signature,
    signed_headers,
    verify,
)
from vettance.wire.payload import encode

NOW_S = 1_780_000_000


def lower(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}


def test_the_plain_signature_is_that_of_any_hmac_tool() -> None:
    # printf '{"a":1}' | openssl dgst -sha256 -hmac 'whsec_c2VjcmV0'
    done = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", "whsec_c2VjcmV0"],
        input=b'{"a":1}',
        capture_output=True,
        check=True,
    )
    assert plain_signature("whsec_c2VjcmV0", b'{"a":1}') == "sha256=" + done.stdout.split()[-1].decode()


@given(st.binary(max_size=300), st.integers(1, 6), st.integers(0, 2**33))
def test_what_is_signed_verifies_and_anything_else_does_not(body: bytes, attempt: int, now_s: int) -> None:
    secret, other = make_secret(), make_secret()
    headers = lower(signed_headers("X", "dlv_1", attempt, now_s, body, [secret, other]))
    verify(secret, headers, body, now_s)
    verify(other, {n: v for n, v in headers.items() if n != "x-webhook-signature"}, body, now_s)
    for broken in (
        {**headers, "webhook-id": "dlv_2"},
        {**headers, "webhook-timestamp": str(now_s + 1)},
        {**headers, "webhook-timestamp": "soon"},
        {**headers, "x-webhook-signature": headers["x-webhook-signature"][:-1]},
        {**headers, "webhook-signature": "v1,AAAA"},
        {},
    ):
        with pytest.raises(SignatureInvalid):
            verify(secret, broken, body, now_s)
    for late_s in (-301, 301):
        with pytest.raises(SignatureInvalid):
            verify(secret, headers, body, now_s + late_s)
    with pytest.raises(SignatureInvalid):
        verify(secret, headers, body + b" ", now_s)
    with pytest.raises(SignatureInvalid):
        verify(make_secret(), headers, body, now_s)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()).map(encode))
def test_the_public_python_verifier_accepts_it(body: bytes) -> None:
    secret, now_s = make_secret(), int(time.time())
    headers = lower(signed_headers("X", "dlv_1", 1, now_s, body, [secret]))
    Webhook(secret).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(make_secret()).verify(body, headers)


VERIFIER = """
const fs = require("fs");
const received = JSON.parse(fs.readFileSync(0, "utf8"));
const body = Buffer.from(received.body, "base64").toString("utf8");
for (const name of ["standardwebhooks", "svix"]) {
  const { Webhook } = require(name);
  for (const secret of received.secrets) new Webhook(secret).verify(body, received.headers);
  let refused = false;
  try { new Webhook(received.secrets[0]).verify(body + " ", received.headers); } catch { refused = true; }
  if (!refused) throw new Error(name + " took a changed body");
  console.log(name, "accepts it");
}
"""


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public verifiers for Node.js, from npm. Without them this fails, it does not pass silently."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("npm is not installed, so that the public verifiers for Node.js cannot be asked")
    folder = tmp_path_factory.mktemp("npm")
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--silent", "standardwebhooks@1", "svix@1"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    if done.returncode:
        pytest.fail("npm cannot fetch standardwebhooks and svix:\n" + done.stderr)
    return folder


@pytest.mark.slow
async def test_public_verifiers_accept_a_delivery_as_it_arrives(office: Office, node_modules: Path) -> None:
    async with receiving() as receiver:
        made = await office.subscribe(receiver.url)
        office.begin()
        await office.tell('{"id":"lst_1","reason":"Größe ✓ 漢字"}'.encode())
        (received,) = await receiver.wait_for(1)
    secret = office.secrets[made.id]
    Webhook(secret).verify(received.body, received.headers)
    answer = _ask_node(node_modules, received, secret)
    assert answer.split("\n")[:2] == ["standardwebhooks accepts it", "svix accepts it"]


def _ask_node(folder: Path, received: Received, *secrets: str) -> str:
    question = {
        "headers": received.headers,
        "body": base64.b64encode(received.body).decode(),
        "secrets": secrets,
    }
    done = subprocess.run(
        ["node", "-e", VERIFIER],
        cwd=folder,
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "NODE_PATH": str(folder / "node_modules")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_retries_come_1_2_4_8_16_seconds_after_the_end_and_then_no_more() -> None:
    policy = RetryPolicy()
    dues = [policy.due_at_ms(attempts, 1_000_000) for attempts in range(1, 7)]
    assert dues == [1_001_000, 1_002_000, 1_004_000, 1_008_000, 1_016_000, None]
    assert policy.attempts_max == 6


def test_slots_are_four_digits_and_reused_once_free() -> None:
    assert free_slot([]) == "0000"
    assert free_slot(["0000", "0002"]) == "0001"
    with pytest.raises(LookupError):
        free_slot([f"{number:04x}" for number in range(0x10000)])
