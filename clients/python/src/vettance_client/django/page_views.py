"""The script and the token of pages."""

import logging

import msgspec
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from vettance_client.django.risk import risk
from vettance_client.errors import VettanceError
from vettance_client.web.page_scripts import SCRIPT_TYPE, is_own_page, start_script

_log = logging.getLogger("vettance")


@require_safe
def start_js(_request: HttpRequest) -> HttpResponse:
    """Answer the script that starts the SDK."""
    headers = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(start_script(), content_type=SCRIPT_TYPE, headers=headers)


# The origin is checked instead: a page of another site cannot set it, nor read what is answered.
@csrf_exempt
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """Mint a token for a page of this site."""
    if not is_own_page(risk.shop, request.headers.get("Origin")):
        return JsonResponse({"error": f"tokens are for pages of {risk.shop.own_origin()}"}, status=403)
    response = HttpResponse(content_type="application/json", headers={"Cache-Control": "no-store"})
    session_id = risk.ensure_session(request, response)
    try:
        response.content = msgspec.json.encode(risk.token(request, session_id))
    except VettanceError as error:
        _log.warning("no token for a page: %s", error)
        return JsonResponse({"error": "no token now"}, status=503)
    return response
