/** Typed client of the Vettance fraud and AML risk service. */

export { Client, isApproved, isDenied } from "./client.js";
export type { Decision, EvaluateOptions, OnUnavailable } from "./client.js";
export type { Endpoint, Options, Retry, Settings, Time } from "./caller.js";
export * from "./errors.js";
export type * from "./schema.js";
export { BadSignature, signWebhook, verifyWebhook } from "./webhooks.js";
export type { VerifyOptions, WebhookEvent } from "./webhooks.js";
