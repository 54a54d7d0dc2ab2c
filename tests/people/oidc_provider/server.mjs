// An OpenID provider on 127.0.0.1: `node server.mjs PORT RETURN_URL PEOPLE`, PEOPLE being claims by user name.
import { Provider } from "oidc-provider";

const [port, returnUrl, people] = process.argv.slice(2);
const claimsOf = JSON.parse(people);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "vettance", client_secret: "a secret of tests", redirect_uris: [returnUrl] }],
  pkce: { required: () => true },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
  scopes: ["openid", "email", "profile", "groups"],
  features: { devInteractions: { enabled: true } },
  cookies: { keys: ["a key of tests"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...claimsOf[id] }) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listens"));
