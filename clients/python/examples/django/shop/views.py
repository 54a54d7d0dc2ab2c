"""The pages of the shop."""

import secrets
from decimal import Decimal, InvalidOperation

from django.contrib.auth.decorators import login_required
from django.core.mail import send_mail
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from shop.models import Order
from vettance_client import WebhookEvent
from vettance_client.django import Denied, risk, webhook_received
from vettance_client.django.views import complete_login, pending_user

TRIES_MAX = 5


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Show the orders, and a form to pay."""
    return render(request, "home.html", {"orders": Order.objects.filter(customer=request.user)})


@login_required
@require_POST
def pay(request: HttpRequest) -> HttpResponse:
    """Take a payment: at once, after a person has looked at it, or not at all."""
    try:
        amount = Decimal(request.POST.get("amount", ""))
    except InvalidOperation:
        return HttpResponseBadRequest("no amount")
    if not 0 < amount < 100_000:
        return HttpResponseBadRequest("no amount")
    decision = risk.payment(request, amount=amount, currency="EUR", email=request.user.email)
    if decision.denied:
        raise Denied(decision)
    Order.objects.create(
        customer=request.user,
        amount=amount,
        state="paid" if decision.approved else "held",
        decision_id=decision.correlation_ids.event_id,
    )
    return redirect("home")


def second_factor(request: HttpRequest) -> HttpResponse:
    """Mail a code, and finish the login that waits for it. A real shop uses its own second factor here."""
    user = pending_user(request)
    if user is None:
        return redirect("login")
    factor = request.session.get("factor", {})
    if request.method == "POST" and factor.get("user") == user.pk and factor["tries"] < TRIES_MAX:
        request.session["factor"] = {**factor, "tries": factor["tries"] + 1}
        if secrets.compare_digest(factor["code"].encode(), request.POST.get("code", "").encode()):
            del request.session["factor"]
            return redirect(complete_login(request) or "login")
        return render(request, "second_factor.html", {"wrong": True}, status=403)
    if factor.get("user") != user.pk:  # The code of one user is none for another.
        code = f"{secrets.randbelow(10**6):06}"
        request.session["factor"] = {"user": user.pk, "code": code, "tries": 0}
        send_mail("Your code", f"code {code}", "shop@example.com", [user.email])
    return render(request, "second_factor.html")


@receiver(webhook_received)
def review_settled(event: WebhookEvent, **_: object) -> None:
    """Let an order go, or drop it, when a person has looked at it."""
    if event.event_type == "REVIEW_SETTLED":
        state = "paid" if event.data["outcome"] == "approve" else "refused"
        Order.objects.filter(decision_id=event.data["decisionId"], state="held").update(state=state)
