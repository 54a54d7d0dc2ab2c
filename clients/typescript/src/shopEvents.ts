/** The events of a shop: what its visitors do, as the service takes it. */

import type { EventBody } from "./schema.js";

const TEXT_CHARS_MAX = 1024;

/** Who sent a request, as far as the request says. */
export interface Visitor {
  ip: string | undefined;
  userAgent: string | undefined;
  sessionId: string | undefined;
}

/** What a login may say. */
export interface LoginSaid {
  /** `failure` after a wrong password; `success` unless said. */
  outcome?: "success" | "failure" | undefined;
  email?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
}

/** What a payment says. `amount` is in units of its currency, not cents. */
export interface PaymentSaid {
  amount: number;
  currency: string;
  /** Your own id; whom `customerOf` names unless said. */
  customer?: string | undefined;
  email?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
}

export function loginEvent(customer: string | undefined, said: LoginSaid): EventBody {
  const outcome = said.outcome ?? "success";
  if (outcome !== "success" && outcome !== "failure") throw new TypeError("outcome is success or failure");
  return {
    eventName: "user.login",
    eventCategory: "AUTHENTICATION",
    ...customerIn(customer, said.email),
    metadata: { ...said.metadata, outcome },
  };
}

export function paymentEvent(customer: string | undefined, said: PaymentSaid): EventBody {
  if (typeof said.amount !== "number" || !(said.amount >= 0 && said.amount < Infinity)) {
    throw new TypeError("amount must be a number that is not negative");
  }
  if (!/^[A-Za-z]{3}$/.test(said.currency)) throw new TypeError("currency is three letters such as EUR");
  return {
    eventName: "payment.attempt",
    eventCategory: "TRANSACTION",
    ...customerIn(customer, said.email),
    metadata: { ...said.metadata, amount: said.amount, currency: said.currency.toUpperCase() },
  };
}

/** An event with what the request says of its visitor; what the event says itself is kept. */
export function withVisitor(event: EventBody, visitor: Visitor): EventBody {
  return {
    ...(visitor.ip !== undefined && { ip: visitor.ip }),
    ...(visitor.userAgent !== undefined && { userAgent: visitor.userAgent.slice(0, TEXT_CHARS_MAX) }),
    ...(visitor.sessionId !== undefined && { sessionId: visitor.sessionId }),
    ...event,
  };
}

function customerIn(customer: string | undefined, email: string | undefined): Pick<EventBody, "customer"> {
  const said = {
    ...(customer !== undefined && { externalId: String(customer) }),
    ...(email && { email: email.slice(0, TEXT_CHARS_MAX) }),
  };
  return Object.keys(said).length === 0 ? {} : { customer: said };
}
