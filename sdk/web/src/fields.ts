// How form fields came to be filled: typed, pasted, filled in by the browser, or by a program. Which field it is
// and what stands in it is never looked at, only whether it differs from what the page itself put there.

export type Field = HTMLInputElement | HTMLTextAreaElement | HTMLElement

/** Ways in which a field is filled, the weakest evidence of a person last. */
export const WAYS = ['typed', 'pasted', 'autofilled', 'inserted', 'scripted', 'silent'] as const
export type Way = (typeof WAYS)[number]

const TEXT = /^(text|email|password|tel|url|search|number|)$/

export const fieldOf = (event: Event): Field | null => {
  // Inside a shadow root the page sees the host only; the path has the field itself.
  const target = (event.composedPath ? event.composedPath()[0] : event.target) as Element | null
  if (!target || !target.tagName) return null
  if (target.tagName === 'INPUT') return TEXT.test((target as HTMLInputElement).type) ? (target as Field) : null
  if (target.tagName === 'TEXTAREA' || (target as HTMLElement).isContentEditable) return target as Field
  return null
}

export const fields = () => {
  let known = new Map<Field, Set<Way>>()
  // What stood in a field when this account began was put there before it.
  let before = new Set<Field>()

  const changed = (): (HTMLInputElement | HTMLTextAreaElement)[] =>
    Array.from(document.querySelectorAll<HTMLInputElement>('input,textarea')).filter(
      (field) => (field.tagName === 'TEXTAREA' || TEXT.test(field.type)) && field.value !== field.defaultValue,
    )

  const note = (field: Field, way: Way): void => {
    if (!known.has(field) && known.size > 200) return
    known.set(field, (known.get(field) || new Set()).add(way))
  }

  return {
    note,
    /** Count the filled fields by the way in which each was filled. */
    signals(): Record<string, unknown> {
      for (const field of changed()) {
        if (!known.has(field) && !before.has(field)) note(field, field.matches(':autofill') ? 'autofilled' : 'silent')
      }
      const count: Record<string, number> = {}
      known.forEach((ways) => {
        for (const way of ways) count[way] = (count[way] || 0) + 1
      })
      return known.size ? { fields: { filled: known.size, ...count } } : {}
    },
    /** Begin a new account. On the first of a page nothing stands there before: what does was filled in unseen. */
    reset(isFirst?: boolean): void {
      known = new Map()
      before = new Set(isFirst ? [] : changed())
    },
  }
}
