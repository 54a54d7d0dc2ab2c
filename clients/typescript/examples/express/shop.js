// A small shop in Express: a login, a payment, a webhook, and the browser SDK in its page.
// People and orders are in memory; a real shop has a database, and its own second factor.
import { randomBytes, randomInt, scryptSync, timingSafeEqual } from "node:crypto";
import { Denied, Risk } from "@vettance/client/express";
import express from "express";

const port = Number(process.env.SHOP_PORT ?? 8000);
const service = process.env.VETTANCE_URL ?? "http://127.0.0.1:8080";
const TRIES_MAX = 5;

const salt = randomBytes(16);
const digestOf = (/** @type {string} */ password) => scryptSync(password, salt, 32, { N: 4096 });
/** E-mail → digest of the password: `anna@example.com=secret,…` in `SHOP_PEOPLE`. */
const people = new Map(
  (process.env.SHOP_PEOPLE ?? "")
    .split(",")
    .filter((one) => one.includes("="))
    .map((one) => /** @type {[string, Buffer]} */ ([one.split("=")[0], digestOf(one.split("=")[1] ?? "")])),
);
/** Session → who is signed in, or whose login waits for a code. @type {Map<string, {email?: string, waits?: string, code?: string, tries?: number}>} */
const sessions = new Map();
/** @type {{email: string, amount: number, state: string, decision: string}[]} */
const orders = [];

const nameOf = (/** @type {import("express").Request} */ req) => /(?:^|; )session=([\w-]+)/.exec(req.headers.cookie ?? "")?.[1] ?? "";
const signedIn = (/** @type {import("express").Request} */ req) => sessions.get(nameOf(req))?.email;

const risk = new Risk({
  baseUrl: service,
  apiKey: process.env.VETTANCE_KEY,
  origin: process.env.SHOP_ORIGIN ?? `http://127.0.0.1:${port}`,
  webhookSecret: process.env.VETTANCE_WEBHOOK_SECRET,
  deadlineMs: Number(process.env.SHOP_DEADLINE_MS ?? 250),
  onUnavailable: /** @type {"review"} */ (process.env.SHOP_ON_UNAVAILABLE ?? "review"),
  proxies: (process.env.SHOP_PROXIES ?? "").split(" ").filter((one) => one !== ""),
  consent: "given", // A shop with a banner leaves "asked".
  customerOf: signedIn,
  // Let an order go, or drop it, when a person has looked at it.
  onWebhook: (event) => {
    if (event.eventType !== "REVIEW_SETTLED") return;
    const { decisionId, outcome } = event.data;
    if (typeof decisionId !== "string") throw new Error("a settled review without its decision");
    for (const order of orders.filter((one) => one.decision === decisionId && one.state === "held")) {
      order.state = outcome === "approve" ? "paid" : "refused";
    }
  },
});

const app = express();
app.use(risk.routes()); // Before what parses bodies: webhooks are verified by their raw bytes.
app.use(express.urlencoded({ extended: false }));

app.get("/", (_req, res) => {
  res.set(
    "content-security-policy",
    `default-src 'self'; script-src 'self' ${service}; connect-src 'self' ${service}; ` +
      "img-src 'self' data:; require-trusted-types-for 'script'",
  );
  res.send(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title>
<link rel="icon" href="data:,">${risk.scripts()}</head><body>
<form method="post" action="login" data-vettance>
<input name="email" type="email"> <input name="password" type="password">
<button>Sign in</button></form></body></html>`);
});

const open = (/** @type {import("express").Response} */ res, /** @type {object} */ session) => {
  const name = randomBytes(24).toString("base64url");
  sessions.set(name, session);
  res.cookie("session", name, { httpOnly: true, sameSite: "lax" });
};

app.post("/login", async (req, res) => {
  const { email = "", password = "" } = req.body ?? {};
  const known = people.get(email);
  const given = digestOf(String(password));
  if (known === undefined || !timingSafeEqual(known, given)) {
    // Wrong passwords are reported too: guessing is seen by them. The answer is the same in any case.
    await risk.login(req, known && email, { outcome: "failure", email, onUnavailable: "deny" });
    return void res.status(401).send("wrong e-mail or password");
  }
  const decision = await risk.login(req, email, { email });
  // A denied login reads like a wrong password, so that nobody learns that it was right.
  if (decision.decision === "deny") return void res.status(401).send("wrong e-mail or password");
  if (decision.decision === "approve") {
    open(res, { email });
    return void res.redirect(303, "/orders");
  }
  const code = String(randomInt(1_000_000)).padStart(6, "0");
  open(res, { waits: email, code, tries: 0 });
  console.log(`mail to ${email}: code ${code}`);
  res.status(202).json({ code: "step_up_needed" });
});

app.post("/second-factor", (req, res) => {
  const session = sessions.get(nameOf(req));
  if (session?.waits === undefined || (session.tries ?? 0) >= TRIES_MAX) return void res.status(403).send("no login waits");
  session.tries = (session.tries ?? 0) + 1;
  const given = digestOf(String(req.body?.code ?? ""));
  if (!timingSafeEqual(given, digestOf(session.code ?? ""))) return void res.status(403).send("that is not the code");
  sessions.delete(nameOf(req));
  open(res, { email: session.waits });
  res.redirect(303, "/orders");
});

app.post(
  "/pay",
  (req, res, next) => (signedIn(req) === undefined ? void res.status(401).send("sign in first") : next()),
  (req, res, next) => {
    const amount = Number(req.body?.amount);
    return amount > 0 && amount < 100_000 ? next() : void res.status(422).send("no amount");
  },
  risk.protectPayment((req) => ({ amount: Number(req.body.amount), currency: "EUR", email: signedIn(req) }), { review: "pass" }),
  (req, res) => {
    const { decision } = res.locals;
    const state = decision.decision === "approve" ? "paid" : "held";
    const amount = Number(req.body.amount);
    orders.push({ email: signedIn(req) ?? "", amount, state, decision: decision.correlationIds.eventId });
    res.json({ state, amount });
  },
);

app.get("/orders", (req, res) => {
  const email = signedIn(req);
  if (email === undefined) return void res.status(401).send("sign in first");
  res.json(orders.filter((one) => one.email === email).map(({ amount, state }) => ({ amount, state })));
});

app.use((/** @type {unknown} */ error, /** @type {import("express").Request} */ _req, /** @type {import("express").Response} */ res, /** @type {import("express").NextFunction} */ next) => {
  if (error instanceof Denied) return void res.status(error.status).json({ code: error.code });
  next(error);
});

app.listen(port, "127.0.0.1");
