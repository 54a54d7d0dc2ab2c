// What a page sees of the person at it: rhythm, ways and counts. Never which key, which place, which text.
import { fieldOf, fields, type Field } from './fields'
import { mouse } from './mouse'
import { round } from './spread'
import type { Signals } from './types'

// A longer pause is thinking, not typing.
const TYPING_PAUSE_MS = 2000
const KEPT = 256
// Input without a key this shortly before was put there by something else.
const KEY_MS = 1000
// A hand takes a mouse across this many pixels in more than this many moves.
const JUMP_PX = 60
const JUMP_MOVES = 3

/** A key that went down in a field; when it was let go, and when the next went down before that. */
interface Key {
  field: Field | null
  at: number
  up?: number
  next?: number
}

/** A list of which the newest numbers are kept, and which knows what is new since it was last sent. */
const series = () => {
  let kept: number[] = []
  let fresh = 0
  return {
    add(value: number): void {
      kept.push(round(value))
      if (kept.length > KEPT) kept.shift()
      fresh = Math.min(fresh + 1, KEPT)
    },
    all: (): number[] => [...kept],
    take(): number[] {
      const taken = fresh ? kept.slice(-fresh) : []
      fresh = 0
      return taken
    },
    reset(): void {
      kept = []
      fresh = 0
    },
  }
}

export const behaviour = () => {
  const counts: Record<string, number> = {}
  let sent: Record<string, number> = {}
  const intervals = series()
  const dwells = series()
  const gaps = series()
  const presses = series()
  const moves = mouse()
  const filled = fields()
  const down = new Map<string, Key>()
  let flags: Record<string, boolean> = {}
  let shownAt = 0
  let firstInputAt = 0
  let lastInputAt = 0
  let lastKey: Key = { field: null, at: 0 }
  let pressedAt = 0
  let restedAt: [x: number, y: number] | null = null
  let movesSince = 0
  let touched = false

  const count = (name: string): void => {
    counts[name] = (counts[name] || 0) + 1
  }

  const listeners: Record<string, (event: never) => void> = {
    keydown(event: KeyboardEvent) {
      const field = fieldOf(event)
      // A key that is held down repeats at a fixed pace and says nothing.
      if (event.repeat) return
      count('keyCount')
      const at = event.timeStamp
      const key: Key = { field, at }
      if (down.size > 20) down.clear()
      down.set(event.code, key)
      if (!field) return
      // Keys that only change others (Shift) or lead away (Tab, Enter) are no typing; which of the rest it is
      // does not matter.
      if (event.key.length > 1 && !/^(Backspace|Delete|Unidentified|Process)$/.test(event.key)) return
      if (lastKey.field === field && at - lastKey.at < TYPING_PAUSE_MS) {
        intervals.add(at - lastKey.at)
        // The gap to a key that is still held is known when that one is let go.
        if (lastKey.up) gaps.add(at - lastKey.up)
        else lastKey.next = at
      }
      lastKey = key
    },
    keyup(event: KeyboardEvent) {
      const key = down.get(event.code)
      down.delete(event.code)
      if (!key) return
      key.up = event.timeStamp
      dwells.add(key.up - key.at)
      if (key.next) gaps.add(key.next - key.up)
    },
    input(event: InputEvent) {
      const field = fieldOf(event)
      if (!field) return
      firstInputAt = firstInputAt || event.timeStamp
      lastInputAt = event.timeStamp
      const type = event.inputType || ''
      if (/Paste|Drop|Yank/.test(type)) filled.note(field, 'pasted')
      else if (!type || type === 'insertReplacementText') filled.note(field, 'autofilled')
      else if (/^insert/.test(type)) {
        const keyed = lastKey.field === field && event.timeStamp - lastKey.at < KEY_MS
        // Keyboards on glass, dictation into them and input methods send text without keys.
        filled.note(field, keyed || event.isComposing || touched ? 'typed' : 'inserted')
      }
    },
    paste() {
      count('pasteCount')
      flags.paste = true
    },
    pointermove(event: PointerEvent) {
      if (event.pointerType !== 'mouse') return
      count('mouseMoves')
      movesSince++
      // Browsers hand moves over once a frame; what lies between is the way of the hand itself.
      const between = event.getCoalescedEvents ? event.getCoalescedEvents() : []
      for (const each of between.length ? between : [event]) moves.move(each.clientX, each.clientY, each.timeStamp)
    },
    pointerdown(event: PointerEvent) {
      moves.finish()
      pressedAt = event.timeStamp
      count('pressCount')
      if (event.pointerType === 'mouse') {
        const { clientX: x, clientY: y } = event
        // Pressed far from where it was pressed before, and next to no way between.
        if (restedAt && movesSince < JUMP_MOVES && Math.hypot(x - restedAt[0], y - restedAt[1]) > JUMP_PX) count('jumpCount')
        restedAt = [x, y]
        movesSince = 0
      }
      if (event.pointerType === 'touch') {
        touched = flags.touch = true
        count('touchCount')
      }
    },
    pointerup(event: PointerEvent) {
      if (pressedAt) presses.add(event.timeStamp - pressedAt)
      pressedAt = 0
    },
    click() {
      count('clickCount')
    },
    wheel() {
      count('wheelCount')
    },
  }

  const handle = (event: Event): void => {
    try {
      if (event.isTrusted) {
        if (event.type !== 'pointermove' || (event as PointerEvent).pointerType !== 'mouse') count('interactionCount')
        ;(listeners[event.type] as (event: Event) => void)(event)
        return
      }
      count('untrustedCount')
      if (event.type === 'click') count('untrustedClickCount')
      if (event.type === 'input') {
        const field = fieldOf(event)
        firstInputAt = firstInputAt || event.timeStamp
        lastInputAt = event.timeStamp
        if (field) filled.note(field, 'scripted')
      }
    } catch {
      // An unusual event must not disturb the page.
    }
  }

  const options = { capture: true, passive: true }

  const reset = (isFirst?: boolean): void => {
    for (const name in counts) delete counts[name]
    sent = {}
    flags = {}
    for (const each of [intervals, dwells, gaps, presses, moves]) each.reset()
    filled.reset(isFirst)
    firstInputAt = lastInputAt = pressedAt = 0
    restedAt = null
    lastKey = { field: null, at: 0 }
    shownAt = performance.now()
  }

  const state = (): Signals => {
    const now = performance.now()
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
    return {
      ...flags,
      secondsOnPage: round((now - shownAt) / 1000),
      ...(firstInputAt && {
        formSeconds: round((now - firstInputAt) / 1000),
        fillSeconds: round((lastInputAt - firstInputAt) / 1000),
      }),
      ...moves.signals(),
      ...filled.signals(),
      timezone: zone,
      timezoneOffset: new Date().getTimezoneOffset(),
      languages: [...(navigator.languages || [])].slice(0, 8),
    }
  }

  return {
    listen(): void {
      reset(true)
      for (const type in listeners) document.addEventListener(type, handle, options)
    },
    ignore(): void {
      for (const type in listeners) document.removeEventListener(type, handle, options)
    },
    reset: (): void => reset(),
    /** Whether something happened that was not in a batch yet. */
    hasNews: (): boolean => Object.keys(counts).some((name) => counts[name] !== sent[name]),
    /** Everything since the page was shown, for a decision now. */
    whole(): Signals {
      moves.finish()
      return {
        interactionCount: 0,
        mouseMoves: 0,
        ...counts,
        keystrokeIntervals: intervals.all(),
        keystrokeDwells: dwells.all(),
        keystrokeGaps: gaps.all(),
        pressDwells: presses.all(),
        paste: false,
        touch: touched,
        // Said also when there are none: what an earlier page of the session had filled in is not this page's.
        fields: { filled: 0 },
        ...state(),
      }
    },
    /** What is new since the last batch; counts and lists of batches add up on the server. */
    news(): Signals {
      moves.finish()
      const fresh: Record<string, number> = {}
      for (const name in counts) fresh[name] = counts[name]! - (sent[name] || 0)
      sent = { ...counts }
      const lists: Record<string, number[]> = {
        keystrokeIntervals: intervals.take(),
        keystrokeDwells: dwells.take(),
        keystrokeGaps: gaps.take(),
        pressDwells: presses.take(),
      }
      for (const name in fresh) if (!fresh[name]) delete fresh[name]
      for (const name in lists) if (!lists[name]!.length) delete lists[name]
      return { ...fresh, ...lists, ...state() }
    },
  }
}
