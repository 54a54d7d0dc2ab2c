/** The client: a method for each endpoint, and decisions that a shop goes on without. */

import type { Options } from "./caller.js";
import { ApiError, NotReached, QuotaExceeded, UnreadableAnswer, VettanceError } from "./errors.js";
import { Methods } from "./methods.js";
import type { DecisionAnswer, EventBody } from "./schema.js";

/** What to go on with when there is no decision to be had. */
export type OnUnavailable = "approve" | "review" | "deny" | "raise";

/** The answer of `POST /api/v1/decisions/evaluate`, or what `onUnavailable` put in its place. */
export type Decision = DecisionAnswer & {
  /** The decision is the client's own: there was none to be had. */
  isFallback: boolean;
  /** The error that came instead of an answer. */
  cause?: VettanceError;
};

/** What `evaluate` may be told. */
export interface EvaluateOptions extends Options {
  onUnavailable?: OnUnavailable | undefined;
}

const SCORES = { approve: ["low", 0], review: ["medium", 50], deny: ["critical", 100] } as const;

/**
 * A client of the service.
 *
 * ```ts
 * const client = new Client({ baseUrl: "https://risk.example.com", apiKey });
 * const decision = await client.evaluate(
 *   { eventName: "user.login", customer: { externalId: "c-1" } },
 *   { deadlineMs: 150, onUnavailable: "approve" },
 * );
 * ```
 */
export class Client extends Methods {
  /**
   * Evaluate an event.
   *
   * `deadlineMs` bounds the call with all its attempts. When there is no decision (the service is away, too slow, over
   * a limit, or at fault), `onUnavailable` says what to go on with; the decision then has `isFallback` and `cause`.
   * Faults of the caller (a wrong key, a wrong event) are thrown all the same.
   *
   * `POST /api/v1/decisions/evaluate`
   */
  override async evaluate(body: EventBody, options: EvaluateOptions = {}): Promise<Decision> {
    const word = options.onUnavailable ?? "raise";
    if (!(word in SCORES) && word !== "raise") throw new TypeError("onUnavailable is approve, review, deny or raise");
    if (options.deadlineMs !== undefined && !(options.deadlineMs > 0)) throw new TypeError("deadlineMs must be more than 0");
    try {
      return { ...(await super.evaluate(body, options)), isFallback: false };
    } catch (error) {
      if (word === "raise" || !(error instanceof VettanceError) || !isAway(error)) throw error;
      return decideAlone(word, error);
    }
  }
}

/** Whether a decision says to go on; both vocabularies of the service are understood. */
export function isApproved(decision: { decision: string }): boolean {
  return ["approve", "allow"].includes(decision.decision.toLowerCase());
}

/** Whether a decision says to stop. */
export function isDenied(decision: { decision: string }): boolean {
  return ["deny", "block"].includes(decision.decision.toLowerCase());
}

function isAway(error: VettanceError): boolean {
  if (error instanceof NotReached || error instanceof QuotaExceeded || error instanceof UnreadableAnswer) return true;
  return error instanceof ApiError && error.status >= 500;
}

function decideAlone(word: "approve" | "review" | "deny", cause: VettanceError): Decision {
  const [riskLevel, riskScore] = SCORES[word];
  return {
    decision: word,
    riskScore,
    riskLevel,
    reasonCodes: [{ code: "SERVICE_UNAVAILABLE", explanation: "The risk service gave no decision." }],
    correlationIds: { requestId: cause.requestId ?? "", eventId: "" },
    ruleVersion: { version: "" },
    recommendedActions: [],
    evaluatedAt: new Date().toISOString(),
    isFallback: true,
    cause,
  };
}
