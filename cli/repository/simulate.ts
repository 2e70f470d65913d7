/**
 * Runs scenarios of falling, jumping and missing prices through the rules of the exchange, and checks every law at
 * every step.
 */

// npm run cb -- simulate --scenario crash --seed 7
// npm run cb -- simulate --scenarios all --count 10000 --recordings day.csv.gz,probability.csv.gz
import { readRecorded } from '../../simulate/recorded.ts'
import { Recorder } from '../../simulate/recorder.ts'
import { LawCounts, lawTableOf, Summary, tableOf } from '../../simulate/report.ts'
import { runScenario } from '../../simulate/run.ts'
import { SCENARIOS } from '../../simulate/scenarios.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'

interface SimulateValues {
  readonly scenario: string | undefined
  readonly scenarios: string | undefined
  readonly seed: number
  readonly count: number
  readonly accounts: number | undefined
  readonly contracts: boolean
  readonly recordings: string | undefined
}

/** Most scenarios are small, so that many run; every 25th is not. */
const sizeBy = (seed: number): number => (seed % 25 === 0 ? 200 : 8 + ((seed * 37) % 41))

/** Traders of a scenario that the contracts repeat: each action is a transaction. */
const ON_CONTRACTS = 10

export async function simulate(_context: Context, values: SimulateValues): Promise<undefined> {
  const { scenario, scenarios, seed, count, accounts, recordings, contracts } = values
  const chosen = scenario ?? scenarios ?? 'all'
  const recorded = await Promise.all((recordings ?? '').split(',').filter(Boolean).map(readRecorded))
  const generated = SCENARIOS.filter((name) => chosen === 'all' || chosen === name)
  const kinds = [...generated, ...recorded]
  if (kinds.length === 0) throw new CommandError('the scenario recorded needs --recordings', EXIT.usage)
  const runs = Math.max(count, kinds.length)

  /** Loaded only if it is needed, because it starts Hardhat. */
  const onContracts = contracts ? await import('../../simulate/contracts/repeat.ts') : null

  const nameOf = (kind: (typeof kinds)[number]): string => (typeof kind === 'string' ? kind : kind.name)
  const summaries = new Map(kinds.map((kind) => [nameOf(kind), new Summary()]))
  const laws = new LawCounts()
  let violations = 0
  for (let run = 0; run < runs; run++) {
    const kind = kinds[run % kinds.length] as (typeof kinds)[number]
    const own = seed + Math.floor(run / kinds.length)
    const size = accounts ?? (contracts ? ON_CONTRACTS : runs === 1 ? 2_000 : sizeBy(own))
    const recorder = contracts ? new Recorder() : null
    const outcome = runScenario(kind, { seed: own, accounts: size, ...(recorder && { recorder }) })
    if (recorder !== null) await onContracts?.repeatOnContracts(recorder, outcome.tally)
    summaries.get(nameOf(kind))?.add(outcome)
    laws.add(outcome.tally)
    violations += outcome.tally.violations.length
    const repeat = typeof kind === 'string' ? kind : `recorded --recordings ${kind.name}.csv.gz`
    for (const violation of outcome.tally.violations)
      console.error(
        `${violation}\n  npm run cb -- simulate --scenario ${repeat} --seed ${own} --accounts ${size}${contracts ? ' --contracts' : ''}`,
      )
  }
  const rows = [...summaries].map(([name, summary]) => summary.row(name))
  console.table(lawTableOf(laws))
  console.table(tableOf(rows))
  console.log(JSON.stringify({ simulate: chosen, seed, rows, laws: lawTableOf(laws) }))
  console.log(`${runs} scenarios, ${violations} violations`)
  if (violations > 0) throw new CommandError(`${violations} laws were violated`)
  return undefined
}
