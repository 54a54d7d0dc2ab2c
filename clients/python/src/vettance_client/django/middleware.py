"""Leads visitors from whom more proof is needed to the page that asks for it."""

from urllib.parse import urlencode

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.utils.deprecation import MiddlewareMixin

from vettance_client.django.risk import StepUpNeeded, django_setting


class StepUpMiddleware(MiddlewareMixin):
    """Turns `StepUpNeeded` into a redirect to `STEP_UP_URL` of `VETTANCE`, with the page in `next`."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer `StepUpNeeded`; `Denied` is a 403 without this."""
        if not isinstance(exception, StepUpNeeded):
            return None
        where = django_setting("STEP_UP_URL")
        if where is None:
            raise ImproperlyConfigured("set STEP_UP_URL of VETTANCE: the page that asks for a second factor")
        return HttpResponseRedirect(f"{resolve_url(where)}?{urlencode({'next': request.get_full_path()})}")
