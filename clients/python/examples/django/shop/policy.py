"""A strict policy for every page: scripts come from here and from the risk service, and none is inline."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from shop.settings import RISK

POLICY = (
    f"default-src 'self'; script-src 'self' {RISK}; connect-src 'self' {RISK}; "
    "img-src 'self' data:; require-trusted-types-for 'script'"
)


class ContentSecurityPolicy:
    """Adds the policy to every answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response["Content-Security-Policy"] = POLICY
        return response
