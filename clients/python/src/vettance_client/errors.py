"""Everything that can go wrong with a call, as one class for each row of the service's error table."""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec


class VettanceError(Exception):
    """A call that has no answer to give.

    `code` is what programs go by, `message` a sentence for people, `details` maps field paths to messages or
    holds hints, and `request_id` finds the request in the service's logs; None when it was not reached.
    """

    code: str = "ERROR"

    def __init__(
        self, message: str, *, details: Mapping[str, Any] | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.request_id = request_id


class NotReached(VettanceError):
    """No answer came: the service is away, or something between here and there is."""

    code = "NOT_REACHED"


class ConnectionFailed(NotReached):
    """There is no connection to the service. `sent` says whether the request may have arrived."""

    code = "CONNECTION_FAILED"

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class TimedOut(NotReached):
    """The answer did not come in time."""

    code = "TIMED_OUT"


class UnreadableAnswer(VettanceError):
    """The answer is not what the OpenAPI document says: probably it is not the service that answers."""

    code = "UNREADABLE_ANSWER"


class ApiError(VettanceError):
    """The service refused. Its classes are named for what it said."""

    status: ClassVar[int] = 0

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        http_status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, details=details, request_id=request_id)
        if code is not None:
            self.code = code
        self.http_status = http_status or self.status
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        named = "; ".join(f"{path}: {said}" for path, said in self.details.items() if isinstance(said, str))
        return f"{self.http_status} {self.code}: {self.message}" + (f" ({named})" if named else "")


class ValidationError(ApiError):
    """400: the shape of the request is wrong; `details` maps field to message."""

    status, code = 400, "VALIDATION_ERROR"


class Unauthorized(ApiError):
    """401: the API key or the token is missing or not valid."""

    status, code = 401, "UNAUTHORIZED"


class Forbidden(ApiError):
    """403: the credential does not reach this, or the product is not enabled."""

    status, code = 403, "FORBIDDEN"


class NotFound(ApiError):
    """404: there is no such resource for this tenant."""

    status, code = 404, "NOT_FOUND"


class MethodNotAllowed(ApiError):
    """405: the path does not take this method."""

    status, code = 405, "METHOD_NOT_ALLOWED"


class Conflict(ApiError):
    """409: the request clashes with what is stored; `reason` says how."""

    status, code = 409, "CONFLICT"

    @property
    def reason(self) -> str | None:
        """Why, in one word: `duplicate_entry`, `payload_mismatch` …"""
        reason = self.details.get("reason")
        return reason if isinstance(reason, str) else None


class PayloadTooLarge(ApiError):
    """413: the body is over the limit."""

    status, code = 413, "PAYLOAD_TOO_LARGE"


class UnsupportedMediaType(ApiError):
    """415: the body is not JSON in UTF-8."""

    status, code = 415, "UNSUPPORTED_MEDIA_TYPE"


class Unprocessable(ApiError):
    """422: well-formed, yet wrong in meaning; `details` maps field to message."""

    status, code = 422, "UNPROCESSABLE_ENTITY"


class QuotaExceeded(ApiError):
    """429: throttle or quota is used up; there is room again after `retry_after_s` seconds."""

    status, code = 429, "QUOTA_EXCEEDED"


class InternalServerError(ApiError):
    """500: a fault of the service; `request_id` finds it."""

    status, code = 500, "INTERNAL_SERVER_ERROR"


class BadGateway(ApiError):
    """502: an engine this endpoint depends on is down."""

    status, code = 502, "BAD_GATEWAY"


class ServiceUnavailable(ApiError):
    """503: not able to answer now; try again after `retry_after_s` seconds."""

    status, code = 503, "SERVICE_UNAVAILABLE"


class GatewayTimeout(ApiError):
    """504: an engine this endpoint depends on did not answer in time."""

    status, code = 504, "GATEWAY_TIMEOUT"


BY_STATUS: dict[int, type[ApiError]] = {
    kind.status: kind
    for kind in (
        *(ValidationError, Unauthorized, Forbidden, NotFound, MethodNotAllowed, Conflict, PayloadTooLarge),
        *(UnsupportedMediaType, Unprocessable, QuotaExceeded, InternalServerError, BadGateway),
        *(ServiceUnavailable, GatewayTimeout),
    )
}


def error_of(status: int, headers: Mapping[str, str], content: bytes) -> ApiError:
    """Read a refusal; one that something else than the service wrote (a proxy) still has its status."""
    try:
        body = msgspec.json.decode(content)
        error = body["error"]
        code, message, details = str(error["code"]), str(error["message"]), dict(error.get("details") or {})
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError):
        code, message, details = None, f"The answer has the status {status}.", {}
    kind = BY_STATUS.get(status, ApiError)
    request_id = details.get("requestId") or headers.get("X-Request-Id")
    return kind(
        message,
        code=code or kind.__dict__.get("code") or f"HTTP_{status}",
        details=details,
        request_id=request_id if isinstance(request_id, str) else None,
        http_status=status,
        retry_after_s=_seconds(headers.get("Retry-After"), details.get("retryAfter")),
    )


def _seconds(*candidates: object) -> float | None:
    for candidate in candidates:
        try:
            if candidate is not None:
                return max(float(candidate), 0.0)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return None
