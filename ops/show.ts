/** A market as its contract has it and as the database has it, side by side. */
import { type ChainTerms, modeInForce, type TermsState } from '../domain/market/changes.ts'
import { chargedAt, periodAt } from '../domain/market/fee-periods.ts'
import { type MarketTerms, termsAt } from '../domain/market/in-force.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { listedParameters, type MarketParameters } from '../domain/market/parameters.ts'
import { type Millis, toDecimal } from '../domain/units.ts'
import { timeOfMillis } from '../tasks/print.ts'
import type { ChainState } from './chain-terms.ts'
import { shownParameters } from './parameters.ts'

export interface Row {
  readonly name: string
  readonly chain: string
  readonly database: string
}

const NONE = '-'
/** The database does not have the rules for reports as long as the market's parameters are those listed. */
const UNKNOWN = 'as on the chain'
const REPORT_RULES = new Set(['report-max-age', 'move-base', 'move-per-second', 'move-window'])

/** `current`: what is in force, by name; only other values are shown. */
function pendingRows(terms: ChainTerms, current: Readonly<Record<string, string>>): Record<string, string> {
  const { parameters, mode, restriction } = terms.pending
  const next = parameters === null ? {} : shownParameters(parameters.parameters)
  const changed = Object.entries(next).filter(([name, value]) => current[name] !== value)
  return {
    'scheduled parameters': parameters === null ? NONE : `from ${timeOfMillis(parameters.activeFrom)}`,
    ...Object.fromEntries(changed.map(([name, value]) => [`  then ${name}`, value])),
    'scheduled mode': mode === null ? NONE : `${mode.mode} from ${timeOfMillis(mode.activeFrom)}`,
    restriction:
      restriction === null ? NONE : `${restriction.mode} from ${timeOfMillis(restriction.activeFrom)}`,
  }
}

/** By name, as of `at`. */
function columnOf(
  state: TermsState,
  spec: MarketSpec,
  reports: MarketParameters['reports'],
  at: Millis,
): Record<string, string> {
  const current = shownParameters(listedParameters(spec, reports))
  return {
    mode: modeInForce(state, at),
    ...current,
    ...pendingRows(state.chain, current),
    'settles from': state.closing.settlingAt === 0 ? NONE : timeOfMillis(state.closing.settlingAt),
    expires: state.closing.expiresAt === 0 ? NONE : timeOfMillis(state.closing.expiresAt),
  }
}

const differs = ({ chain, database }: Row): boolean => database !== UNKNOWN && chain !== database

/** Rows of both sides, evaluated at the time of the latest block. A restriction of the exchange's own shows as another mode. */
export function sideBySide(listed: MarketSpec, chain: ChainState, database: MarketTerms): Row[] {
  const at = chain.blockTime
  const onChain = { ...database, mode: 'open' as const, chain: chain.terms, closing: chain.closing }
  const [left, right] = [onChain, database].map((state) => {
    const { spec, reports } = termsAt(listed, state, at)
    return columnOf(state, spec, reports, at)
  }) as [Record<string, string>, Record<string, string>]
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].map((name) => ({
    name,
    chain: left[name] ?? NONE,
    database: right[name] ?? (REPORT_RULES.has(name) ? UNKNOWN : NONE),
  }))
}

/** `now`: the database's clock, as of which fees are shown. `life`: how far the market's end has come. */
export function printMarket(
  listed: MarketSpec,
  chain: ChainState,
  database: MarketTerms,
  { now, life }: { readonly now: Millis; readonly life: readonly Row[] },
): void {
  const rows = [...sideBySide(listed, chain, database), ...life]
  const widthOf = (of: (row: Row) => string): number => Math.max(...rows.map((row) => of(row).length))
  const [names, values] = [widthOf(({ name }) => name), widthOf(({ chain: value }) => value)]
  console.log(
    `market ${listed.marketId} (${listed.symbol}) ${listed.trader}, as of ${timeOfMillis(chain.blockTime)}`,
  )
  console.log(`  ${''.padEnd(names)}  ${'chain'.padEnd(values)}  database`)
  for (const row of rows)
    console.log(
      `${differs(row) ? '≠' : ' '} ${row.name.padEnd(names)}  ${row.chain.padEnd(values)}  ${row.database}`,
    )
  printFees(listed, database, now)
  const differences = rows.filter(differs).length
  console.log(differences === 0 ? 'chain and database agree' : `${differences} differences, marked ≠`)
}

function printFees(listed: MarketSpec, database: MarketTerms, now: Millis): void {
  const { spec } = termsAt(listed, database, now)
  const { makerFee, takerFee } = chargedAt(spec, database.fees, now)
  const period = periodAt(database.fees, now)
  const until = period === null || period.until === null ? '' : ` until ${timeOfMillis(period.until)}`
  console.log(`charged: maker ${toDecimal(makerFee)}, taker ${toDecimal(takerFee)}${until}`)
  for (const each of database.fees) {
    const end = each.until === null ? 'until further notice' : `to ${timeOfMillis(each.until)}`
    console.log(
      `  fee period: maker ${toDecimal(each.makerFee)}, taker ${toDecimal(each.takerFee)}, ${timeOfMillis(each.from)} ${end}`,
    )
  }
}
