/** Records the actions of a run with their results, so that the contracts can repeat them. */

import type { MarketSpec } from '../domain/market/market.ts'
import type { Position } from '../domain/positions/position.ts'
import type { Millis, Quote, Seconds, UserId } from '../domain/units.ts'
import { BACKSTOP, type Bank, type ChainAction, type ChainMarket } from './chain.ts'

interface RecordedMarket {
  readonly spec: MarketSpec
  readonly bank: Bank
  readonly chain: ChainMarket
}

export interface AccountState {
  readonly account: UserId
  readonly free: bigint
  readonly position: Position
}

/** An action, and the state of its accounts after it. */
export interface ExecutedAction {
  readonly kind: 'action'
  /** Index of the market. */
  readonly market: number
  readonly action: ChainAction
  readonly error: string | null
  readonly pool: bigint
  /** Fees of all markets. */
  readonly fees: bigint
  readonly accounts: readonly AccountState[]
}

export interface BankPause {
  readonly kind: 'pause'
  readonly from: Millis
  readonly endsAt: Seconds
}

export class Recorder {
  readonly events: (ExecutedAction | BankPause)[] = []
  readonly #markets: RecordedMarket[] = []
  deposits: ReadonlyMap<UserId, bigint> = new Map()
  /** Highest notional of the backstop in each market. */
  cap = 0n as Quote

  /** Before the first step. */
  started(markets: readonly RecordedMarket[], deposits: ReadonlyMap<UserId, bigint>, cap: Quote): void {
    this.#markets.push(...markets)
    this.deposits = new Map(deposits)
    this.cap = cap
  }

  get specs(): MarketSpec[] {
    return this.#markets.map(({ spec }) => spec)
  }

  executed(market: RecordedMarket, action: ChainAction, error: string | null): void {
    const { bank, spec, chain } = market
    this.events.push({
      ...{ kind: 'action', market: this.#markets.indexOf(market), action, error },
      ...{ pool: bank.pools.get(spec.marketId) ?? 0n, fees: bank.fees },
      accounts: touchedBy(action).map((account) => ({
        ...{ account, free: bank.freeOf(account), position: chain.positions.of(account) },
      })),
    })
  }

  /** Called in every step of a pause; the last end counts. */
  paused(now: Millis, endsAt: Seconds): void {
    const last = this.events.at(-1)
    const from = last?.kind === 'pause' ? last.from : now
    if (last?.kind === 'pause') this.events.pop()
    this.events.push({ kind: 'pause', from, endsAt })
  }
}

function touchedBy(action: ChainAction): UserId[] {
  if (action.kind === 'fund') return []
  if (action.kind === 'part') return [...new Set(action.fills.map(({ account }) => account))]
  const legs = action.kind === 'deleverage' ? action.legs : []
  return [...new Set([action.account, BACKSTOP, ...legs.map(({ account }) => account)])]
}
