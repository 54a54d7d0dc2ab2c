/** Everything that can go wrong with a call, as one class for each row of the service's error table. */

/** What a refusal says beside its class. */
export interface Refused {
  code?: string | undefined;
  details?: Record<string, unknown> | undefined;
  requestId?: string | undefined;
  status?: number | undefined;
  retryAfterSeconds?: number | undefined;
}

/** A call that has no answer to give. */
export class VettanceError extends Error {
  /** What programs go by. */
  readonly code: string;
  /** Messages by field path, or hints such as `retryAfter`. */
  readonly details: Record<string, unknown>;
  /** Finds the request in the service's logs; undefined when the service was not reached. */
  readonly requestId: string | undefined;

  constructor(message: string, said: Refused = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = said.code ?? "ERROR";
    this.details = said.details ?? {};
    this.requestId = said.requestId;
  }
}

/** No answer came: the service is away, or something between here and there is. */
export class NotReached extends VettanceError {}

/** There is no connection to the service, or it broke. */
export class ConnectionFailed extends NotReached {
  /** Whether the request may have arrived. */
  readonly sent: boolean;

  constructor(message: string, sent: boolean, cause?: unknown) {
    super(message, { code: "CONNECTION_FAILED" }, cause);
    this.sent = sent;
  }
}

/** The answer did not come in time. */
export class TimedOut extends NotReached {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "TIMED_OUT" }, cause);
  }
}

/** The answer is not JSON: probably it is not the service that answers. */
export class UnreadableAnswer extends VettanceError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "UNREADABLE_ANSWER" }, cause);
  }
}

/** The service refused. Its classes are named for what it said. */
export class ApiError extends VettanceError {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, said: Refused = {}) {
    super(message, said);
    this.status = said.status ?? 0;
    this.retryAfterSeconds = said.retryAfterSeconds;
  }
}

/** 400: the shape of the request is wrong; `details` maps field to message. */
export class ValidationError extends ApiError {}
/** 401: the API key or the token is missing or not valid. */
export class Unauthorized extends ApiError {}
/** 403: the credential does not reach this, or the product is not enabled. */
export class Forbidden extends ApiError {}
/** 404: there is no such resource for this tenant. */
export class NotFound extends ApiError {}
/** 405: the path does not take this method. */
export class MethodNotAllowed extends ApiError {}
/** 409: the request clashes with what is stored; `reason` says how. */
export class Conflict extends ApiError {
  /** Why, in one word: `duplicate_entry`, `payload_mismatch` … */
  get reason(): string | undefined {
    const reason = this.details["reason"];
    return typeof reason === "string" ? reason : undefined;
  }
}
/** 413: the body is over the limit. */
export class PayloadTooLarge extends ApiError {}
/** 415: the body is not JSON in UTF-8. */
export class UnsupportedMediaType extends ApiError {}
/** 422: well-formed, yet wrong in meaning; `details` maps field to message. */
export class Unprocessable extends ApiError {}
/** 429: throttle or quota is used up; there is room again after `retryAfterSeconds`. */
export class QuotaExceeded extends ApiError {}
/** 500: a fault of the service; `requestId` finds it. */
export class InternalServerError extends ApiError {}
/** 502: an engine this endpoint depends on is down. */
export class BadGateway extends ApiError {}
/** 503: not able to answer now; try again after `retryAfterSeconds`. */
export class ServiceUnavailable extends ApiError {}
/** 504: an engine this endpoint depends on did not answer in time. */
export class GatewayTimeout extends ApiError {}

const BY_STATUS: Record<number, [typeof ApiError, string]> = {
  400: [ValidationError, "VALIDATION_ERROR"],
  401: [Unauthorized, "UNAUTHORIZED"],
  403: [Forbidden, "FORBIDDEN"],
  404: [NotFound, "NOT_FOUND"],
  405: [MethodNotAllowed, "METHOD_NOT_ALLOWED"],
  409: [Conflict, "CONFLICT"],
  413: [PayloadTooLarge, "PAYLOAD_TOO_LARGE"],
  415: [UnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE"],
  422: [Unprocessable, "UNPROCESSABLE_ENTITY"],
  429: [QuotaExceeded, "QUOTA_EXCEEDED"],
  500: [InternalServerError, "INTERNAL_SERVER_ERROR"],
  502: [BadGateway, "BAD_GATEWAY"],
  503: [ServiceUnavailable, "SERVICE_UNAVAILABLE"],
  504: [GatewayTimeout, "GATEWAY_TIMEOUT"],
};

/** Read a refusal; one that something else than the service wrote (a proxy) still has its status. */
export function errorOf(status: number, headers: Headers, text: string): ApiError {
  const said = refusalIn(text);
  const [kind, code] = BY_STATUS[status] ?? [ApiError, `HTTP_${status}`];
  const requestId = said?.details["requestId"] ?? headers.get("x-request-id") ?? undefined;
  return new kind(said?.message ?? `The answer has the status ${status}.`, {
    code: said?.code ?? code,
    details: said?.details,
    requestId: typeof requestId === "string" ? requestId : undefined,
    status,
    retryAfterSeconds: seconds(headers.get("retry-after")) ?? seconds(said?.details["retryAfter"]),
  });
}

function refusalIn(text: string): { code: string; message: string; details: Record<string, unknown> } | undefined {
  try {
    const { error } = JSON.parse(text) as { error: Record<string, unknown> };
    const details = (error["details"] ?? {}) as Record<string, unknown>;
    return { code: String(error["code"]), message: String(error["message"]), details };
  } catch {
    return undefined;
  }
}

function seconds(said: unknown): number | undefined {
  const number = said === null || said === undefined || said === "" ? NaN : Number(said);
  return Number.isFinite(number) ? Math.max(number, 0) : undefined;
}
