/** Watches the index of one market in the database: its reports, and the times without one. */
import type { Db } from '../../db/client.ts'
import { latestReport } from '../../db/oracle-reports.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { allowedMove, type MoveRules } from '../../domain/prices/report.ts'
import { abs, type Millis, type Price, toDecimal } from '../../domain/units.ts'
import { StackError } from '../options.ts'

/** Limits of the market's contract. */
export interface Limits {
  readonly maxAge: number
  readonly move: MoveRules
}

export interface WatchedReport {
  readonly price: Price
  readonly observedAt: Millis
}

/** A time in which the market had no usable price. */
export interface Halt {
  readonly reason: string
  readonly ms: number
}

/** A move that the contract would not accept from one report to the next. */
export interface WideMove {
  /** Fractions of the price before. */
  readonly share: number
  readonly allowed: number
}

export interface FeedRun {
  readonly path: string
  readonly speed: number
  readonly symbol: string
  /** Recorded prices that were known during the run. */
  readonly readings: number
  readonly reports: readonly WatchedReport[]
  readonly halts: readonly Halt[]
  readonly wideMoves: readonly WideMove[]
}

const fraction = (part: bigint, whole: bigint): number => Number((part * 1_000_000n) / whole) / 1_000_000

/** Compares each report with the previous report. */
export const wideMovesOf = (reports: readonly WatchedReport[], { move }: Limits): WideMove[] =>
  reports.slice(1).flatMap((report, at) => {
    const before = reports[at] as WatchedReport
    const allowed = allowedMove(before.price, report.observedAt - before.observedAt, move)
    const moved = abs(report.price - before.price)
    if (moved <= allowed) return []
    return [{ share: fraction(moved, before.price), allowed: fraction(allowed, before.price) }]
  })

export class FeedWatch {
  readonly #db: Db
  readonly #spec: MarketSpec
  readonly #limits: Limits
  readonly #reports: WatchedReport[] = []
  readonly #halts: Halt[] = []
  #seen: number | null = null
  /** The halt that runs. */
  #halt: { readonly reason: string; readonly since: number } | null = null

  constructor(db: Db, spec: MarketSpec, limits: Limits) {
    this.#db = db
    this.#spec = spec
    this.#limits = limits
  }

  /** The latest price. */
  async price(): Promise<Price> {
    const { marketId, symbol } = this.#spec
    const report = await latestReport(this.#db, { marketId, feed: 'index' })
    if (report === null) throw new StackError(`${symbol} has no oracle price`)
    return report.price
  }

  async look(): Promise<void> {
    const { marketId } = this.#spec
    const row = await this.#db
      .selectFrom('oracle_reports')
      .select(['observed_at', 'status', 'reason'])
      .where('market_id', '=', marketId)
      .where('feed', '=', 'index')
      .executeTakeFirst()
    this.#seen ??= row?.observed_at ?? 0
    const reports = await this.#db
      .selectFrom('recent_reports')
      .select(['price', 'observed_at'])
      .where('market_id', '=', marketId)
      .where('feed', '=', 'index')
      .where('observed_at', '>', this.#seen)
      .orderBy('observed_at')
      .execute()
    for (const { price, observed_at } of reports) {
      this.#reports.push({ price: price as Price, observedAt: observed_at as Millis })
      this.#seen = observed_at
    }
    const isStale = Date.now() - (row?.observed_at ?? 0) > this.#limits.maxAge
    this.#note(row?.status === 'halted' || isStale ? (row?.reason ?? 'REPORT_STALE') : null)
  }

  #note(reason: string | null): void {
    if (this.#halt?.reason === reason || (this.#halt === null && reason === null)) return
    if (this.#halt !== null)
      this.#halts.push({ reason: this.#halt.reason, ms: Date.now() - this.#halt.since })
    this.#halt = reason === null ? null : { reason, since: Date.now() }
  }

  line(percent: number): string {
    const price = this.#reports.at(-1)?.price
    const shown = price === undefined ? 'no price yet' : `price ${toDecimal(price)}`
    const halted = this.#halt === null ? '' : `, without a usable price: ${this.#halt.reason}`
    return `${Math.max(0, Math.round(percent))} %: ${this.#reports.length} reports, ${shown}${halted}`
  }

  result(run: Pick<FeedRun, 'readings' | 'path' | 'speed'>): FeedRun {
    this.#note(null)
    const [reports, halts] = [this.#reports, this.#halts]
    const wideMoves = wideMovesOf(reports, this.#limits)
    return { ...run, symbol: this.#spec.symbol, reports, halts, wideMoves }
  }
}
