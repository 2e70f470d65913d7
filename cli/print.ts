/** Prints results: tables and lines for a person, JSON for programs. */

/** A text that is printed as it is, an object as lines of names and values, a list of objects as a table. */
export type Result = string | object | readonly object[]

export type Format = 'text' | 'json' | 'jsonl'

const text = (value: unknown): string => {
  if (value === null || value === undefined) return '-'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Answers have exact amounts beside their decimals; a person needs one of both. */
const shown = (fields: object): [string, unknown][] =>
  Object.entries(fields).filter(([name]) => !name.endsWith('_e18_raw') || !(name.slice(0, -8) in fields))

/** Numbers align to the right. */
const isNumeric = (cells: readonly string[]): boolean =>
  cells.some((cell) => cell !== '-') && cells.every((cell) => /^-?[\d.]+%?$|^-$/.test(cell))

export function table(rows: readonly object[]): string {
  const names = [...new Set(rows.flatMap((row) => shown(row).map(([name]) => name)))]
  const columns = names.map((name) => rows.map((row) => text((row as Record<string, unknown>)[name])))
  const padded = columns.map((cells, at) => {
    const name = names[at] as string
    const width = Math.max(name.length, ...cells.map((cell) => cell.length))
    const isRight = isNumeric(cells)
    return [name, ...cells].map((cell) => (isRight ? cell.padStart(width) : cell.padEnd(width)))
  })
  return Array.from({ length: rows.length + 1 }, (_, line) =>
    padded
      .map((cells) => cells[line])
      .join('  ')
      .trimEnd(),
  ).join('\n')
}

export function lines(fields: object): string {
  const rows = shown(fields)
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${text(value)}`).join('\n')
}

function readable(result: Result): string {
  if (typeof result === 'string') return result
  if (!Array.isArray(result)) return lines(result)
  return result.length === 0 ? 'none' : table(result)
}

/** A text is the same in every format: it is a document of its own, such as CSV. */
export function rendered(result: Result, format: Format): string {
  if (typeof result === 'string') return result
  if (format === 'json') return JSON.stringify(result, null, 2)
  if (format === 'jsonl')
    return (Array.isArray(result) ? result : [result]).map((item) => JSON.stringify(item)).join('\n')
  return readable(result)
}

const CONTROLS = /(?![\n\t])\p{Cc}/gu

/** Text of the exchange cannot move the cursor or change colours of the terminal. */
export const harmless = (line: string): string => line.replace(CONTROLS, '?')
