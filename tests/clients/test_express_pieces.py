"""What the piece for Express is made of, asked in Node: addresses, settings, deliveries, the script."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from tests.clients.framework_shops import PYTHON
from tests.clients.three_clients import TYPESCRIPT

DIST = TYPESCRIPT / "dist"
pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (DIST / "express.js").exists(),
    reason="the TypeScript client is not built: `make typescript` (needs Node 20 with npm)",
)
INSIDE = ["10.0.0.0/8", "::1"]


def ask_node(code: str) -> Any:
    """Run a module that prints one value as JSON."""
    head = f"""
import {{ Risk, MemoryDeliveries }} from "{DIST}/express.js";
import {{ Proxies }} from "{DIST}/clientAddress.js";
import {{ START_SCRIPT }} from "{DIST}/startScript.js";
const say = (value) => console.log(JSON.stringify(value));
"""
    done = subprocess.run(
        ["node", "--input-type=module", "-e", head + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


CASES = [
    ("203.0.113.9", "", [], "203.0.113.9"),
    ("203.0.113.9", "198.51.100.1", INSIDE, "203.0.113.9"),
    ("10.0.0.1", "203.0.113.9", INSIDE, "203.0.113.9"),
    ("10.0.0.1", "198.51.100.1, 203.0.113.9", INSIDE, "203.0.113.9"),
    ("10.0.0.1", "198.51.100.1,203.0.113.9, 10.2.3.4", INSIDE, "203.0.113.9"),
    ("10.0.0.1", "10.9.9.9, 10.2.3.4", INSIDE, "10.9.9.9"),
    ("10.0.0.1", "", INSIDE, None),
    ("10.0.0.1", "unknown", INSIDE, None),
    ("10.0.0.1", "garbage, 203.0.113.9", INSIDE, "203.0.113.9"),
    ("10.0.0.1", "203.0.113.9:4711", INSIDE, "203.0.113.9"),
    ("10.0.0.1", "[2001:db8::1]:4711", INSIDE, "2001:db8::1"),
    ("::ffff:10.0.0.1", "::ffff:203.0.113.9", INSIDE, "203.0.113.9"),
    ("", "203.0.113.9", INSIDE, None),
    ("", "203.0.113.9", ["unix"], "203.0.113.9"),
    (None, "203.0.113.9, 10.0.0.1", ["unix", *INSIDE], "203.0.113.9"),
]


def test_the_address_of_a_client_is_that_of_the_python_client() -> None:
    asked = json.dumps([case[:3] for case in CASES])
    code = f"""const found = ([peer, said, proxies]) =>
      new Proxies(proxies).clientAddress(peer ?? undefined, said) ?? null;
    say({asked}.map(found))"""
    assert ask_node(code) == [case[3] for case in CASES]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"baseUrl": "risk.example.com"}, "baseUrl"),
        ({"apiKey": ""}, "apiKey"),
        ({"origin": "https://shop.example.com/shop"}, "origin"),
        ({"onUnavailable": "allow"}, "onUnavailable"),
        ({"deadlineMs": 0}, "deadlineMs"),
        ({"consent": "yes"}, "consent"),
        ({"proxies": ["10.0.0.300"]}, "proxies"),
        ({"proxies": ["10.0.0.0/99"]}, "proxies"),
        ({"sdkIntegrity": "sha384-x"}, "sdkVersion"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, Any], named: str) -> None:
    settings = json.dumps({"baseUrl": "https://risk.example.com", "apiKey": "key", **wrong})
    said = ask_node(f"try {{ new Risk({settings}); say('') }} catch (error) {{ say(`${{error}}`) }}")
    assert said.startswith("TypeError")
    assert named in said


def test_the_script_of_pages_is_that_of_the_python_client() -> None:
    assert ask_node("say(START_SCRIPT)") == (PYTHON / "src/vettance_client/web/start.js").read_text("utf-8")


def test_a_delivery_is_handled_once_and_again_when_its_process_died() -> None:
    assert ask_node("""
let now = 0;
const kept = new MemoryDeliveries(() => now);
const said = [kept.claim("a"), kept.claim("a")];
now += 21;
said.push(kept.claim("a"));
kept.release("a");
said.push(kept.claim("a"));
kept.finish("a");
now += 1000;
said.push(kept.claim("a"));
say(said)""") == ["new", "busy", "new", "new", "done"]


def test_tags_are_escaped_and_have_a_nonce_and_an_integrity_if_wanted() -> None:
    tags = ask_node("""say(new Risk({ baseUrl: "https://r.example",
      apiKey: "vtc_key", browserUrl: 'https://r/"><x',
      sdkVersion: "1.0.0", sdkIntegrity: "sha384-x",
      prefix: "/shop/vettance/" }).scripts({ nonce: 'n"' }))""")
    assert "<x" not in tags
    assert len(re.findall('nonce="n&#34;"', tags)) == 2
    assert 'integrity="sha384-x"' in tags
    assert "/sdk/v1/1.0.0/vettance-core.js" in tags
    assert 'src="/shop/vettance/start.js"' in tags
    assert "vtc_key" not in tags


@pytest.mark.parametrize(("parsed", "status"), [(True, 500), (False, 401)])
def test_a_webhook_whose_raw_body_is_gone_says_what_to_do(parsed: bool, status: int) -> None:
    said = ask_node(f"""
import {{ createServer }} from "node:http";
const settings = {{ baseUrl: "https://r.example", apiKey: "k", webhookSecret: "whsec_QUFB" }};
const risk = new Risk({{ ...settings, onWebhook() {{}} }});
console.warn = () => {{}};
let error = "";
const server = createServer(async (req, res) => {{
  if ({json.dumps(parsed)}) for await (const _ of req);
  risk.routes()(req, res, (failed) => {{ error = `${{failed}}`; res.writeHead(500).end(); }});
}}).listen(0, async () => {{
  const where = `http://127.0.0.1:${{server.address().port}}/vettance/webhook`;
  const answer = await fetch(where, {{ method: "POST", body: "{{}}" }});
  say([answer.status, error]);
  server.close();
}});""")
    assert said[0] == status
    assert ("before express.json()" in said[1]) is parsed


def test_a_review_reaches_the_handler_only_where_it_may_pass() -> None:
    said = ask_node("""
const answer = (decision) => async () => Response.json({ decision, riskScore: 1, reasonCodes: [] });
const said = [];
for (const decision of ["approve", "review", "deny"]) for (const review of ["step_up", "pass"]) {
  globalThis.fetch = answer(decision);
  const risk = new Risk({ baseUrl: "https://r.example", apiKey: "k" });
  const request = { headers: {}, socket: { remoteAddress: "203.0.113.9" } };
  const response = {};
  const payment = risk.protectPayment(() => ({ amount: 1, currency: "EUR" }), { review });
  await new Promise((next) => payment(request, response, (error) =>
     next(said.push(error?.name ?? response.locals.decision.decision))));
}
say(said)""")
    assert said == ["approve", "approve", "StepUpNeeded", "review", "Denied", "Denied"]
