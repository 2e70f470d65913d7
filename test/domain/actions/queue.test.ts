/** The laws of the queue, on single cases and against a model of the contract's sequence of actions. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { QueuedAction, QueuedPart, SingleAction } from '../../../domain/actions/action.ts'
import { touchedAccounts } from '../../../domain/actions/action.ts'
import {
  EMPTY_QUEUE,
  enqueue,
  fundingAfter,
  fundingStepOf,
  type QueueRefusal,
  type QueueTail,
} from '../../../domain/actions/queue.ts'
import { fundingIndexAt, NO_FUNDING } from '../../../domain/prices/funding-state.ts'
import type { HourlyFunding, Millis, Price } from '../../../domain/units.ts'

const T = 1_000_000 as Millis
const report = (price = 100n, observedAt = T as number) => ({
  ...{ price: price as Price, observedAt: observedAt as Millis, signatures: '0x' as const },
})
const update = (change: Partial<Extract<SingleAction, { kind: 'update_funding' }>> = {}): SingleAction => ({
  ...{ kind: 'update_funding', asOf: T, rate: 7_200_000n as HourlyFunding, session: null },
  ...{ validUntil: (T + 3_600_000) as Millis, report: report(), ...change },
})
const part = (change: Partial<QueuedPart> = {}): QueuedPart => ({
  ...{ kind: 'settle_part', asOf: T, batchId: 1, part: 1, parts: 1, report: report(), ...change },
})
const finalize: SingleAction = { kind: 'finalize_market', asOf: T, report: report(1n, 1) }

/** The end of the queue after the actions, or the first refusal. */
function queued(...actions: readonly QueuedAction[]): QueueTail | QueueRefusal['code'] {
  let tail = EMPTY_QUEUE
  for (const action of actions) {
    const verdict = enqueue(tail, action)
    if (!verdict.ok) return verdict.refusal.code
    tail = verdict.value
  }
  return tail
}

describe('laws of the queue of actions', () => {
  it('when times and reports do not go back, actions of all kinds follow each other', () => {
    const tail = queued(part(), update(), part({ batchId: 2, asOf: (T + 5) as Millis }))
    expect(tail).to.deep.equal({
      ...{ lastAsOf: T + 5, openBatch: null, isEnded: false },
      usedReport: { price: 100n, observedAt: T },
    })
  })

  it('when an action is as of an earlier time than the last one, it is refused', () => {
    expect(queued(part({ asOf: (T + 1) as Millis }), update())).to.equal('AS_OF_DECREASED')
  })

  it('when a batch has further parts, any other action is refused', () => {
    const first = part({ parts: 3 })
    expect(queued(first, update())).to.equal('BATCH_OPEN')
    expect(queued(first, part({ parts: 3, part: 3 }))).to.equal('BATCH_OPEN')
    expect(queued(first, part({ parts: 3, part: 2, batchId: 2 }))).to.equal('BATCH_OPEN')
    expect(queued(first, part({ parts: 3, part: 2, asOf: (T + 1) as Millis }))).to.equal('BATCH_OPEN')
    expect(queued(first, part({ parts: 3, part: 2 }), part({ parts: 3, part: 3 }), update())).to.be.an(
      'object',
    )
  })

  it('when a report is older than the last one, it is refused', () => {
    expect(queued(part(), update({ report: report(100n, T - 1) }))).to.equal('REPORT_OLDER')
  })

  it('when a report has the time of the last one, it needs the same price', () => {
    expect(queued(part(), update({ report: report(101n) }))).to.equal('REPORT_CONFLICT')
    expect(queued(part(), update({ report: report(100n) }))).to.be.an('object')
  })

  it('when the market is finalized, the final report is not compared and nothing follows', () => {
    expect(queued(part(), finalize)).to.deep.include({
      isEnded: true,
      usedReport: { price: 100n, observedAt: T },
    })
    expect(queued(finalize, part())).to.equal('MARKET_ENDED')
  })
})

describe('accounts that a queued action touches', () => {
  it('when an action moves positions, it touches both sides; other actions touch none', () => {
    const common = { asOf: T, report: report() }
    const inherit = {
      kind: 'inherit_position',
      account: '0xa',
      backstop: '0xf',
      ...common,
    } as unknown as SingleAction
    const legs = [{ counterparty: '0xb', steps: 1 }]
    const deleverage = { kind: 'deleverage', account: '0xa', legs, ...common } as unknown as SingleAction
    expect([inherit, deleverage, update(), finalize].map(touchedAccounts)).to.deep.equal([
      ['0xa', '0xf'],
      ['0xa', '0xb'],
      [],
      [],
    ])
  })
})

describe('funding index of the queue', () => {
  const fundingOf = (...actions: readonly QueuedAction[]) =>
    fundingAfter(NO_FUNDING, actions.map(fundingStepOf))
  const at = (millis: number) => part({ asOf: (T + millis) as Millis })

  it('when a rate is queued, it accrues from its own time on', () => {
    // 2 wei per millisecond.
    expect(fundingOf(update()).index).to.equal(0n)
    expect(fundingOf(update(), at(10)).index).to.equal(20n)
    expect(fundingIndexAt(fundingOf(update(), at(10)), (T + 15) as Millis)).to.equal(30n)
  })

  it('when several actions accrue, each of them truncates', () => {
    const third = update({ rate: 1_200_000n as HourlyFunding })
    expect(fundingOf(third, at(3)).index).to.equal(1n)
    expect(fundingOf(third, at(1), at(2), at(3)).index).to.equal(0n)
  })

  it('when the rate has ended, the index stays', () => {
    const short = update({ validUntil: (T + 10) as Millis })
    expect(fundingOf(short, at(50)).index).to.equal(20n)
    expect(fundingIndexAt(fundingOf(short, at(50)), (T + 90) as Millis)).to.equal(20n)
  })
})

// ---------------------------------------------------------------------- against a model of the contract

/** The contract's clock, reference and funding as ActionLib, BandLib and FundingLib change them; returns false where they revert. */
class ContractModel {
  asOf = 0
  batch = { id: 0, part: 0, parts: 0 }
  report = { price: 0n, observedAt: 0 }
  funding = { index: 0n, rate: 0n, from: 0, until: 0 }
  isEnded = false

  execute(action: QueuedAction): boolean {
    const { asOf } = action
    if (this.isEnded || asOf < this.asOf) return false
    this.#accrue(asOf)
    if (action.kind !== 'settle_part' || asOf !== this.asOf) this.batch.parts = this.batch.part
    this.asOf = asOf
    return action.kind === 'finalize_market' ? this.#end() : this.#accept(action) && this.#apply(action)
  }

  #end(): boolean {
    this.isEnded = true
    return true
  }

  #accrue(asOf: number): void {
    const { rate, from, until } = this.funding
    const time = Math.min(asOf, until) - Math.max(this.asOf, from)
    if (time > 0) this.funding.index += (rate * BigInt(time)) / 3_600_000n
  }

  #accept({ report }: Exclude<QueuedAction, { kind: 'finalize_market' }>): boolean {
    const last = this.report
    if (last.price !== 0n && report.observedAt < last.observedAt) return false
    if (report.observedAt === last.observedAt && report.price !== last.price && last.price !== 0n)
      return false
    this.report = { price: report.price, observedAt: report.observedAt }
    return true
  }

  #apply(action: QueuedAction): boolean {
    if (action.kind === 'update_funding') {
      this.funding = { ...this.funding, rate: action.rate, from: action.asOf, until: action.validUntil }
    }
    if (action.kind !== 'settle_part') return true
    if (
      action.batchId === this.batch.id &&
      action.part === this.batch.part + 1 &&
      action.part <= this.batch.parts
    ) {
      this.batch.part = action.part
      return true
    }
    if (action.batchId <= this.batch.id || action.part !== 1) return false
    this.batch = { id: action.batchId, part: 1, parts: action.parts }
    return true
  }
}

interface Draw {
  readonly kind: 'part' | 'update' | 'finalize'
  readonly after: number
  readonly parts: number
  readonly part: number
  readonly batch: number
  readonly price: bigint
  readonly observedAfter: number
  readonly rate: bigint
  readonly lasts: number
}

const anyDraw: fc.Arbitrary<Draw> = fc.record({
  kind: fc.constantFrom('part', 'part', 'part', 'part', 'update', 'update', 'finalize'),
  after: fc.integer({ min: -3, max: 40 }),
  parts: fc.integer({ min: 1, max: 3 }),
  part: fc.integer({ min: 0, max: 1 }),
  batch: fc.integer({ min: 0, max: 1 }),
  price: fc.bigInt({ min: 99n, max: 101n }),
  observedAfter: fc.integer({ min: -2, max: 5 }),
  rate: fc.bigInt({ min: -5_000_000n, max: 5_000_000n }),
  lasts: fc.integer({ min: 1, max: 100 }),
})

/** An action near the end of the queue: often valid, often just wrong. */
function actionOf(draw: Draw, tail: QueueTail, lastBatch: number): QueuedAction {
  const asOf = (Math.max(T, tail.lastAsOf) + (draw.part === 1 ? 0 : draw.after)) as Millis
  const oracle = report(draw.price, (tail.usedReport?.observedAt ?? T) + draw.observedAfter)
  if (draw.kind === 'update') {
    const validUntil = (asOf + draw.lasts) as Millis
    return update({ asOf, report: oracle, rate: draw.rate as HourlyFunding, validUntil })
  }
  if (draw.kind === 'finalize') return { ...finalize, asOf }
  if (tail.openBatch !== null && draw.part === 1) {
    const { batchId, nextPart, parts } = tail.openBatch
    const last = tail.usedReport as QueuedPart['report']
    return part({
      asOf,
      batchId,
      part: nextPart,
      parts: draw.parts === 1 ? 3 : parts,
      report: draw.batch === 1 ? last : oracle,
    })
  }
  return part({ asOf, batchId: lastBatch + draw.batch, part: 1, parts: draw.parts, report: oracle })
}

describe('random queues of all kinds', () => {
  it('when an action is queued by the laws, the contract executes it and has the index of the queue', () => {
    fc.assert(
      fc.property(fc.array(anyDraw, { minLength: 1, maxLength: 30 }), (draws) => {
        const contract = new ContractModel()
        let tail = EMPTY_QUEUE
        let lastBatch = 0
        const queue: QueuedAction[] = []
        for (const draw of draws) {
          const action = actionOf(draw, tail, lastBatch)
          // The number of a new batch is the auction's business, not the queue's.
          if (action.kind === 'settle_part' && action.part === 1 && action.batchId <= lastBatch) continue
          const verdict = enqueue(tail, action)
          if (!verdict.ok) continue
          tail = verdict.value
          queue.push(action)
          if (action.kind === 'settle_part') lastBatch = action.batchId
          expect(contract.execute(action), JSON.stringify(queue, bigintText)).to.equal(true)
        }
        const funding = fundingAfter(NO_FUNDING, queue.map(fundingStepOf))
        expect(funding.index).to.equal(contract.funding.index)
        for (const cut of [0, queue.length >> 1]) {
          const mined = fundingAfter(NO_FUNDING, queue.slice(0, cut).map(fundingStepOf))
          expect(fundingAfter(mined, queue.slice(cut).map(fundingStepOf))).to.deep.equal(funding)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('when the laws refuse an action for its time, its report or an open batch, the contract would break a batch or revert', () => {
    fc.assert(
      fc.property(fc.array(anyDraw, { minLength: 1, maxLength: 12 }), anyDraw, (draws, last) => {
        let tail = EMPTY_QUEUE
        let lastBatch = 0
        const queue: QueuedAction[] = []
        for (const draw of draws) {
          const action = actionOf(draw, tail, lastBatch)
          if (action.kind === 'settle_part' && action.part === 1 && action.batchId <= lastBatch) continue
          const verdict = enqueue(tail, action)
          if (!verdict.ok) continue
          tail = verdict.value
          queue.push(action)
          if (action.kind === 'settle_part') lastBatch = action.batchId
        }
        const refused = actionOf({ ...last, batch: 1 }, tail, lastBatch)
        const verdict = enqueue(tail, refused)
        if (verdict.ok) return
        const contract = new ContractModel()
        for (const action of queue) contract.execute(action)
        const isExecuted = contract.execute(refused)
        const closesBatch = verdict.refusal.code === 'BATCH_OPEN'
        if (!closesBatch) expect(isExecuted, verdict.refusal.code).to.equal(false)
      }),
      { numRuns: 500 },
    )
  })
})

const bigintText = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value)
