/** Recomputes funding paid to each account from one market's event logs alone. Pure. */

import type { IgnoredEvent, TraderFact } from '../../domain/chain/facts.ts'
import { applyAdjusted, type PositionAdjusted } from '../../domain/positions/adjustment-replay.ts'
import { FLAT, marginOf, type Position } from '../../domain/positions/position.ts'
import { fundingPayment } from '../../domain/prices/funding-payment.ts'
import { emptied } from '../../domain/risk/liquidation.ts'
import { applyDeleveraged, applyInherited } from '../../domain/risk/risk-replay.ts'
import { applySettled } from '../../domain/settlement/settlement-replay.ts'
import type { Address, FundingIndex } from '../../domain/units.ts'

type Positions = ReadonlyMap<Address, Position>

interface Totals {
  /** Funding index at the position's last change. */
  readonly index: FundingIndex
  /** Funding received up to that change. */
  readonly received: bigint
  /** Other amounts moved into the margin, less amounts moved out. */
  readonly deposited: bigint
}

const NO_TOTALS: Totals = { index: 0n as FundingIndex, received: 0n, deposited: 0n }

export class FundingReplay {
  readonly #positions = new Map<Address, Position>()
  readonly #totals = new Map<Address, Totals>()
  /** Funding index at the market's end. */
  #lastIndex = 0n as FundingIndex

  get accounts(): readonly Address[] {
    return [...this.#positions.keys()]
  }

  apply(fact: TraderFact | IgnoredEvent): void {
    if (fact.kind === 'market_ended') this.#lastIndex = fact.event.fundingIndex
    if (fact.kind === 'position_adjusted') this.#adjust(fact.event)
    const { positions, index = this.#lastIndex } = movedBy(fact, this.#positions)
    for (const [account, position] of positions) this.#move(account, position, index)
  }

  /** Funding received by the account up to `index`. */
  received(account: Address, index: FundingIndex): bigint {
    const { received, index: from } = this.#of(account)
    return received + fundingPayment(this.#position(account).size, from, index)
  }

  /** Amounts moved into the account's margin besides funding, less amounts moved out. */
  deposited(account: Address): bigint {
    return this.#of(account).deposited
  }

  #of(account: Address): Totals {
    return this.#totals.get(account) ?? NO_TOTALS
  }

  #position(account: Address): Position {
    return this.#positions.get(account) ?? FLAT
  }

  /** An adjustment keeps the size, so that funding does not depend on its time. */
  #adjust(event: PositionAdjusted): void {
    const { account, amount } = event
    const totals = this.#of(account)
    this.#positions.set(account, applyAdjusted(this.#positions, event).positions.get(account) as Position)
    this.#totals.set(account, { ...totals, deposited: totals.deposited + amount })
  }

  #move(account: Address, after: Position, index: FundingIndex): void {
    const before = this.#position(account)
    const { deposited } = this.#of(account)
    this.#totals.set(account, {
      index,
      received: this.received(account, index),
      deposited: deposited + marginOf(after, index) - marginOf(before, index),
    })
    this.#positions.set(account, after)
  }
}

interface Moved {
  readonly positions: Positions
  /** If left out: the index at the market's end. */
  readonly index?: FundingIndex
}

const NOTHING: Moved = { positions: new Map() }

/** Positions that the event changes, and the funding index of the change. */
function movedBy(fact: TraderFact | IgnoredEvent, before: Positions): Moved {
  switch (fact.kind) {
    case 'part_mined':
      return { positions: applySettled(before, fact.settled, fact.spec), index: fact.settled.fundingIndex }
    case 'position_inherited':
      return { positions: applyInherited(before, fact.event).positions, index: fact.event.fundingIndex }
    case 'positions_deleveraged':
      return { positions: applyDeleveraged(before, fact.event).positions, index: fact.event.fundingIndex }
    case 'insolvency_reported':
    case 'claimed': {
      const { account } = fact.event
      if (fact.kind === 'claimed' && fact.event.value === 0n) return NOTHING
      return { positions: new Map([[account, emptied(before.get(account) ?? FLAT)]]) }
    }
    default:
      return NOTHING
  }
}
