// What pages give the SDK and get from it. These types are published as they are.

/** What your server answers when it minted a token (`POST /api/v1/websdk/tokens`), passed on unchanged. */
export interface Token {
  token: string
  sdkSessionId: string
  expiresAt: string
}

export interface Options {
  /** Where the risk service answers, such as `https://risk.example`; without `/api/v1`. */
  endpoint: string
  /** Fetches a token from your own server. Called again when a token is about to expire. */
  getToken: () => Promise<Token>
  /**
   * Whether the person agreed to be measured. Without it nothing is measured, stored or queued; `collect` still
   * works and then carries no signals. A function is asked at every start.
   */
  consent?: boolean | (() => boolean | Promise<boolean>)
  /** Your own id of the session, when the token does not carry it. */
  tenantSessionId?: string
  /** Milliseconds between two batches of queued signals. Default 5000; 0 sends them only when the page is left. */
  flushEveryMs?: number
  /** Milliseconds after which `collect` gives up and answers null. Default 5000. */
  collectTimeoutMs?: number
}

export type Category = 'AUTHENTICATION' | 'TRANSACTION' | 'OTHER'

export interface Question {
  category: Category
  customerId?: string
  deviceId?: string
  /** What you want rules to know, such as `eventName`, `amount` and `currency`. */
  payload?: Record<string, unknown>
}

export interface Decision {
  eventId: string
  decision: 'ALLOW' | 'REVIEW' | 'BLOCK'
  score: number
  eventCategory: string
  rulesEvaluated: number
}

/** `queued`: a batch was taken. `decision`: an answer came. `error`: something failed; nothing is thrown. */
export interface Events {
  queued: { batchId: string }
  decision: Decision
  error: { what: string; status?: number }
}

export interface Vettance {
  /** Begin to measure (with consent) and to send. Safe to call again. */
  start(): Promise<void>
  /** Stop measuring and sending; what was measured and not sent is dropped. */
  stop(): void
  /** Note that another page is shown; navigations of single-page apps are noticed by themselves. */
  page(): void
  /** Name the person, by your own id. */
  identify(userExternalId: string): void
  /** Ask for a decision. Resolves to null when the risk service cannot be reached in time: you decide then. */
  collect(question: Question): Promise<Decision | null>
  /** Send what was measured so far. Resolves when it was taken, or after a while. */
  flush(): Promise<void>
  /** Stop, and delete everything that was measured or stored in this browser. */
  forget(): void
  /** Listen; returns a function that stops listening. */
  on<Name extends keyof Events>(name: Name, listen: (event: Events[Name]) => void): () => void
}

export type Signals = Record<string, unknown>

/** Something that adds signals of its own: the full build's device and automation hints. */
export type Extra = () => Promise<Signals>
