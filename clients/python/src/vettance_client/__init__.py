"""Typed client of the Vettance fraud and AML risk service."""

from vettance_client.client import AsyncClient, Client, OnUnavailable
from vettance_client.decision import Decision
from vettance_client.errors import (
    ApiError,
    BadGateway,
    Conflict,
    ConnectionFailed,
    Forbidden,
    GatewayTimeout,
    InternalServerError,
    MethodNotAllowed,
    NotFound,
    NotReached,
    PayloadTooLarge,
    QuotaExceeded,
    ServiceUnavailable,
    TimedOut,
    Unauthorized,
    Unprocessable,
    UnreadableAnswer,
    UnsupportedMediaType,
    ValidationError,
    VettanceError,
)
from vettance_client.request import VERSION
from vettance_client.retry import NO_RETRY, Retry
from vettance_client.webhooks import BadSignature, WebhookEvent, sign_webhook, verify_webhook

__version__ = VERSION

__all__ = [
    "NO_RETRY",
    "ApiError",
    "AsyncClient",
    "BadGateway",
    "BadSignature",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "Decision",
    "Forbidden",
    "GatewayTimeout",
    "InternalServerError",
    "MethodNotAllowed",
    "NotFound",
    "NotReached",
    "OnUnavailable",
    "PayloadTooLarge",
    "QuotaExceeded",
    "Retry",
    "ServiceUnavailable",
    "TimedOut",
    "Unauthorized",
    "Unprocessable",
    "UnreadableAnswer",
    "UnsupportedMediaType",
    "ValidationError",
    "VettanceError",
    "WebhookEvent",
    "__version__",
    "sign_webhook",
    "verify_webhook",
]
