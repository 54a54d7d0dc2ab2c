"""Refusals: every answer that is not a success, as one class for each row of the error table."""

from collections.abc import Mapping
from typing import Any, ClassVar


class Refusal(Exception):
    """A request that is answered with an error.

    `message` is a sentence the tenant can act on; it never echoes the caller's values. `details` maps
    field paths to messages, or holds retry hints. `headers` are added to the response.
    """

    status: ClassVar[int]
    code: ClassVar[str]

    def __init__(
        self,
        message: str,
        details: Mapping[str, Any] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})
        self.headers = headers


class Invalid(Refusal):
    """400: the shape of the request is wrong (not JSON, wrong type, missing member, bad query parameter)."""

    status = 400
    code = "VALIDATION_ERROR"


class InvalidBody(Invalid):
    """400: a body of well-formed JSON has the wrong shape; 422 below `/api/v1/aml/`."""


class TargetTooLong(Invalid):
    """414: the target of the request line is over the limit."""

    status = 414


class HeadTooLarge(Invalid):
    """431: the request line and the headers together are over the limit."""

    status = 431


class Unauthorized(Refusal):
    """401: no credential, an unknown or revoked one, or one used where it does not belong."""

    status = 401
    code = "UNAUTHORIZED"


class Forbidden(Refusal):
    """403: the credential is good but does not reach this (scope, or a product that is not enabled)."""

    status = 403
    code = "FORBIDDEN"


class NotFound(Refusal):
    """404: absent, or another tenant's; the two answers are identical."""

    status = 404
    code = "NOT_FOUND"

    def __init__(self) -> None:
        super().__init__("There is no such resource.")


class MethodNotAllowed(Refusal):
    """405: the path exists, the method on it does not. `allow` lists the methods that do."""

    status = 405
    code = "METHOD_NOT_ALLOWED"

    def __init__(self, allow: tuple[str, ...]) -> None:
        super().__init__("This path does not take that method.", headers=(("allow", ", ".join(allow)),))


class Conflict(Refusal):
    """409: the request is good but clashes with what is stored. `reason` is a snake_case word."""

    status = 409
    code = "CONFLICT"

    def __init__(self, message: str, reason: str, **details: Any) -> None:
        super().__init__(message, {"reason": reason, **details})


class PayloadTooLarge(Refusal):
    """413: the body is over the limit."""

    status = 413
    code = "PAYLOAD_TOO_LARGE"


class UnsupportedMediaType(Refusal):
    """415: a body that is not `application/json` in UTF-8."""

    status = 415
    code = "UNSUPPORTED_MEDIA_TYPE"


class Unprocessable(Refusal):
    """422: well-formed and well-typed, yet wrong in meaning."""

    status = 422
    code = "UNPROCESSABLE_ENTITY"


class LimitReached(Refusal):
    """429: the throttle or the quota is used up. Times are seconds."""

    status = 429
    code = "QUOTA_EXCEEDED"

    def __init__(self, message: str, limit: int, window_s: int, retry_after_s: int) -> None:
        super().__init__(
            message,
            {"limit": limit, "window": window_s, "retryAfter": retry_after_s},
            (("retry-after", str(retry_after_s)),),
        )


class InternalError(Refusal):
    """500: a bug of ours. The request id finds it in the log."""

    status = 500
    code = "INTERNAL_SERVER_ERROR"

    def __init__(self, request_id: str) -> None:
        super().__init__("Something went wrong on our side.", {"requestId": request_id})


class BadGateway(Refusal):
    """502: an engine this endpoint depends on is down."""

    status = 502
    code = "BAD_GATEWAY"


class Unavailable(Refusal):
    """503: the store is away, the service is draining or overloaded. Try again after `retry_after_s`."""

    status = 503
    code = "SERVICE_UNAVAILABLE"

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message, {"retryAfter": retry_after_s}, (("retry-after", str(retry_after_s)),))


class ShareUsedUp(Unavailable):
    """503: the tenant has its share of work, connections or room already. Such a request costs nothing."""


class GatewayTimeout(Refusal):
    """504: an engine this endpoint depends on did not answer in time."""

    status = 504
    code = "GATEWAY_TIMEOUT"
