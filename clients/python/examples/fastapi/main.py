"""A small shop in FastAPI: a login, a payment, a webhook, and the browser SDK in its page.

`uvicorn main:app`. People and orders are in memory; a real shop has a database, and its own second factor.
"""

import hashlib
import os
import secrets
from typing import Annotated, Any

from fastapi import FastAPI, Form, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from vettance_client import WebhookEvent
from vettance_client.fastapi import Denied, Risk

TRIES_MAX = 5
SALT = secrets.token_bytes(16)


def digest_of(password: str) -> bytes:
    """Return what is kept of a password."""
    return hashlib.scrypt(password.encode(), salt=SALT, n=2**12, r=8, p=1)


#: E-mail → digest of the password: `anna@example.com=secret,…` in `SHOP_PEOPLE`.
PEOPLE = {
    email: digest_of(password)
    for email, _, password in (
        one.partition("=") for one in os.environ.get("SHOP_PEOPLE", "").split(",") if one
    )
}
#: Session → who is signed in, or whose login waits for a code.
SESSIONS: dict[str, dict[str, Any]] = {}
ORDERS: list[dict[str, Any]] = []


def signed_in(request: Request) -> str | None:
    """Return who is signed in."""
    return SESSIONS.get(request.cookies.get("session", ""), {}).get("email")


RISK = os.environ.get("VETTANCE_URL", "http://127.0.0.1:8080")
risk = Risk(
    RISK,
    os.environ["VETTANCE_KEY"],
    origin=os.environ.get("SHOP_ORIGIN", "http://127.0.0.1:8000"),
    webhook_secret=os.environ.get("VETTANCE_WEBHOOK_SECRET"),
    deadline_ms=float(os.environ.get("SHOP_DEADLINE_MS", "250")),
    on_unavailable=os.environ.get("SHOP_ON_UNAVAILABLE", "review"),  # type: ignore[arg-type]
    proxies=os.environ.get("SHOP_PROXIES", "").split(),
    consent="given",  # A shop with a banner leaves "asked".
    customer_of=signed_in,
)
app = FastAPI()
app.include_router(risk.router)

POLICY = (
    f"default-src 'self'; script-src 'self' {RISK}; connect-src 'self' {RISK}; "
    "img-src 'self' data:; require-trusted-types-for 'script'"
)
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title>
<link rel="icon" href="data:,">{scripts}</head><body>
<form method="post" action="login" data-vettance>
<input name="email" type="email"> <input name="password" type="password">
<button id="go">Sign in</button></form></body></html>"""


@app.get("/", response_class=HTMLResponse)
async def home(request: Request) -> HTMLResponse:
    """Show the form, with the SDK behind it."""
    page = PAGE.format(scripts=risk.scripts(request))
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


@app.post("/login")
async def log_in(
    request: Request, email: Annotated[str, Form()], password: Annotated[str, Form()]
) -> Response:
    """Sign in at once, after a code, or not at all."""
    known = PEOPLE.get(email)
    if not secrets.compare_digest(digest_of(password), known or b""):
        customer = email if known else None
        # Wrong passwords are reported too: guessing is seen by them. The answer is the same in any case.
        await risk.login(request, customer, outcome="failure", email=email, on_unavailable="deny")
        raise HTTPException(401, "wrong e-mail or password")
    decision = await risk.login(request, email, email=email)
    if decision.denied:  # It reads like a wrong password, so that nobody learns that it was right.
        raise HTTPException(401, "wrong e-mail or password")
    name = secrets.token_urlsafe(24)
    response: Response = RedirectResponse("orders", 303)
    if decision.approved:
        SESSIONS[name] = {"email": email}
    else:
        code = f"{secrets.randbelow(10**6):06}"
        SESSIONS[name] = {"waits": email, "code": code, "tries": 0}
        print(f"mail to {email}: code {code}", flush=True)  # noqa: T201
        response = Response('{"code": "step_up_needed"}', 202, media_type="application/json")
    response.set_cookie("session", name, httponly=True, samesite="lax", secure=risk.shop.is_https)
    return response


@app.post("/second-factor")
async def second_factor(request: Request, code: Annotated[str, Form()]) -> Response:
    """Finish the login that waits for a code."""
    session = SESSIONS.get(request.cookies.get("session", ""), {})
    waits = session.get("waits")
    if waits is None or session["tries"] >= TRIES_MAX:
        raise HTTPException(403, "no login waits for a code")
    session["tries"] += 1
    if not secrets.compare_digest(code.encode(), session["code"].encode()):
        raise HTTPException(403, "that is not the code")
    del SESSIONS[request.cookies["session"]]
    name = secrets.token_urlsafe(24)
    SESSIONS[name] = {"email": waits}
    response = RedirectResponse("orders", 303)
    response.set_cookie("session", name, httponly=True, samesite="lax", secure=risk.shop.is_https)
    return response


@app.post("/pay")
async def pay(request: Request, amount: Annotated[float, Form(gt=0, lt=100_000)]) -> dict[str, Any]:
    """Take a payment: at once, after a person has looked at it, or not at all."""
    email = signed_in(request)
    if email is None:
        raise HTTPException(401, "sign in first")
    decision = await risk.payment(request, amount=amount, currency="EUR", email=email)
    if decision.denied:
        raise Denied(decision)
    state = "paid" if decision.approved else "held"
    order = {"email": email, "amount": amount, "state": state, "decision": decision.correlation_ids.event_id}
    ORDERS.append(order)
    return {"state": state, "amount": amount}


@app.get("/orders")
async def orders(request: Request) -> list[dict[str, Any]]:
    """List the orders of whoever is signed in."""
    email = signed_in(request)
    if email is None:
        raise HTTPException(401, "sign in first")
    return [{"amount": one["amount"], "state": one["state"]} for one in ORDERS if one["email"] == email]


@risk.on_webhook
async def review_settled(event: WebhookEvent) -> None:
    """Let an order go, or drop it, when a person has looked at it."""
    if event.event_type == "REVIEW_SETTLED":
        for order in ORDERS:
            if order["decision"] == event.data["decisionId"] and order["state"] == "held":
                order["state"] = "paid" if event.data["outcome"] == "approve" else "refused"
