/**
 * Vettance in Express (and Connect, and plain Node): logins, payments, webhooks and the browser SDK.
 *
 * ```js
 * const risk = new Risk({ baseUrl: "https://risk.example.com", apiKey: process.env.VETTANCE_KEY, origin: "https://shop.example.com" });
 * app.use(risk.routes()); // before express.json()
 * const decision = await risk.login(req, user.id, { email: user.email }); // in a handler
 * ```
 */

/// <reference types="node" />
import type { IncomingMessage, ServerResponse } from "node:http";
import { Client, type Decision, type OnUnavailable, isApproved, isDenied } from "./client.js";
import { Proxies } from "./clientAddress.js";
import { type Deliveries, LEASE_S, MemoryDeliveries } from "./deliveries.js";
import { VettanceError } from "./errors.js";
import type { EventBody } from "./schema.js";
import { type LoginSaid, type PaymentSaid, type Visitor, loginEvent, paymentEvent, withVisitor } from "./shopEvents.js";
import { START_SCRIPT } from "./startScript.js";
import { BadSignature, type WebhookEvent, verifyWebhook } from "./webhooks.js";

export { MemoryDeliveries } from "./deliveries.js";
export type { Claim, Deliveries } from "./deliveries.js";
export type { LoginSaid, PaymentSaid, Visitor } from "./shopEvents.js";

const BODY_BYTES_MAX = 1 << 20;
const DELIVERY_ID_CHARS_MAX = 200;
/** Deliveries carry the time of their attempt. An older one was recorded. */
const TOLERANCE_S = 300;
/** Every page asks for a token: while the service hangs, none waits longer than this, or than other calls do. */
const TOKEN_DEADLINE_MS = 1000;
const SESSION = /^[0-9a-f]{32}$/;

/** A request of Express, Connect or Node. */
export type ShopRequest = IncomingMessage & { originalUrl?: string };
type Next = (error?: unknown) => void;
type Middleware = (request: ShopRequest, response: ServerResponse, next: Next) => void;

/** The settings of a shop. */
export interface ShopSettings {
  /** The service's address as your server reaches it. */
  baseUrl: string;
  apiKey: string | undefined;
  /** Your shop's own address, such as `https://shop.example.com`: pages get tokens for it only. */
  origin?: string | undefined;
  /** The service's address as browsers reach it, where that is another one. */
  browserUrl?: string | undefined;
  /** The `signingSecret` of your subscription, or several while it is rotated. */
  webhookSecret?: string | readonly string[] | undefined;
  /** Of a call with all its attempts; 250 unless said. A page's token has a second, or this where it is more. */
  deadlineMs?: number | undefined;
  /** What to go on with when there is no decision within it; `review` unless said. */
  onUnavailable?: OnUnavailable | undefined;
  /** Your own proxies: only what they say of a client's address counts. */
  proxies?: readonly string[] | undefined;
  /** `asked`: pages measure nothing until your banner says so (event `vettance-consent`); `given`: at once. */
  consent?: "asked" | "given" | undefined;
  /** `full` adds the device. */
  sdk?: "core" | "full" | undefined;
  sdkVersion?: string | undefined;
  sdkIntegrity?: string | undefined;
  /** Where the routes are; `/vettance` unless said. */
  prefix?: string | undefined;
  /** Which customer a request comes from, undefined for a visitor who is not signed in. */
  customerOf?: ((request: any) => string | undefined | Promise<string | undefined>) | undefined;
  /** Called with each webhook, once for each delivery. When it throws, the service sends it again. */
  onWebhook?: ((event: WebhookEvent) => void | Promise<void>) | undefined;
  /** Remembers which webhooks were handled; with several processes it must be one that they share. */
  deliveries?: Deliveries | undefined;
}

/** What one call may say instead of the settings. */
export interface CallOptions {
  deadlineMs?: number | undefined;
  onUnavailable?: OnUnavailable | undefined;
  idempotencyKey?: string | undefined;
}

/** The decision is to stop: 403. Why is in `decision`, for your log and not for the visitor. */
export class Denied extends Error {
  override readonly name = "Denied";
  readonly status = 403;
  readonly code = "denied";
  readonly decision: Decision;

  constructor(decision: Decision) {
    super("This was refused.");
    this.decision = decision;
  }
}

/** The decision is to ask for more proof: 403 unless your error handler leads the visitor to it. */
export class StepUpNeeded extends Error {
  override readonly name = "StepUpNeeded";
  readonly status = 403;
  readonly code = "step_up_needed";
  readonly decision: Decision;

  constructor(decision: Decision) {
    super("More proof is needed.");
    this.decision = decision;
  }
}

/** Decisions on what the visitors of a shop do, and the routes that pages and webhooks need. */
export class Risk {
  /** The client, for everything else that the service has. */
  readonly client: Client;
  readonly #settings: ShopSettings;
  readonly #origin: string | undefined;
  readonly #prefix: string;
  readonly #proxies: Proxies;
  readonly #secrets: readonly string[];
  readonly #deliveries: Deliveries;

  /** Throws a `TypeError` that names the setting which cannot work. */
  constructor(settings: ShopSettings) {
    if (!settings.apiKey) throw new TypeError("apiKey is not set: `vettance key create` makes one");
    if (settings.origin !== undefined && !/^https?:\/\/[^/?#]+\/?$/.test(settings.origin)) {
      throw new TypeError("origin is scheme and name only, such as https://shop.example.com");
    }
    oneOf("consent", settings.consent, ["asked", "given"]);
    oneOf("sdk", settings.sdk, ["core", "full"]);
    oneOf("onUnavailable", settings.onUnavailable, ["approve", "review", "deny", "raise"]);
    if (settings.deadlineMs !== undefined && !(settings.deadlineMs > 0)) throw new TypeError("deadlineMs must be more than 0");
    if (settings.sdkIntegrity !== undefined && settings.sdkVersion === undefined) {
      throw new TypeError("sdkIntegrity needs sdkVersion: the newest script changes");
    }
    this.client = new Client({ baseUrl: settings.baseUrl, apiKey: settings.apiKey });
    this.#settings = settings;
    this.#origin = settings.origin?.replace(/\/$/, "").toLowerCase();
    this.#prefix = (settings.prefix ?? "/vettance").replace(/\/+$/, "");
    this.#proxies = new Proxies(settings.proxies ?? []);
    const secret = settings.webhookSecret ?? [];
    this.#secrets = (typeof secret === "string" ? [secret] : secret).filter((one) => one !== "");
    this.#deliveries = settings.deliveries ?? new MemoryDeliveries();
  }

  /** Who sent a request. */
  visitor(request: ShopRequest): Visitor {
    const forwarded = request.headers["x-forwarded-for"] ?? "";
    return {
      ip: this.#proxies.clientAddress(request.socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join(",") : forwarded),
      userAgent: request.headers["user-agent"],
      sessionId: sessionIn(request.headers.cookie),
    };
  }

  /** The decision on an event; its visitor is read from the request. */
  evaluate(request: ShopRequest, event: EventBody, options: CallOptions = {}): Promise<Decision> {
    return this.client.evaluate(withVisitor(event, this.visitor(request)), {
      deadlineMs: options.deadlineMs ?? this.#settings.deadlineMs ?? 250,
      onUnavailable: options.onUnavailable ?? this.#settings.onUnavailable ?? "review",
      idempotencyKey: options.idempotencyKey,
    });
  }

  /**
   * The decision on an attempt to sign in; ask when the password was checked, right or wrong.
   *
   * `customer` is your own id of the account, undefined when there is none of that name.
   */
  async login(request: ShopRequest, customer: string | undefined, said: LoginSaid & CallOptions = {}): Promise<Decision> {
    return this.evaluate(request, loginEvent(customer, said), said);
  }

  /** The decision on a payment, before the money moves. */
  async payment(request: ShopRequest, said: PaymentSaid & CallOptions): Promise<Decision> {
    const customer = said.customer ?? (await this.#settings.customerOf?.(request));
    return this.evaluate(request, paymentEvent(customer, said), said);
  }

  /** Go on only if a decision approves. Throws `StepUpNeeded` or `Denied`. */
  require(decision: Decision): void {
    if (isApproved(decision)) return;
    throw isDenied(decision) ? new Denied(decision) : new StepUpNeeded(decision);
  }

  /**
   * A middleware in front of a handler that takes a payment. The handler finds the decision in `res.locals.decision`.
   *
   * A denied payment ends in your error handler as `Denied`, one to be reviewed as `StepUpNeeded`; with
   * `review: "pass"` the handler runs and holds it.
   */
  protectPayment(
    paymentOf: (request: any) => (PaymentSaid & CallOptions) | Promise<PaymentSaid & CallOptions>,
    options: { review?: "step_up" | "pass" } = {},
  ): Middleware {
    return (request, response, next) => {
      const decide = async (): Promise<void> => {
        const decision = await this.payment(request, await paymentOf(request));
        if (isDenied(decision) || options.review !== "pass") this.require(decision);
        const { locals } = response as { locals?: Record<string, unknown> };
        (response as { locals?: Record<string, unknown> }).locals = Object.assign(locals ?? {}, { decision });
      };
      decide().then(() => next(), next);
    };
  }

  /**
   * The two script tags for the head of a page; `nonce` is that of your policy.
   *
   * Nothing in them is secret, and nothing is inline: a policy needs the service's address in `script-src` and
   * `connect-src`, and `'self'`.
   */
  scripts(options: { nonce?: string | undefined } = {}): string {
    const { browserUrl, baseUrl, sdkVersion, sdkIntegrity, sdk, consent } = this.#settings;
    const service = (browserUrl ?? baseUrl).replace(/\/+$/, "");
    const once = options.nonce === undefined ? "" : ` nonce="${escape(options.nonce)}"`;
    const integrity = sdkIntegrity === undefined ? "" : ` integrity="${escape(sdkIntegrity)}"`;
    const script = escape(`${service}/sdk/v1/${sdkVersion === undefined ? "" : `${sdkVersion}/`}vettance-${sdk ?? "core"}.js`);
    const own = escape(this.#prefix);
    return (
      `<script src="${script}"${integrity} crossorigin="anonymous" defer${once}></script>\n` +
      `<script src="${own}/start.js" data-endpoint="${escape(service)}" data-token="${own}/token" ` +
      `data-consent="${consent ?? "asked"}" defer${once}></script>`
    );
  }

  /** The routes of pages and of the service, as one middleware. Use it before what parses bodies. */
  routes(): Middleware {
    return (request, response, next) => {
      const path = (request.originalUrl ?? request.url ?? "").split("?")[0] ?? "";
      if (!path.startsWith(`${this.#prefix}/`)) return next();
      const name = path.slice(this.#prefix.length + 1);
      const method = request.method ?? "GET";
      if (name === "start.js" && (method === "GET" || method === "HEAD")) {
        return answer(response, 200, method === "HEAD" ? "" : START_SCRIPT, {
          "content-type": "text/javascript; charset=utf-8",
          "cache-control": "public, max-age=3600",
          "x-content-type-options": "nosniff",
        });
      }
      if (method !== "POST" || (name !== "token" && name !== "webhook")) return next();
      (name === "token" ? this.#token(request, response) : this.#webhook(request, response)).catch(next);
    };
  }

  async #token(request: ShopRequest, response: ServerResponse): Promise<void> {
    if (this.#origin === undefined) throw new TypeError("origin is not set: the address of your shop");
    if (request.headers.origin?.toLowerCase() !== this.#origin) {
      return answerJson(response, 403, { error: `tokens are for pages of ${this.#origin}` });
    }
    const known = sessionIn(request.headers.cookie);
    const session = known ?? crypto.randomUUID().replaceAll("-", "");
    const customer = await this.#settings.customerOf?.(request);
    const body = {
      origin: this.#origin,
      tenantSessionId: session,
      ...(customer !== undefined && { userExternalId: String(customer) }),
    };
    try {
      const minted = await this.client.createToken(body, { deadlineMs: Math.max(TOKEN_DEADLINE_MS, this.#settings.deadlineMs ?? 0) });
      const secure = this.#origin.startsWith("https://") ? "; Secure" : "";
      if (known === undefined) {
        response.appendHeader("set-cookie", `vettance_session=${session}; Path=/; HttpOnly; SameSite=Lax${secure}`);
      }
      answerJson(response, 200, minted);
    } catch (error) {
      if (!(error instanceof VettanceError)) throw error;
      console.warn(`vettance: no token for a page: ${error.message}`);
      answerJson(response, 503, { error: "no token now" });
    }
  }

  async #webhook(request: ShopRequest, response: ServerResponse): Promise<void> {
    if (this.#secrets.length === 0) throw new TypeError("webhookSecret is not set: the signingSecret of your subscription (whsec_…)");
    const body = await rawBody(request);
    if (body === undefined) return answer(response, 413, "", { connection: "close" });
    let event: WebhookEvent;
    try {
      event = await verifyWebhook(body, request.headers, this.#secrets, { toleranceSeconds: TOLERANCE_S });
    } catch (error) {
      if (!(error instanceof BadSignature)) throw error;
      console.warn(`vettance: a webhook was refused: ${error.message}`);
      return answer(response, 401, "");
    }
    const { onWebhook } = this.#settings;
    if (onWebhook === undefined) {
      console.error("vettance: a webhook came and nothing handles it: set onWebhook");
      return answer(response, 503, "");
    }
    const id = String(request.headers["webhook-id"] ?? "");
    if (id === "" || id.length > DELIVERY_ID_CHARS_MAX) return answer(response, 401, "");
    const claim = await this.#deliveries.claim(id);
    if (claim === "busy") return answer(response, 503, "", { "retry-after": String(LEASE_S) });
    if (claim === "new") {
      try {
        await onWebhook(event);
      } catch (error) {
        await this.#deliveries.release(id);
        throw error;
      }
      await this.#deliveries.finish(id);
    }
    answer(response, 204, "");
  }
}

function oneOf(name: string, value: string | undefined, words: readonly string[]): void {
  if (value !== undefined && !words.includes(value)) throw new TypeError(`${name} is one of ${words.join(", ")}`);
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The session that the cookie names, undefined for anything that is not one of ours. */
function sessionIn(cookies: string | undefined): string | undefined {
  for (const one of (cookies ?? "").split(";")) {
    const [name, value = ""] = one.trim().split("=", 2);
    if (name === "vettance_session" && SESSION.test(value)) return value;
  }
  return undefined;
}

/** The bytes as they came; undefined when there are too many. */
async function rawBody(request: ShopRequest): Promise<Uint8Array | undefined> {
  const { body } = request as { body?: unknown };
  if (body instanceof Uint8Array) return body.length > BODY_BYTES_MAX ? undefined : body;
  if (request.readableDidRead) {
    throw new TypeError("use risk.routes() before express.json(): a webhook is verified by its raw bytes");
  }
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = [];
    let size = 0;
    request.on("data", (piece: Uint8Array) => {
      size += piece.length;
      if (size <= BODY_BYTES_MAX) pieces.push(piece);
      else resolve(undefined); // What follows is read and dropped until the connection is closed.
    });
    request.on("end", () => resolve(Buffer.concat(pieces)));
    request.on("error", reject);
    request.on("close", () => reject(new Error("the connection ended within a webhook")));
  });
}

function answer(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end(text);
}

function answerJson(response: ServerResponse, status: number, value: unknown): void {
  answer(response, status, JSON.stringify(value), { "content-type": "application/json", "cache-control": "no-store" });
}
