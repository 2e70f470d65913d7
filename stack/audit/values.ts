/** Values that a source states, and differences between sources. */

/** The values of one source, as text by name: `user 3 free` -> `1000`. */
export type Values = ReadonlyMap<string, string>

export interface Source {
  readonly name: string
  readonly values: Values
  /** The users that it has values of; all if undefined. */
  readonly users?: ReadonlySet<string>
}

export const user = (userId: number): string => `user ${userId}`
export const positionName = (userId: number, marketId: number): string => `user ${userId} market ${marketId}`

/** `user 3 market 1 size` -> `user 3`. */
const ownerOf = (name: string): string => name.split(' ').slice(0, 2).join(' ')

/** Leaves zeros out: a value that a source lacks counts as zero. */
export function put(
  values: Map<string, string>,
  name: string,
  fields: Record<string, bigint | number>,
): void {
  for (const [field, value] of Object.entries(fields))
    if (value !== 0n && value !== 0) values.set(`${name} ${field}`, `${value}`)
}

/** One line per value in which a source differs from the first. */
export function compare(first: Source, others: readonly Source[]): string[] {
  const names = new Set([first, ...others].flatMap(({ values }) => [...values.keys()]))
  return [...names].sort().flatMap((name) => {
    const expected = first.values.get(name) ?? '0'
    const wrong = others
      .filter(({ users }) => users === undefined || users.has(ownerOf(name)))
      .map((source) => ({ name: source.name, value: source.values.get(name) ?? '0' }))
      .filter(({ value }) => value !== expected)
    if (wrong.length === 0) return []
    return [
      `${name}: ${first.name} ${expected}, ${wrong.map(({ name, value }) => `${name} ${value}`).join(', ')}`,
    ]
  })
}
