/** Replays the events of backstop, deleveraging and wind-down into the books of an audit. */

import type { RiskFact } from '../../../domain/chain/facts.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { applyAdjusted, type PositionAdjusted } from '../../../domain/positions/adjustment-replay.ts'
import type { Position } from '../../../domain/positions/position.ts'
import {
  applyClaimed,
  applyDeleveraged,
  applyInherited,
  applyInsolvency,
  type MarketEnded,
  type PositionEffect,
} from '../../../domain/risk/risk-replay.ts'
import type { Haircut } from '../../../domain/risk/wind-down.ts'
import { applyFreeDelta, type LedgerAccount } from '../../../domain/settlement/settlement-replay.ts'
import type { Address, Millis, Quote } from '../../../domain/units.ts'

/** State of a market's wind-down, by its events. */
export interface WindDown {
  ended: MarketEnded | null
  deficit: bigint
  haircut: Haircut | null
  unpaid: Map<Address, bigint>
}

export const noWindDown = (): WindDown => ({ ended: null, deficit: 0n, haircut: null, unpaid: new Map() })

export interface RiskBooks {
  accounts: Map<Address, LedgerAccount>
  positions: Map<Address, Position>
  pool: bigint
  windDown: WindDown
}

function effectOf(books: RiskBooks, fact: RiskFact, spec: MarketSpec): PositionEffect | null {
  const { positions, windDown } = books
  switch (fact.kind) {
    case 'position_inherited':
      return applyInherited(positions, fact.event)
    case 'positions_deleveraged':
      return applyDeleveraged(positions, fact.event)
    case 'insolvency_reported':
      windDown.deficit += fact.event.deficit
      return applyInsolvency(positions, fact.event, windDown.ended as MarketEnded, spec)
    case 'deficit_covered':
      return { positions: new Map(), free: [{ account: fact.payer, delta: -fact.amount as Quote }] }
    case 'claimed': {
      const { account, unpaid } = fact.event
      const ended = windDown.ended as MarketEnded
      const unpaidBefore = (windDown.unpaid.get(account) ?? 0n) as Quote
      windDown.unpaid.set(account, unpaid)
      return applyClaimed(
        positions,
        fact.event,
        { ended, haircut: windDown.haircut as Haircut, unpaidBefore },
        spec,
      )
    }
    case 'market_ended':
      windDown.ended = fact.event
      return null
    case 'haircut_fixed':
      windDown.haircut = fact.haircut
      return null
    case 'inheritance_failed':
      return null
  }
}

const EMPTY: LedgerAccount = { free: 0n as Quote, pending: 0n as Quote, requestedAt: 0 as never }

export function applyRisk(books: RiskBooks, fact: RiskFact, spec: MarketSpec): void {
  const effect = effectOf(books, fact, spec)
  if (effect === null) return
  const asOf = ('event' in fact && 'asOf' in fact.event ? fact.event.asOf : NEVER) as Millis
  applyEffect(books, effect, asOf)
}

/** An `asOf` at which no pending withdrawal backs anything. */
const NEVER = Number.MAX_SAFE_INTEGER as Millis

export const applyAdjustment = (books: RiskBooks, event: PositionAdjusted): void =>
  applyEffect(books, applyAdjusted(books.positions, event), NEVER)

function applyEffect(books: RiskBooks, effect: PositionEffect, asOf: Millis): void {
  for (const [account, position] of effect.positions) books.positions.set(account, position)
  for (const { account, delta } of effect.free) {
    const moved = applyFreeDelta(books.accounts.get(account) ?? EMPTY, delta, asOf)
    if (moved === null) throw new Error('an event debits more than the free balance')
    books.accounts.set(account, moved)
    books.pool -= delta
  }
}
