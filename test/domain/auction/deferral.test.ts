import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear, recompute } from '../../../domain/auction/auction.ts'
import {
  completeAuction,
  type Deferrals,
  deferBeyond,
  NO_DEFERRALS,
} from '../../../domain/auction/deferral.ts'
import type { Quote, UserId } from '../../../domain/units.ts'
import {
  type AnyBatch,
  anyBatch,
  isCleared,
  outcomeOf,
  positionsOf,
  toInput,
} from '../support/any-auction.ts'
import { type Planned, planOf } from '../support/planned.ts'
import { slowClear } from '../support/slow-auction.ts'

const NONE_FORCED: ReadonlySet<UserId> = new Set()

const changesOf = (...entries: [number, number][]) => new Map(entries as [UserId, number][])
const waitingFor = (...accounts: number[]): Deferrals => ({
  waiting: new Set(accounts as UserId[]),
  excluded: new Set(),
})
const excludedBy = (deferrals: Deferrals | null) => deferrals && [...deferrals.excluded]

describe('accounts that an auction leaves out', () => {
  const defer = (most: number, entries: [number, number][], deferrals = NO_DEFERRALS, forced = NONE_FORCED) =>
    excludedBy(deferBeyond({ most, forced }, changesOf(...entries), deferrals))

  it('when the changes are within the bound, no account is left out', () => {
    expect(
      defer(10, [
        [1, 6],
        [2, 4],
      ]),
    ).to.equal(null)
  })

  it('when they exceed the bound, the accounts with the most changes are left out', () => {
    expect(
      defer(9, [
        [1, 6],
        [2, 1],
        [3, 4],
        [4, 5],
      ]),
    ).to.deep.equal([4, 1])
  })

  it('when an account was left out before, it takes part before accounts with fewer changes', () => {
    expect(
      defer(
        10,
        [
          [1, 6],
          [2, 1],
          [3, 4],
          [4, 5],
        ],
        waitingFor(1),
      ),
    ).to.deep.equal([3, 4])
  })

  it('when the first account alone exceeds the bound, it takes part, and every other account waits', () => {
    expect(
      defer(
        10,
        [
          [1, 600],
          [2, 1],
        ],
        waitingFor(1),
      ),
    ).to.deep.equal([2])
    expect(defer(10, [[1, 600]])).to.equal(null)
  })

  it('when accounts have forced orders, the accounts with the fewest changes take part within the bound, and so does the first account without one', () => {
    const forced = new Set([7, 8, 9] as UserId[])
    expect(
      defer(
        10,
        [
          [7, 9],
          [8, 9],
          [9, 1],
          [1, 5],
          [2, 5],
        ],
        NO_DEFERRALS,
        forced,
      ),
    ).to.deep.equal([8, 2])
  })

  it('when an attempt leaves out more, the accounts of earlier attempts stay left out', () => {
    const first = { waiting: new Set<UserId>(), excluded: new Set([9 as UserId]) }
    expect(
      defer(
        10,
        [
          [1, 6],
          [2, 6],
        ],
        first,
      ),
    ).to.deep.equal([9, 2])
  })

  it('when an auction completes, the accounts that it left out wait in the order in which they were first left out', () => {
    const before = { ...waitingFor(4, 1, 3), excluded: new Set([5, 3, 1] as UserId[]) }
    const { waiting, excluded } = completeAuction(before)
    expect([[...waiting], [...excluded]]).to.deep.equal([[1, 3, 5], []])
  })

  it('when accounts need more changes in every auction than fit, each account takes part before later accounts', () => {
    const anyChanges = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(anyChanges, fc.integer({ min: 1, max: 1000 }), (sizes, most) => {
        const changes = new Map(sizes.map((size, at) => [at as UserId, size]))
        let deferrals: Deferrals = NO_DEFERRALS
        const missed = new Map<UserId, number>()
        for (let auctions = 0; auctions < 3 * sizes.length; auctions++) {
          const out = deferBeyond({ most, forced: NONE_FORCED }, changes, deferrals)?.excluded ?? new Set()
          const admitted = sizes.flatMap((size, at) => (out.has(at as UserId) ? [] : [size]))
          const written = admitted.reduce((sum, size) => sum + size, 0)
          expect(admitted.length).to.be.greaterThan(0)
          if (admitted.length > 1) expect(written).to.be.at.most(Math.max(most, 500))
          for (const account of changes.keys()) {
            missed.set(account, out.has(account) ? (missed.get(account) ?? 0) + 1 : 0)
            expect(missed.get(account)).to.be.lessThan(sizes.length)
          }
          deferrals = completeAuction({ ...deferrals, excluded: out })
        }
      }),
    )
  })
})

/** The order rows that a plan writes and that neither a fill nor time changes, by account. */
function writtenChanges({ plan, before, after }: Planned, batch: AnyBatch): Map<UserId, number> {
  const filled = new Set(plan.batch?.fills.map(({ order_id }) => order_id))
  const isOverdue = ({ statusReason }: { statusReason: string | null }) =>
    statusReason === 'EXPIRED' || statusReason === 'NO_BATCH_IN_TIME'
  const written = plan.orders.filter(({ orderId, seq }) => {
    expect(after.get(seq)).not.to.deep.equal(before.get(seq))
    return !filled.has(orderId)
  })
  const changes = new Map<UserId, number>()
  for (const order of written) {
    if (!isOverdue(order)) changes.set(order.account, (changes.get(order.account) ?? 0) + 1)
  }
  expect(batch.orders.length).to.be.at.least(written.length)
  return changes
}

/** The rule again, slow and obvious: picks accounts one by one until none fits any more. */
function slowlyExcluded(most: number, changes: ReadonlyMap<UserId, number>, excluded: ReadonlySet<UserId>) {
  const left = new Map(changes)
  let room = most
  for (;;) {
    const least = Math.min(...left.values())
    const next = [...left].filter(([, own]) => own === least).map(([account]) => account)
    const account = Math.min(...next) as UserId
    if (left.size === 0 || (least > room && left.size < changes.size)) break
    room -= least
    left.delete(account)
  }
  return new Set([...excluded, ...left.keys()])
}

describe('the bound on the orders that a batch changes', () => {
  /** Some accounts cannot pay for what a new position makes them reserve. */
  const funds = (account: UserId) => ({ free: BigInt(account % 3) as Quote, reserved: 0n as Quote })
  const bounds = fc.integer({ min: 1, max: 4 })
  const batches = anyBatch({ accounts: 6, maxOrders: 28, minOrders: 10 })

  it('when any batch is planned, the changes that are counted are the order rows that are written', () => {
    fc.assert(
      fc.property(batches, (batch) => {
        const planned = planOf(batch, funds)
        const sorted = (changes: ReadonlyMap<UserId, number>) => [...changes].sort(([a], [b]) => a - b)
        expect(sorted(planned.sideChanges)).to.deep.equal(sorted(writtenChanges(planned, batch)))
      }),
      { numRuns: 500 },
    )
  })

  it('when accounts are left out until a batch is within the bound, it equals the slow auction without them, and its inputs recompute it', () => {
    let deferred = 0
    fc.assert(
      fc.property(batches, bounds, (all, most) => {
        const orders = all.orders.filter(({ forced }) => !forced)
        let batch: AnyBatch = { ...all, orders }
        let deferrals: Deferrals = NO_DEFERRALS
        for (;;) {
          const planned = planOf(batch, funds)
          const next = deferBeyond({ most, forced: NONE_FORCED }, planned.sideChanges, deferrals)
          if (next === null) break
          deferred++
          expect(next.excluded).to.deep.equal(
            slowlyExcluded(most, writtenChanges(planned, batch), deferrals.excluded),
          )
          deferrals = next
          batch = { ...batch, excluded: { accounts: next.excluded, orders: new Set() } }
        }
        const clearing = clear(toInput(batch))
        const slow = slowClear({
          ...batch,
          positions: positionsOf(batch),
          excludedAccounts: deferrals.excluded,
        })
        expect([clearing.price, clearing.volume, clearing.demand, clearing.supply]).to.deep.equal([
          ...[slow.price, slow.volume, slow.demand, slow.supply],
        ])
        expect(new Map(clearing.fills.map(({ seq, fill }) => [seq, fill]))).to.deep.equal(new Map(slow.fills))
        expect(clearing.protections).to.deep.equal(slow.protections)
        for (const { account } of clearing.fills) expect(deferrals.excluded.has(account)).to.equal(false)
        expect(outcomeOf(recompute(clearing.inputs))).to.equal(outcomeOf(clearing))
        expect(recompute(clearing.inputs)).to.deep.equal(clearing)
        if (isCleared(clearing)) expect(clearing.fills.length).to.be.greaterThan(0)
      }),
      { numRuns: 400 },
    )
    expect(deferred).to.be.greaterThan(50)
  })
})
