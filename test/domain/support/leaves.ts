/** The path of every value that is neither an object nor a list. */
export type Path = readonly (string | number)[]

export function leavesOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([name, field]) =>
    leavesOf(field, [...path, Array.isArray(value) ? Number(name) : name]),
  )
}
