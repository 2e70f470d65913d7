/** The gas figures of docs/audit/gas.md, built from the golden file; `npm run gas` prints all figures. */
import { MOVES, SALTS, SIZES } from './gas.ts'
import { GAS_BUDGETS } from './gas-budgets.ts'
import type { Gas, GasTable } from './gas-charge.ts'

const count = (value: number): string => value.toLocaleString('en-US')
const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const rule = (columns: number): string => `|${'---|'.repeat(columns)}`

const pairOf = (gas: Gas | undefined): string =>
  gas === undefined ? '' : `${count(gas.receipt)} / ${count(gas.charged)}`

/** Gas per settled order, and of calls with a budget, if complete of all calls: receipt, and as charged on 4326 and 6343. */
export function gasReport(table: GasTable, isComplete = false): string[] {
  const perOrder = new Set<string>()
  const cellsOf = (size: number): string[] =>
    SALTS.flatMap((salts) =>
      MOVES.map((move) => {
        const name = `${salts} ${size} ${move}`
        perOrder.add(name)
        return pairOf(table[name])
      }),
    )
  const batches = SIZES.map((size) => row(String(size), ...cellsOf(size)))
  const others = Object.entries(table).filter(
    ([name]) => !perOrder.has(name) && (isComplete || name in GAS_BUDGETS),
  )
  return [
    row('batch', ...MOVES, ...MOVES.map((move) => `random salts: ${move}`)),
    rule(1 + SALTS.length * MOVES.length),
    ...batches,
    '',
    'Calls with a budget of the receipt: receipt / charge.',
    '',
    ...others.map(([name, gas]) => {
      const budget = GAS_BUDGETS[name]
      return `- ${name}: ${pairOf(gas)}${budget === undefined ? '' : ` (budget ${count(budget)})`}`
    }),
  ]
}
