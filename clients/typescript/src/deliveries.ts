/** Which deliveries of webhooks were handled already, so that each has one effect. */

/** A process that dies while it handles a delivery holds it this long; the service tries for 31 seconds. */
export const LEASE_S = 20;
/** Deliveries can be sent again as long as the service keeps them. */
const KEEP_S = 90 * 86_400;
const IDS_MAX = 100_000;

export type Claim = "new" | "busy" | "done";

/** Remembers deliveries by their id. With several processes, they must share what is remembered. */
export interface Deliveries {
  /** Begin to handle a delivery, unless it is handled already, or just now by somebody else. */
  claim(deliveryId: string): Claim | Promise<Claim>;
  /** Remember that a delivery was handled. */
  finish(deliveryId: string): void | Promise<void>;
  /** Give a delivery back that could not be handled; the service sends it again. */
  release(deliveryId: string): void | Promise<void>;
}

/** Remembers the newest deliveries in the memory of one process, until that ends. */
export class MemoryDeliveries implements Deliveries {
  readonly #known = new Map<string, { state: Claim; until: number }>();
  readonly #nowS: () => number;

  constructor(nowS: () => number = () => performance.now() / 1000) {
    this.#nowS = nowS;
  }

  claim(deliveryId: string): Claim {
    const known = this.#known.get(deliveryId);
    if (known !== undefined && known.until > this.#nowS()) return known.state;
    this.#keep(deliveryId, "busy", LEASE_S);
    return "new";
  }

  finish(deliveryId: string): void {
    this.#keep(deliveryId, "done", KEEP_S);
  }

  release(deliveryId: string): void {
    this.#known.delete(deliveryId);
  }

  #keep(deliveryId: string, state: Claim, forS: number): void {
    this.#known.delete(deliveryId);
    this.#known.set(deliveryId, { state, until: this.#nowS() + forS });
    if (this.#known.size > IDS_MAX) this.#known.delete(this.#known.keys().next().value as string);
  }
}
