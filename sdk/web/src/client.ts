// The object that pages use: measures with consent, sends in the background, and never lets anything out that
// could break a page.
import { behaviour } from './behaviour'
import { transport } from './transport'
import type { Decision, Events, Extra, Options, Signals, Vettance } from './types'

export const VERSION = '1.0.0'

const BATCH_CHARS_MAX = 16_000
const ANONYMOUS = 'vettance.anonymousId'

const randomId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

/** Remembered only with consent, and deleted by `forget`. */
const anonymousId = (): string => {
  try {
    const known = localStorage.getItem(ANONYMOUS) || randomId()
    localStorage.setItem(ANONYMOUS, known)
    return known
  } catch {
    return randomId()
  }
}

/** Addresses without what may name a person: no query, no fragment. */
const plain = (address: string): string => (address.split(/[?#]/)[0] || '').slice(0, 1024)

export const client = (options: Options, build: string, extra?: Extra): Vettance => {
  const listeners: { [Name in keyof Events]?: Set<(event: never) => void> } = {}
  const emit = <Name extends keyof Events>(name: Name, event: Events[Name]): void => {
    listeners[name]?.forEach((listen) => {
      try {
        ;(listen as (event: Events[Name]) => void)(event)
      } catch {
        // What a listener of the page does wrong stays there.
      }
    })
  }
  const fail = (what: string, status?: number): void => emit('error', status ? { what, status } : { what })
  // Imported on a server there is nothing to measure and nobody to ask for.
  const isBrowser = typeof document !== 'undefined'
  const seen = isBrowser ? behaviour() : null
  const way = transport(options.endpoint, () => options.getToken(), fail, (batchId) => emit('queued', { batchId }))
  let measuring = false
  let running = false
  let timer: ReturnType<typeof setInterval> | undefined
  let user: string | undefined
  let address = ''
  let known: Signals = {}
  let anonymous = ''

  const about = (): Record<string, unknown> => ({
    anonymousId: anonymous,
    ...(options.tenantSessionId && { tenantSessionId: options.tenantSessionId }),
    ...(user && { identity: { userExternalId: user } }),
    page: { url: plain(location.href), referrer: plain(document.referrer) },
  })

  const pack = (): void => {
    if (!measuring || !seen || !seen.hasNews()) return
    const signals: Signals = { sdk: build, sdkVersion: VERSION, ...seen.news(), ...known }
    const body = { ...about(), signals }
    // Lists are what grows; without them every batch is small.
    if (JSON.stringify(body).length > BATCH_CHARS_MAX) {
      for (const name in signals) if (Array.isArray(signals[name])) signals[name] = (signals[name] as []).slice(-64)
    }
    void way.queue({ batchId: randomId(), body })
  }

  const navigated = (): void => {
    if (!measuring || location.href === address) return
    address = location.href
    pack()
    seen?.reset()
  }
  const hidden = (): void => {
    if (document.visibilityState !== 'hidden') return
    pack()
    way.leave()
  }
  const left = (): void => {
    pack()
    way.leave()
  }
  const online = (): void => way.hurry()

  const listen = (how: 'addEventListener' | 'removeEventListener'): void => {
    document[how]('visibilitychange', hidden)
    window[how]('pagehide', left)
    window[how]('online', online)
    window[how]('popstate', navigated)
    window[how]('hashchange', navigated)
  }

  const safely = <Value>(work: () => Value, otherwise: Value, what: string): Value => {
    try {
      return work()
    } catch {
      fail(what)
      return otherwise
    }
  }

  const self: Vettance = {
    async start() {
      if (!isBrowser || running) return
      running = true
      try {
        const { consent } = options
        const agreed = typeof consent === 'function' ? await consent() : consent
        way.start()
        if (agreed !== true || measuring || !running) return
        measuring = true
        anonymous = anonymousId()
        address = location.href
        seen?.listen()
        listen('addEventListener')
        const everyMs = options.flushEveryMs ?? 5000
        // Single-page apps change the address without an event that all browsers have.
        timer = setInterval(() => {
          navigated()
          if (everyMs) pack()
        }, everyMs || 1000)
        if (extra) {
          extra().then(
            (signals) => {
              if (measuring) known = signals
            },
            () => fail('device'),
          )
        }
      } catch {
        fail('start')
      }
    },
    stop() {
      safely(
        () => {
          running = measuring = false
          clearInterval(timer)
          way.stop()
          if (isBrowser) {
            seen?.ignore()
            listen('removeEventListener')
          }
        },
        undefined,
        'stop',
      )
    },
    page() {
      safely(
        () => {
          pack()
          if (isBrowser) address = location.href
          seen?.reset()
        },
        undefined,
        'page',
      )
    },
    identify(userExternalId) {
      user = userExternalId
    },
    async collect(question) {
      const abort = typeof AbortController !== 'undefined' ? new AbortController() : null
      let gaveUp: ReturnType<typeof setTimeout> | undefined
      try {
        const signals = measuring && seen ? { sdk: build, sdkVersion: VERSION, ...seen.whole(), ...known } : undefined
        const asked = way.post(
          '/collect',
          (used) => ({
            sessionId: used.sdkSessionId,
            ...question,
            ...(question.customerId || !user ? {} : { customerId: user }),
            ...(signals && { sdkSignals: signals }),
          }),
          abort?.signal,
        )
        const tooLate = new Promise<null>((resolve) => {
          gaveUp = setTimeout(() => {
            resolve(null)
            abort?.abort()
          }, options.collectTimeoutMs ?? 5000)
        })
        asked.catch(() => undefined)
        const answer = await Promise.race([asked, tooLate])
        if (answer?.status !== 200 || typeof answer.body.decision !== 'string') {
          fail('collect', answer?.status)
          return null
        }
        const decision = answer.body as unknown as Decision
        emit('decision', decision)
        return decision
      } catch {
        fail('collect')
        return null
      } finally {
        clearTimeout(gaveUp)
      }
    },
    async flush() {
      safely(pack, undefined, 'flush')
      way.hurry()
      await way.settled(options.collectTimeoutMs ?? 5000)
    },
    forget() {
      self.stop()
      safely(
        () => {
          user = undefined
          known = {}
          way.forget()
          seen?.reset()
          localStorage.removeItem(ANONYMOUS)
        },
        undefined,
        'forget',
      )
    },
    on(name, listener) {
      const all = (listeners[name] = listeners[name] || new Set()) as Set<(event: never) => void>
      all.add(listener as (event: never) => void)
      return () => void all.delete(listener as (event: never) => void)
    },
  }
  return self
}
