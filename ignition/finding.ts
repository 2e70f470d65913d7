/** One compared value of the post-deployment check. */
export interface Finding {
  readonly what: string
  readonly expected: string
  readonly found: string
  readonly ok: boolean
}

/** As text, so that numbers of any type and addresses in any case are compared by value. */
export const text = (value: unknown): string =>
  Array.isArray(value) ? value.map(text).join(' ') : String(value).toLowerCase()

export const finding = (what: string, expected: unknown, found: unknown): Finding => ({
  what,
  expected: text(expected),
  found: text(found),
  ok: text(expected) === text(found),
})
