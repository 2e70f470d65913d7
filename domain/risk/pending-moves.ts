/**
 * A market's positions after its queued inheritances and deleveragings. If an earlier action fails, positions are never
 * smaller than computed here, except the backstop's.
 */
import type { SingleAction } from '../actions/action.ts'
import type { MarketSpec } from '../market/market.ts'
import { type Position, poolShare } from '../positions/position.ts'
import type { Address, FundingIndex, Quote } from '../units.ts'
import { closeAgainst } from './deleverage.ts'
import { type Backstop, emptied, inherit } from './liquidation.ts'

export interface BackstopAccount {
  readonly address: Address
  readonly cap: Quote
  readonly free: Quote
}

export class PendingMoves {
  readonly #spec: MarketSpec
  readonly #index: FundingIndex
  readonly #matched: (account: Address) => Position
  readonly #moved = new Map<Address, Position>()
  readonly #backstop: BackstopAccount | null
  #free: bigint
  #pool: bigint
  #inherits = false

  /** `matched` and `pool` exclude the pending actions. */
  constructor(
    { spec, index }: { readonly spec: MarketSpec; readonly index: FundingIndex },
    backstop: BackstopAccount | null,
    { matched, pool }: { readonly matched: (account: Address) => Position; readonly pool: Quote },
  ) {
    this.#pool = pool
    this.#spec = spec
    this.#index = index
    this.#backstop = backstop
    this.#matched = matched
    this.#free = backstop?.free ?? 0n
  }

  /** Accounts with positions that a pending action moves. */
  get accounts(): ReadonlySet<Address> {
    return new Set(this.#moved.keys())
  }

  positionOf(account: Address): Position {
    return this.#moved.get(account) ?? this.#matched(account)
  }

  /** Market pool after the pending actions are mined. */
  get pool(): Quote {
    return this.#pool as Quote
  }

  /** Null if the market has none. */
  get backstop(): Backstop | null {
    if (this.#backstop === null) return null
    const { address, cap } = this.#backstop
    return { position: this.positionOf(address), cap, free: this.#free as Quote }
  }

  /**
   * False for the backstop while it inherits: if the inheritance fails, its position is smaller or opposite.
   */
  mayCounter(account: Address): boolean {
    return !this.#inherits || account !== this.#backstop?.address
  }

  apply(action: SingleAction): void {
    if (action.kind === 'inherit_position') this.#inherit(action.account, action.report.price)
    if (action.kind === 'deleverage') this.#deleverage(action)
  }

  #inherit(account: Address, oracle: Parameters<typeof inherit>[4]): void {
    const { backstop } = this
    if (backstop === null || this.#backstop === null) return
    this.#inherits = true
    const position = this.positionOf(account)
    const verdict = inherit(this.#spec, position, backstop, this.#index, oracle)
    if (!verdict.ok) return
    this.#move(this.#backstop.address, verdict.value.position)
    this.#move(account, emptied(position))
    this.#free += verdict.value.freeDelta
  }

  #deleverage({ account, legs, report }: Extract<SingleAction, { kind: 'deleverage' }>): void {
    for (const { counterparty, steps } of legs) {
      const [position, other] = [this.positionOf(account), this.positionOf(counterparty)]
      const leg = closeAgainst(this.#spec, position, other, steps, this.#index, report.price)
      if (leg === null) continue
      this.#move(account, leg.position)
      this.#move(counterparty, leg.counterparty)
    }
  }

  #move(account: Address, position: Position): void {
    this.#pool += poolShare(position) - poolShare(this.positionOf(account))
    this.#moved.set(account, position)
  }
}
