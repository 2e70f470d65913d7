/**
 * Runs scenarios of falling, jumping and missing prices through the rules of the exchange, and checks every rule at every step.
 *
 *   npm run simulate -- --scenario crash --seed 7
 *   npm run simulate -- --scenarios all --count 10000
 */

import { argumentsOf, oneOf, text, wholeNumber, withDefault } from '../service/command-line.ts'
import { pathOf } from './recorded.ts'
import { Summary, tableOf } from './report.ts'
import { runScenario } from './run.ts'
import { SCENARIOS } from './scenarios.ts'

const names = oneOf([...SCENARIOS, 'all'], 'the scenario')
const { scenario, scenarios, seed, count, accounts, prices } = argumentsOf({
  command: 'npm run simulate --',
  flags: {
    scenario: names,
    scenarios: names,
    seed: withDefault(wholeNumber('the first seed'), 1),
    count: withDefault(wholeNumber('number of scenarios, each with the next seed', { least: 1 }), 1),
    accounts: wholeNumber('traders; 2,000 for a single scenario, otherwise 8 to 48 by the seed, or 200', {
      least: 1,
    }),
    prices: text('<file>', 'recording whose prices replace those of markets that are not binary'),
  },
})
const chosen = scenario ?? scenarios ?? 'all'
const kinds = chosen === 'all' ? SCENARIOS : [chosen]
const recorded = prices === undefined ? null : await pathOf(prices)
const runs = Math.max(count, kinds.length)

/** Most scenarios are small, so that many run; every 25th is not. */
const sizeBy = (seed: number): number => (seed % 25 === 0 ? 200 : 8 + ((seed * 37) % 41))

const summaries = new Map(kinds.map((name) => [name, new Summary()]))
let violations = 0
for (let run = 0; run < runs; run++) {
  const name = kinds[run % kinds.length] as (typeof kinds)[number]
  const of = {
    seed: seed + Math.floor(run / kinds.length),
    accounts: accounts ?? (runs === 1 ? 2_000 : 0),
    recorded,
  }
  const size = of.accounts === 0 ? sizeBy(of.seed) : of.accounts
  const outcome = runScenario(name, { ...of, accounts: size })
  summaries.get(name)?.add(outcome)
  violations += outcome.tally.violations.length
  for (const violation of outcome.tally.violations)
    console.error(
      `${violation}\n  npm run simulate -- --scenario ${name} --seed ${of.seed} --accounts ${size}`,
    )
}
const rows = [...summaries].map(([name, summary]) => summary.row(name))
console.table(tableOf(rows))
console.log(JSON.stringify({ simulate: chosen, seed, rows }))
console.log(`${runs} scenarios, ${violations} violations`)
process.exitCode = violations > 0 ? 1 : 0
