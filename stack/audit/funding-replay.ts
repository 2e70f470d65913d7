/** Rebuilds from the event logs of one market alone what funding paid to each account. Pure. */
import { applyAdjusted } from '../../domain/positions/adjustment-replay.ts'
import { FLAT, marginOf, type Position } from '../../domain/positions/position.ts'
import { fundingPayment } from '../../domain/prices/funding-payment.ts'
import { emptied } from '../../domain/risk/liquidation.ts'
import { applyDeleveraged, applyInherited } from '../../domain/risk/risk-replay.ts'
import { applySettled } from '../../domain/settlement/settlement-replay.ts'
import type { Address, FundingIndex } from '../../domain/units.ts'
import type { IgnoredEvent, TraderFact } from '../../indexer/ingest/facts.ts'

type Positions = ReadonlyMap<Address, Position>

interface Totals {
  /** Of the position's last change. */
  readonly index: FundingIndex
  /** What funding paid until then. */
  readonly received: bigint
  /** What else moved into the margin, less what moved out. */
  readonly deposited: bigint
}

const NO_TOTALS: Totals = { index: 0n as FundingIndex, received: 0n, deposited: 0n }

export class FundingReplay {
  readonly #positions = new Map<Address, Position>()
  readonly #totals = new Map<Address, Totals>()
  /** Of the market's end. */
  #lastIndex = 0n as FundingIndex

  get accounts(): readonly Address[] {
    return [...this.#positions.keys()]
  }

  apply(fact: TraderFact | IgnoredEvent): void {
    if (fact.kind === 'market_ended') this.#lastIndex = fact.event.fundingIndex
    const moved = movedBy(fact, this.#positions)
    if (moved === null) return
    for (const [account, position] of moved.positions) {
      // An adjustment happens at the index of the last action; where its account was not touched by it, the folded margin moves alone.
      const index =
        moved.index ?? (fact.kind === 'position_adjusted' ? this.#of(account).index : this.#lastIndex)
      this.#move(account, position, index)
    }
  }

  /** All that funding has paid the account up to that index. */
  received(account: Address, index: FundingIndex): bigint {
    const { received, index: from } = this.#of(account)
    return received + fundingPayment(this.#position(account).size, from, index)
  }

  /** All that moved into the account's margin except funding, less what moved out. */
  deposited(account: Address): bigint {
    return this.#of(account).deposited
  }

  #of(account: Address): Totals {
    return this.#totals.get(account) ?? NO_TOTALS
  }

  #position(account: Address): Position {
    return this.#positions.get(account) ?? FLAT
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

/** The positions that the event changes, and the index at which it does; null for the index of the account's last change, or of the end. */
function movedBy(
  fact: TraderFact | IgnoredEvent,
  before: Positions,
): { readonly positions: Positions; readonly index: FundingIndex | null } | null {
  switch (fact.kind) {
    case 'part_mined':
      return { positions: applySettled(before, fact.settled, fact.spec), index: fact.settled.fundingIndex }
    case 'position_inherited':
      return { positions: applyInherited(before, fact.event).positions, index: fact.event.fundingIndex }
    case 'positions_deleveraged':
      return { positions: applyDeleveraged(before, fact.event).positions, index: fact.event.fundingIndex }
    case 'position_adjusted':
      return { positions: applyAdjusted(before, fact.event).positions, index: null }
    case 'insolvency_reported':
    case 'claimed': {
      const { account } = fact.event
      if (fact.kind === 'claimed' && fact.event.value === 0n) return null
      return { positions: new Map([[account, emptied(before.get(account) ?? FLAT)]]), index: null }
    }
    default:
      return null
  }
}
