/** Prints results for a person, or as JSON for a program. */

/** A text that is printed as it is, an object as lines of names and values, a list of objects as a table. */
export type Result = string | object | readonly object[]

const text = (value: unknown): string => {
  if (value === null || value === undefined) return '-'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Exact amounts stand beside their decimals in answers; a person needs one of both. */
const shown = (fields: object): [string, unknown][] =>
  Object.entries(fields).filter(([name]) => !name.endsWith('_e18_raw') || !(name.slice(0, -8) in fields))

function table(rows: readonly object[]): string {
  const names = [...new Set(rows.flatMap((row) => shown(row).map(([name]) => name)))]
  const cells = rows.map((row) => names.map((name) => text((row as Record<string, unknown>)[name])))
  const widths = names.map((name, at) =>
    Math.max(name.length, ...cells.map((line) => (line[at] ?? '').length)),
  )
  const lineOf = (line: readonly string[]) =>
    line
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd()
  return [names, ...cells].map(lineOf).join('\n')
}

function lines(fields: object): string {
  const rows = shown(fields)
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${text(value)}`).join('\n')
}

function readable(result: Result): string {
  if (typeof result === 'string') return result
  if (!Array.isArray(result)) return lines(result)
  return result.length === 0 ? 'none' : table(result)
}

export function print(result: Result, isJson: boolean): void {
  const output = isJson && typeof result !== 'string' ? JSON.stringify(result, null, 2) : readable(result)
  process.stdout.write(output.endsWith('\n') ? output : `${output}\n`)
}
