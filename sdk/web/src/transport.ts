// The way to the service: a token that is renewed in time, a clock that is put right, a queue that waits.
import type { Token } from './types'

const LIFE_SHARE = 0.8
const BACKOFF_MS_MAX = 16_000
const QUEUE_MAX = 100

export type Answer = { status: number; body: Record<string, unknown>; retryAfterMs: number }

export interface Batch {
  batchId: string
  body: Record<string, unknown>
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Seconds between the moments at which a token was issued and expires; its own words, read without trust. */
const lifeOf = (token: string): number => {
  try {
    const part = (token.split('.')[1] || '').replace(/-/g, '+').replace(/_/g, '/')
    const { iat, exp } = JSON.parse(atob(part)) as { iat: number; exp: number }
    return exp - iat > 0 ? exp - iat : 900
  } catch {
    return 900
  }
}

export const transport = (
  endpoint: string,
  getToken: () => Promise<Token>,
  fail: (what: string, status?: number) => void,
  queued: (batchId: string) => void,
) => {
  const base = endpoint.replace(/\/+$/, '') + '/api/v1'
  let token: Token | null = null
  let asking: Promise<Token> | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let renewAt = 0
  let offsetMs = 0
  let queue: Batch[] = []
  let draining: Promise<void> | null = null
  let stopped = true
  let wake: (() => void) | undefined

  const renew = (): Promise<Token> =>
    (asking =
      asking ||
      // A function of the page may throw at once as well.
      Promise.resolve().then(getToken).then(
        (fresh) => {
          asking = null
          token = fresh
          const lifeMs = lifeOf(fresh.token) * 1000 * LIFE_SHARE
          renewAt = Date.now() + lifeMs
          clearTimeout(timer)
          if (!stopped) timer = setTimeout(() => void renew().catch(() => fail('token')), lifeMs)
          return fresh
        },
        (error) => {
          asking = null
          throw error
        },
      ))

  // A page that slept has missed its timer, so the time is looked at again.
  const current = (): Promise<Token> => (token && Date.now() < renewAt ? Promise.resolve(token) : renew())

  /** Send a body once, and once more with a new token after a 401 or with a better clock after a 422. */
  const post = async (
    path: string,
    bodyOf: (token: Token, nowMs: number) => unknown,
    signal?: AbortSignal,
    isRetry?: boolean,
  ): Promise<Answer> => {
    const used = await current()
    const response = await fetch(base + path, {
      method: 'POST',
      mode: 'cors',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      // Lets a request outlive its page. Browsers allow 64 KiB of them at once, and batches are far smaller.
      keepalive: true,
      headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + used.token },
      body: JSON.stringify(bodyOf(used, Date.now() + offsetMs)),
      signal: signal || null,
    })
    const date = Date.parse(response.headers.get('Date') || '')
    // The header has whole seconds; a smaller difference is no difference.
    if (date) offsetMs = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0
    const body = (await response.json().catch(() => ({}))) as Record<string, any>
    if (!isRetry) {
      if (response.status === 401) {
        if (token === used) token = null
        return post(path, bodyOf, signal, true)
      }
      const serverTime = body.error?.details?.serverTime
      if (response.status === 422 && serverTime) {
        offsetMs = serverTime - Date.now()
        return post(path, bodyOf, signal, true)
      }
    }
    return {
      status: response.status,
      body,
      retryAfterMs: 1000 * (+(response.headers.get('Retry-After') || 0) || 0),
    }
  }

  const pause = (ms: number): Promise<void> =>
    Promise.race([later(ms), new Promise<void>((resolve) => (wake = resolve))])

  const sendBatch = (batch: Batch): Promise<Answer> =>
    post('/websdk/signals', (used, nowMs) => ({
      schemaVersion: 'websdk.v1',
      batchId: batch.batchId,
      sentAt: Math.round(nowMs),
      sdkSessionId: used.sdkSessionId,
      ...batch.body,
    }))

  const drain = async (): Promise<void> => {
    let tries = 0
    while (queue.length && !stopped) {
      const batch = queue[0]!
      let waitMs = 0
      try {
        const { status, retryAfterMs } = await sendBatch(batch)
        if (status === 429 || status >= 500) {
          fail('signals', status)
          waitMs = retryAfterMs || 1
        } else {
          queue = queue.filter((each) => each !== batch)
          tries = 0
          if (status === 202) queued(batch.batchId)
          else fail('signals', status)
        }
      } catch {
        fail('signals')
        waitMs = 1
      }
      if (waitMs) {
        // 1, 2, 4, 8, 16 seconds, of which a random part up to half is taken off so that pages do not return
        // in step; never below one second, nor below what the service asked for.
        const backoffMs = Math.min(BACKOFF_MS_MAX, 1000 * 2 ** tries++) * (1 - Math.random() / 2)
        await pause(Math.max(1000, backoffMs, waitMs))
      }
    }
  }

  return {
    post,
    start(): void {
      stopped = false
      void current().catch(() => fail('token'))
    },
    stop(): void {
      stopped = true
      clearTimeout(timer)
      queue = []
      wake?.()
    },
    forget(): void {
      token = null
    },
    /** Try again now: the browser is back on the network. */
    hurry(): void {
      wake?.()
    },
    /** Resolves when the queue is empty, or after a while. */
    settled: (withinMs: number): Promise<void> => Promise.race([draining || Promise.resolve(), later(withinMs)]),
    queue(batch: Batch): Promise<void> {
      queue.push(batch)
      // The oldest goes: what happens now matters more than what happened in a long absence.
      if (queue.length > QUEUE_MAX) queue.shift()
      return (draining = draining || drain().finally(() => (draining = null)))
    },
    /** Send what is left at once, without waiting for answers: the page is about to go. */
    leave(): void {
      for (const batch of queue.slice(-4)) sendBatch(batch).then(
        ({ status }) => {
          if (status === 202) queue = queue.filter((each) => each !== batch)
        },
        () => undefined,
      )
    },
  }
}
