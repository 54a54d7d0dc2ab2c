/** Verifies webhooks: that they are from the service, and what they say. */

/** The webhook is not from the service, or was changed on the way: answer 401 and do nothing else. */
export class BadSignature extends Error {
  override readonly name = "BadSignature";
}

/** What a webhook says. `id` and `eventType` together are what to deduplicate on. */
export interface WebhookEvent {
  id: string;
  eventType: string;
  timestamp: string;
  data: Record<string, unknown>;
}

/** How strict to be. */
export interface VerifyOptions {
  /** How far the time of the Standard Webhooks headers may be off; `X-Webhook-Signature` alone then does not count. */
  toleranceSeconds?: number | undefined;
  now?: Date | undefined;
}

type Names = Headers | Record<string, string | string[] | undefined>;

/**
 * Verify the signature of the raw bytes of a webhook, and only then read them.
 *
 * `secret` is the subscription's `signingSecret`, or several while it is rotated. Either signature will do:
 * `X-Webhook-Signature`, or one of `webhook-signature` (Standard Webhooks). Throws `BadSignature`.
 */
export async function verifyWebhook(
  body: Uint8Array | string,
  headers: Names,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const secrets = (typeof secret === "string" ? [secret] : secret).filter((one) => one !== "");
  if (secrets.length === 0) throw new TypeError("secret must not be empty");
  let good = await isStandard(bytes, headers, secrets);
  if (options.toleranceSeconds === undefined) {
    good = good || (await isSimple(bytes, headers, secrets));
  } else if (good) {
    const now = (options.now ?? new Date()).getTime() / 1000;
    good = Math.abs(now - Number(header(headers, "webhook-timestamp"))) <= options.toleranceSeconds;
  }
  if (!good) throw new BadSignature("The signature of the webhook is missing or wrong.");
  try {
    const said = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    const data = said["data"] as Record<string, unknown>;
    const eventType = String(said["eventType"]);
    return { id: String(data["id"] ?? ""), eventType, timestamp: String(said["timestamp"]), data };
  } catch {
    throw new BadSignature("The webhook is signed, yet not an envelope with eventType, timestamp and data.");
  }
}

/** What `X-Webhook-Signature` must be: for tests of your own receiver. */
export async function signWebhook(body: Uint8Array | string, secret: string): Promise<string> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const made = await hmac(new TextEncoder().encode(secret), bytes);
  return `sha256=${[...made].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

async function isSimple(body: Uint8Array, headers: Names, secrets: readonly string[]): Promise<boolean> {
  const given = header(headers, "x-webhook-signature").trim();
  const made = await Promise.all(secrets.map((one) => signWebhook(body, one)));
  // All are compared, so that the time does not say which one it was.
  return made.map((one) => isSame(one, given)).includes(true);
}

async function isStandard(body: Uint8Array, headers: Names, secrets: readonly string[]): Promise<boolean> {
  const signatures = header(headers, "webhook-signature").split(" ");
  const given = signatures.filter((one) => one.startsWith("v1,")).map((one) => one.slice(3));
  const timestamp = header(headers, "webhook-timestamp");
  if (given.length === 0 || !/^\d+$/.test(timestamp)) return false;
  const before = new TextEncoder().encode(`${header(headers, "webhook-id")}.${timestamp}.`);
  const signed = new Uint8Array(before.length + body.length);
  signed.set(before);
  signed.set(body, before.length);
  const keys = secrets.map(keyOf).filter((key) => key !== undefined);
  const made = await Promise.all(keys.map((key) => hmac(key, signed)));
  const texts = made.map((one) => btoa(String.fromCharCode(...one)));
  return texts.flatMap((mine) => given.map((one) => isSame(mine, one))).includes(true);
}

function keyOf(secret: string): Uint8Array | undefined {
  try {
    const text = atob(secret.replace(/^whsec_/, ""));
    return text === "" ? undefined : Uint8Array.from(text, (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

async function hmac(key: Uint8Array, bytes: Uint8Array): Promise<Uint8Array> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key as BufferSource, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, bytes as BufferSource));
}

/** Compare in a time that says nothing about where two texts differ. */
function isSame(one: string, other: string): boolean {
  let different = one.length ^ other.length;
  for (let index = 0; index < one.length; index++) {
    different |= one.charCodeAt(index) ^ (other.charCodeAt(index) || 0);
  }
  return different === 0;
}

function header(headers: Names, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return (Array.isArray(value) ? value[0] : value) ?? "";
  }
  return "";
}
