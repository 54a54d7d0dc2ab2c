// Calls the TypeScript client for the tests: one JSON request a line on standard input, one answer a line back.
import { createInterface } from "node:readline";
import { Client, verifyWebhook, VettanceError } from "../../clients/typescript/dist/index.js";

const clients = new Map();

function clientFor(settings) {
  const name = JSON.stringify(settings);
  if (!clients.has(name)) clients.set(name, new Client(settings));
  return clients.get(name);
}

async function perform({ settings, method, args, rows }) {
  if (method === "verifyWebhook") {
    const [body, headers, secret, options] = args;
    return verifyWebhook(Buffer.from(body, "base64"), headers, secret, options);
  }
  const called = clientFor(settings)[method](...args);
  if (!rows) return called;
  const all = [];
  for await (const row of called) all.push(row);
  return all;
}

function failed(error) {
  const known = error instanceof VettanceError;
  return {
    error: error.name,
    code: error.code,
    message: error.message,
    details: error.details,
    requestId: error.requestId,
    status: error.status,
    retryAfterSeconds: error.retryAfterSeconds,
    known,
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    const value = await perform(request);
    answer = { value: value?.cause ? { ...value, cause: failed(value.cause) } : value };
  } catch (error) {
    answer = failed(error);
  }
  console.log(JSON.stringify(answer));
}
