/** Sends requests and tries again, as the service's specification says. */

import { ApiError, ConnectionFailed, NotReached, QuotaExceeded, TimedOut, UnreadableAnswer, VettanceError, errorOf } from "./errors.js";

/** A moment: Unix seconds, or a `Date`. */
export type Time = number | Date;

/** An endpoint as the client knows it; `repeat` says whether it may be sent again when it is unknown what became of it. */
export interface Endpoint {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly repeat: "always" | "with_key" | "never";
  readonly credential?: "token" | "none";
}

/** How often and how long to try. */
export interface Retry {
  /** How many times a request is sent at most. */
  attempts: number;
  /** The first wait; each one after it is twice as long. */
  firstWaitMs: number;
  /** When the service asks for a longer wait than this, the error is thrown at once. */
  waitMsMax: number;
}

/** What one call may say. */
export interface Options {
  /** Of a POST that creates something; the client makes one of its own otherwise. */
  idempotencyKey?: string | undefined;
  /** A token of `createToken`, for the endpoints of browsers. */
  token?: string | undefined;
  /** For each attempt. */
  timeoutMs?: number | undefined;
  /** For all attempts together. */
  deadlineMs?: number | undefined;
  /** Ends the call from outside. */
  signal?: AbortSignal | undefined;
}

/** What a client is told when it is made. */
export interface Settings {
  /** The service's address, such as `https://risk.example.com`. */
  baseUrl: string;
  /** A key of the tenant. Keep it on servers. */
  apiKey?: string | undefined;
  /** For each attempt; 10 seconds unless said. */
  timeoutMs?: number | undefined;
  retry?: Partial<Retry> | undefined;
  /** A `fetch` of your own: through a proxy, or a stand-in in tests. */
  fetch?: typeof fetch | undefined;
}

type Query = Record<string, string | number | boolean | Date | undefined | null>;

const VERSION = "0.2.0";
const NO_BODY = new Set(["GET", "DELETE"]);
/** What `fetch` of Node says when a request was never sent. */
const NEVER_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** Calls the service. */
export class Caller {
  readonly #baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #timeoutMs: number;
  readonly #retry: Retry;
  readonly #fetch: typeof fetch;

  constructor(settings: Settings) {
    if (!/^https?:\/\/[^/]/.test(settings.baseUrl)) {
      throw new TypeError("baseUrl is the service's address, such as https://risk.example.com");
    }
    this.#baseUrl = settings.baseUrl.replace(/\/+$/, "");
    this.#apiKey = settings.apiKey;
    this.#timeoutMs = settings.timeoutMs ?? 10_000;
    this.#retry = { attempts: 4, firstWaitMs: 200, waitMsMax: 10_000, ...settings.retry };
    // Called as a method of another object, `fetch` of browsers refuses.
    this.#fetch = settings.fetch ?? ((input, init) => fetch(input, init));
  }

  protected async call<Answer>(
    endpoint: Endpoint,
    path: readonly string[],
    query: object | undefined,
    body: unknown,
    options: Options,
  ): Promise<Answer> {
    const url = this.#baseUrl + filled(endpoint.path, path) + asked(query as Query | undefined);
    const init: RequestInit = { method: endpoint.method, headers: this.#headers(endpoint, body, options), redirect: "manual" };
    if (body !== undefined && !NO_BODY.has(endpoint.method)) init.body = JSON.stringify(body);
    const until = options.deadlineMs === undefined ? Infinity : Date.now() + options.deadlineMs;
    for (let attempt = 1; ; attempt++) {
      let failure: VettanceError;
      try {
        const timeoutMs = Math.max(Math.min(options.timeoutMs ?? this.#timeoutMs, until - Date.now()), 1);
        const reply = await this.#send(url, init, timeoutMs, options.signal);
        if (reply.status >= 200 && reply.status < 300) return read<Answer>(endpoint, reply);
        failure = errorOf(reply.status, reply.headers, reply.text);
      } catch (error) {
        if (!(error instanceof NotReached)) throw error;
        failure = error;
      }
      const waitMs = waitBefore(this.#retry, failure, attempt, endpoint, until - Date.now());
      if (waitMs === undefined) throw failure;
      await pause(waitMs, options.signal);
    }
  }

  protected async *rows<Row>(
    endpoint: Endpoint,
    path: readonly string[],
    query: object,
    options: Options,
  ): AsyncIterableIterator<Row> {
    const wanted: Query = { ...(query as Query) };
    for (;;) {
      type Page = { data: Row[]; nextCursor?: string | null };
      const page: Page = await this.call<Page>(endpoint, path, wanted, undefined, options);
      yield* page.data;
      if (page.nextCursor === undefined || page.nextCursor === null) return;
      wanted["cursor"] = page.nextCursor;
    }
  }

  #headers(endpoint: Endpoint, body: unknown, options: Options): Record<string, string> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (isNode) headers["user-agent"] = `vettance-client-typescript/${VERSION}`;
    if (options.token !== undefined) headers["authorization"] = `Bearer ${options.token}`;
    else if (this.#apiKey !== undefined && endpoint.credential === undefined) headers["x-api-key"] = this.#apiKey;
    if (endpoint.repeat === "with_key") headers["idempotency-key"] = options.idempotencyKey ?? crypto.randomUUID();
    if (body !== undefined) headers["content-type"] = "application/json";
    return headers;
  }

  async #send(url: string, init: RequestInit, timeoutMs: number, signal: AbortSignal | undefined): Promise<Reply> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), timeoutMs);
    const stop = () => controller.abort();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      signal?.throwIfAborted();
      const reply = await this.#fetch(url, { ...init, signal: controller.signal });
      return { status: reply.status, headers: reply.headers, text: await reply.text() };
    } catch (error) {
      signal?.throwIfAborted();
      if (controller.signal.aborted) throw new TimedOut(`No answer within ${timeoutMs} ms.`, error);
      const cause = (error as { cause?: { code?: string; message?: string } }).cause;
      const why = cause?.message ?? (error as Error).message;
      throw new ConnectionFailed(`No connection to ${this.#baseUrl}: ${why}`, !NEVER_SENT.has(cause?.code ?? ""), error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }
}

interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

const isNode = "process" in globalThis && !("window" in globalThis);

function read<Answer>(endpoint: Endpoint, reply: Reply): Answer {
  const kind = reply.headers.get("content-type") ?? "application/json";
  if (!kind.includes("json")) return reply.text as Answer;
  try {
    return JSON.parse(reply.text) as Answer;
  } catch (error) {
    throw new UnreadableAnswer(`The answer to ${endpoint.name} is not JSON.`, error);
  }
}

function waitBefore(
  retry: Retry,
  failure: VettanceError,
  attempt: number,
  endpoint: Endpoint,
  leftMs: number,
): number | undefined {
  if (attempt >= retry.attempts || !mayRepeat(failure, endpoint)) return undefined;
  const said = failure instanceof ApiError ? failure.retryAfterSeconds : undefined;
  if (said !== undefined && said * 1000 > retry.waitMsMax) return undefined;
  // Half of it by chance, so that many clients do not come back at one moment.
  const full = Math.min(retry.firstWaitMs * 2 ** (attempt - 1), retry.waitMsMax);
  const waitMs = said === undefined ? full * (0.5 + Math.random() / 2) : said * 1000;
  return waitMs < leftMs ? waitMs : undefined;
}

function mayRepeat(failure: VettanceError, endpoint: Endpoint): boolean {
  if (failure instanceof QuotaExceeded || (failure instanceof ConnectionFailed && !failure.sent)) return true;
  if (endpoint.repeat === "never") return false;
  return failure instanceof NotReached || (failure instanceof ApiError && failure.status >= 500);
}

function filled(path: string, values: readonly string[]): string {
  let next = 0;
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[next++];
    if (!value) throw new TypeError(`${name} must not be empty`);
    return encodeURIComponent(value);
  });
}

function asked(query: Query | undefined): string {
  if (query === undefined) return "";
  const pairs: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    pairs.push(`${name}=${encodeURIComponent(value instanceof Date ? value.getTime() / 1000 : value)}`);
  }
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
