/** The address of a client, from the connection and from trusted proxies only. */

/// <reference types="node" />
import { BlockList, isIP } from "node:net";

/** Proxies of your own: addresses, networks such as `10.0.0.0/8`, and `unix` for one that connects by a Unix socket. */
export class Proxies {
  readonly #networks = new BlockList();
  readonly #isUnixTrusted: boolean;

  constructor(said: readonly string[]) {
    this.#isUnixTrusted = said.includes("unix");
    for (const one of said) {
      if (one === "unix") continue;
      const [address = "", bits] = one.split("/");
      const kind = isIP(address);
      if (kind === 0 || (bits !== undefined && !/^\d+$/.test(bits))) {
        throw new TypeError(`proxies: ${JSON.stringify(one)} is no address or network such as 10.0.0.0/8`);
      }
      const family = kind === 4 ? "ipv4" : "ipv6";
      try {
        this.#networks.addSubnet(address, Number(bits ?? (kind === 4 ? 32 : 128)), family);
      } catch (error) {
        throw new TypeError(`proxies: ${JSON.stringify(one)} is no network`, { cause: error });
      }
    }
  }

  /**
   * The address of the client, undefined when it is not known.
   *
   * `peer` is who connected (undefined for a Unix socket), `forwardedFor` the value of `X-Forwarded-For`. It is read
   * from its end, and only as far as trusted proxies wrote it: what a client puts into it himself never counts. A
   * trusted proxy that says nothing leaves the address unknown: all visitors would seem to have the proxy's.
   */
  clientAddress(peer: string | undefined, forwardedFor: string): string | undefined {
    let address = addressIn(peer ?? "");
    if (address === undefined) {
      if (!this.#isUnixTrusted || (peer !== undefined && peer !== "")) return undefined;
    } else if (!this.#isTrusted(address)) {
      return address;
    }
    const hops = forwardedFor.split(",").map((hop) => hop.trim()).filter((hop) => hop !== "");
    if (hops.length === 0) return undefined;
    for (const hop of hops.reverse()) {
      address = addressIn(hop);
      // A trusted proxy does not know where the request came from.
      if (address === undefined) return undefined;
      if (!this.#isTrusted(address)) break;
    }
    return address;
  }

  #isTrusted(address: string): boolean {
    return this.#networks.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
  }
}

function addressIn(text: string): string | undefined {
  let bare = text;
  if (bare.startsWith("[")) bare = bare.slice(1).split("]")[0] ?? "";
  else if (bare.split(":").length === 2) bare = bare.split(":")[0] ?? "";
  bare = bare.split("%")[0] ?? "";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare);
  if (mapped?.[1] !== undefined) bare = mapped[1];
  return isIP(bare) === 0 ? undefined : bare;
}
