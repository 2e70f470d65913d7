import { expect } from 'chai'
import type { BatchSettled, SettledFill } from '../../../domain/settlement/settlement.ts'
import {
  applyFillStates,
  applyFreeDelta,
  backsBatch,
  type FillStates,
  feesOf,
  type LedgerAccount,
  ledgerDeltas,
  saltKey,
  slotKey,
} from '../../../domain/settlement/settlement-replay.ts'
import type { Address, Millis, Seconds } from '../../../domain/units.ts'
import { index, price, quote, rate, steps, ticks } from '../../support/markets.ts'

const alice = `0x${'aa'.repeat(20)}` as Address
const bob = `0x${'bb'.repeat(20)}` as Address

const fill = (maker: Address, change: Partial<SettledFill> = {}): SettledFill => ({
  maker,
  salt: 1n,
  isForced: false,
  side: 'LONG',
  reduceOnly: false,
  leverage: 1,
  fill: steps(10),
  taker: steps(0),
  partialSlot: null,
  isDead: true,
  isFeeCapped: false,
  fee: quote('1'),
  freeDelta: quote('-5'),
  ...change,
})

const batch = (...fills: SettledFill[]): BatchSettled => ({
  actionId: 1,
  batchId: 1,
  part: 1,
  parts: 1,
  asOf: 0 as Millis,
  price: ticks(1),
  makerFee: rate('0'),
  takerFee: rate('0'),
  oraclePrice: price('1'),
  observedAt: 0 as Millis,
  fundingIndex: index(0n),
  fills,
})

const NOTHING: FillStates = { orders: new Map(), slots: new Map() }

describe('ledgerDeltas and feesOf', () => {
  it('when records of one account are adjacent, they add up to one ledger change, and fees add up over all records', () => {
    const event = batch(fill(alice), fill(alice, { freeDelta: quote('8') }), fill(bob), fill(alice))
    expect(ledgerDeltas(event)).to.deep.equal([
      { account: alice, delta: quote('3') },
      { account: bob, delta: quote('-5') },
      { account: alice, delta: quote('-5') },
    ])
    expect(feesOf(event)).to.equal(quote('4'))
  })
})

describe('applyFreeDelta', () => {
  const account: LedgerAccount = { free: quote('10'), pending: quote('5'), requestedAt: 100 as Seconds }
  const at = (ms: number) => ms as Millis

  it('when the change is a credit, it increases the free balance only', () => {
    expect(applyFreeDelta(account, quote('1'), at(0))).to.deep.equal({ ...account, free: quote('11') })
  })
  it('when the change is a debit, it uses the free balance first, then a pending withdrawal that backs the batch', () => {
    expect(applyFreeDelta(account, quote('-10'), at(999_999))).to.deep.equal({ ...account, free: 0n })
    expect(applyFreeDelta(account, quote('-12'), at(105_000))).to.deep.equal({
      ...account,
      free: 0n,
      pending: quote('3'),
    })
  })
  it('when a debit exceeds both, or the pending withdrawal no longer backs the batch, it returns null', () => {
    expect(applyFreeDelta(account, quote('-15.1'), at(0))).to.equal(null)
    expect(applyFreeDelta(account, quote('-10.1'), at(105_001))).to.equal(null)
    expect([backsBatch(100 as Seconds, at(105_000)), backsBatch(100 as Seconds, at(105_001))]).to.deep.equal([
      true,
      false,
    ])
  })
})

describe('applyFillStates', () => {
  const partly = { isDead: false, partialSlot: 3 } as const

  it('when an order fills again, it adds up the filled steps', () => {
    const { orders, slots } = applyFillStates(NOTHING, batch(fill(alice, partly), fill(alice)))
    expect(orders.get(saltKey(alice, 1n))).to.deep.equal({ filled: 20, isDead: true })
    expect(slots.get(slotKey(alice, 3))).to.equal(1n)
  })
  it('when a fill reuses a partial slot, the order that held the slot is dead', () => {
    const event = batch(fill(alice, partly), fill(bob, partly), fill(alice, { ...partly, salt: 2n }))
    const { orders } = applyFillStates(NOTHING, event)
    expect(orders.get(saltKey(alice, 1n))?.isDead).to.equal(true)
    expect(orders.get(saltKey(alice, 2n))?.isDead).to.equal(false)
    expect(orders.get(saltKey(bob, 1n))?.isDead).to.equal(false)
  })
  it('when it is applied, it does not change its input', () => {
    applyFillStates(NOTHING, batch(fill(alice)))
    expect(NOTHING.orders.size).to.equal(0)
  })
})
