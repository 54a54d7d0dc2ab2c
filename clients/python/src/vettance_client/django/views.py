"""A login view that asks for a decision, and what comes after a second factor."""

import time
from typing import Any

from django.contrib.auth import get_user_model, login
from django.contrib.auth.views import LoginView
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url

from vettance_client.decision import Decision
from vettance_client.django.risk import django_setting, risk

#: How long a visitor has for the second factor.
PENDING_S_MAX = 600
_PENDING = "vettance_pending_login"


class ProtectedLoginView(LoginView):
    """Django's login view with a decision between the password and the session.

    Approved logins go on, those to be reviewed are led to `step_up_url` (or `STEP_UP_URL` in `VETTANCE`), and
    denied ones read as if the password were wrong, so that nobody learns that it was right. Wrong passwords
    are reported too: guessing is seen by them.
    """

    step_up_url: str | None = None

    def form_valid(self, form: Any) -> HttpResponse:
        """Ask for the decision on a login whose password was right."""
        user = form.get_user()
        decision = risk.login(self.request, str(user.pk), email=email_of(user))
        if decision.approved:
            return super().form_valid(form)
        if decision.needs_review:
            return self.step_up(form, decision)
        return self.refuse(form, decision)

    def form_invalid(self, form: Any) -> HttpResponse:
        """Report a login whose password was wrong, or whose name is unknown."""
        name = form.cleaned_data.get("username") if hasattr(form, "cleaned_data") else None
        if name and form.cleaned_data.get("password"):
            user = get_user_model()._default_manager.filter(**{get_user_model().USERNAME_FIELD: name}).first()
            email = email_of(user) if user is not None else name if "@" in name else None
            # The form is refused in any case, so nothing depends on what is answered.
            risk.login(
                self.request,
                None if user is None else str(user.pk),
                outcome="failure",
                email=email,
                metadata=None if user is not None or email else {"username": name},
                on_unavailable="deny",
            )
        return super().form_invalid(form)

    def step_up(self, form: Any, _decision: Decision) -> HttpResponse:
        """Keep the login waiting and ask for a second factor; that page ends with `complete_login`."""
        where = self.step_up_url or django_setting("STEP_UP_URL")
        if where is None:
            raise ImproperlyConfigured(
                "set step_up_url of the view or STEP_UP_URL of VETTANCE: a second factor"
            )
        user = form.get_user()
        self.request.session[_PENDING] = {
            "user": str(user.pk),
            "backend": user.backend,
            "at": time.time(),
            "next": self.get_success_url(),
        }
        return HttpResponseRedirect(resolve_url(where))

    def refuse(self, form: Any, _decision: Decision) -> HttpResponse:
        """Answer a denied login like a wrong password."""
        form.add_error(None, form.get_invalid_login_error())
        return LoginView.form_invalid(self, form)


def pending_user(request: HttpRequest) -> Any:
    """Return the user whose login waits for a second factor, None when there is none (any more)."""
    pending = request.session.get(_PENDING)
    if not pending or not 0 <= time.time() - pending["at"] <= PENDING_S_MAX:
        return None
    user = get_user_model()._default_manager.filter(pk=pending["user"]).first()
    return user if user is not None and user.is_active else None


def complete_login(request: HttpRequest) -> str | None:
    """Sign in the user whose login waited, once the second factor was right; return where they wanted to go.

    Returns None when nothing waits (any more).
    """
    user = pending_user(request)
    pending = request.session.pop(_PENDING, None)
    if user is None:
        return None
    login(request, user, backend=pending["backend"])
    return str(pending["next"])


def email_of(user: Any) -> str | None:
    """Return the e-mail address of a user, None when there is none."""
    return getattr(user, user.get_email_field_name(), None) or None
