import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Deleverage, InheritPosition } from '../../../domain/actions/action.ts'
import { poolShare } from '../../../domain/positions/position.ts'
import { PendingMoves } from '../../../domain/risk/pending-moves.ts'
import { type Address, type Millis, ONE, type Price, type Quote, type Steps } from '../../../domain/units.ts'
import { NO_FUNDING, positionAt, roundMarket } from '../support/resting.ts'

const [LONG, SHORT, BACKSTOP] = ['0xa', '0xb', '0xc'] as unknown as [Address, Address, Address]
const reportAt = (price: bigint) => ({
  price: (price * ONE) as Price,
  observedAt: 1 as Millis,
  signatures: '0x' as const,
})

/** A long of ten at 100 with margin 5 per step, and the short against it. */
const positions = new Map([
  [LONG, positionAt(roundMarket, { size: 10, entry: 100, margin: 5n * ONE })],
  [SHORT, positionAt(roundMarket, { size: -10, entry: 100, margin: 20n * ONE })],
])
const POOL = [...positions.values()].reduce((sum, position) => sum + poolShare(position), 0n) as Quote
const flat = positionAt(roundMarket, { size: 0, entry: 0, margin: 0n })

const open = (backstop: ConstructorParameters<typeof PendingMoves>[1] = null) =>
  new PendingMoves({ spec: roundMarket, index: NO_FUNDING }, backstop, {
    matched: (account) => positions.get(account) ?? flat,
    pool: POOL,
  })
const deleverage = (steps: number): Deleverage => ({
  ...{ kind: 'deleverage', asOf: 1 as Millis, account: LONG, report: reportAt(90n) },
  legs: [{ counterparty: SHORT, steps: steps as Steps }],
})
const inherit: InheritPosition = {
  ...{
    kind: 'inherit_position',
    asOf: 1 as Millis,
    account: LONG,
    backstop: BACKSTOP,
    report: reportAt(96n),
  },
}

describe('positions behind the queue', () => {
  it('when a deleveraging is queued, both positions are smaller, and the pool has paid the counterparty', () => {
    const moves = open()
    moves.apply(deleverage(4))
    expect([moves.positionOf(LONG).size, moves.positionOf(SHORT).size]).to.deep.equal([6, -6])
    // Four steps close at 95: margin 20 and profit 5 per step.
    expect(moves.pool).to.equal(POOL - 100n * ONE)
    expect([...moves.accounts].sort()).to.deep.equal([LONG, SHORT])
  })

  it('when an inheritance is queued, the backstop has the position, has paid its margin, and counters no deleveraging', () => {
    const cap = (10_000n * ONE) as Quote
    const moves = open({ address: BACKSTOP, cap, free: (100n * ONE) as Quote })
    expect(moves.mayCounter(BACKSTOP)).to.equal(true)
    moves.apply(inherit)
    expect([moves.positionOf(LONG).size, moves.positionOf(BACKSTOP).size]).to.deep.equal([0, 10])
    const paid = 100n * ONE - (moves.backstop?.free ?? 0n)
    // Equity 10 on a notional of 960: what is missing to 4.5 %.
    expect(paid).to.equal((332n * ONE) / 10n)
    expect(moves.pool).to.equal(POOL + paid)
    expect(moves.mayCounter(BACKSTOP)).to.equal(false)
  })

  it('when the backstop cannot inherit, nothing moves', () => {
    const moves = open({ address: BACKSTOP, cap: ONE as Quote, free: (100n * ONE) as Quote })
    moves.apply(inherit)
    expect([moves.positionOf(LONG).size, moves.positionOf(BACKSTOP).size, moves.pool]).to.deep.equal([
      ...[10, 0, POOL],
    ])
  })
})
