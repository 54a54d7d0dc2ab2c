// The part of `python bench client_overhead` that runs in Node: calls by `fetch` and by the client, in turn.
const [built, url, event, calls, rounds] = process.argv.slice(2);
const { Client } = await import(built);

const client = new Client({ baseUrl: new URL(url).origin, apiKey: "key" });
const body = JSON.parse(event);
const headers = { "content-type": "application/json", "x-api-key": "key", accept: "application/json" };
const bare = async () => (await fetch(url, { method: "POST", headers, body: event })).text();
const whole = () => client.evaluate(body, { deadlineMs: 10_000 });

const took = { bare: [], client: [] };
for (let round = 0; round <= Number(rounds); round++) {
  for (const [name, call] of [["bare", bare], ["client", whole]]) {
    const began = process.cpuUsage();
    for (let n = 0; n < Number(calls); n++) await call();
    const { user, system } = process.cpuUsage(began);
    if (round > 0) took[name].push((user + system) / Number(calls)); // The first one warms up.
  }
}
console.log(JSON.stringify(took));
