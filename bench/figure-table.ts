/** The table of the README: what has been recorded of each figure. */
import { existsSync, readFileSync } from 'node:fs'
import { FIGURES, type Figure, type Line } from './targets.ts'

export const fileOf = ({ name }: Figure): URL => new URL(`results/${name}.json`, import.meta.url)

export interface Recorded {
  readonly date: string
  readonly processors: number
  readonly line: Line
}

function rowOf(figure: Figure): string {
  const file = fileOf(figure)
  const recorded: Recorded | null = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null
  const measured = recorded === null ? 'not recorded' : `${figure.shown(recorded.line)} (${recorded.date})`
  return `| ${figure.what} | ${measured} | ${figure.target} | \`${figure.name}\` |`
}

/** The README with the table of all figures. */
export function withTable(readme: string): string {
  const [begin, end] = ['<!-- figures -->\n', '<!-- /figures -->']
  const head = '| figure | measured | target | name |\n|---|---|---|---|\n'
  const [before = '', rest = ''] = readme.split(begin)
  return `${before}${begin}${head}${FIGURES.map(rowOf).join('\n')}\n${end}${rest.split(end)[1]}`
}
