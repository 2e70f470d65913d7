import { expect } from 'chai'
import {
  caller,
  chain,
  type Exchange,
  type FillInput,
  nextSecond,
  type PartInput,
  perpetualExchange,
  settle,
} from '../../support/exchange.ts'
import { expectPartRefused } from '../../support/refusals.ts'
import { audit } from '../support/audit.ts'

const PRICE = 500_000
const SALT = 77n
const [UNUSED, PARTLY, DEAD, REQUESTED] = [0n, 1n, 2n, 3n]

describe('settleBatch: fill state of an order', () => {
  let exchange: Exchange
  let maker: string

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    maker = exchange.users[0]!.address
  })
  afterEach(() => audit(exchange))

  /** The maker buys with a limit order of 1000; another account sells the filled quantity. */
  const part = (input: Partial<FillInput> = {}, rest: Partial<PartInput> = {}): PartInput => {
    const [by, other] = exchange.users
    const mine: FillInput = {
      by: by!,
      side: 'LONG',
      fill: 400,
      quantity: 1000,
      salt: SALT,
      slot: 0,
      ...input,
    }
    return { price: PRICE, ...rest, fills: [mine, { by: other!, side: 'SHORT', fill: mine.fill }] }
  }
  const refused = (input: Partial<FillInput>, error: string, args: readonly unknown[] = [], rest = {}) =>
    expectPartRefused(exchange, part(input, rest), { error, args: [maker, SALT, ...args] })
  const state = (salt = SALT) => exchange.trader.saltState(maker, salt)
  const slot = async (index: number) => {
    const [salt, filled, batchId] = await exchange.trader.partialSlot(maker, index)
    return [salt, filled, batchId]
  }

  describe('given an unused salt', () => {
    it('when it fills completely, the salt is dead and no slot is used', async () => {
      await settle(exchange, part({ fill: 1000, slot: null }))
      expect(await state()).to.equal(DEAD)
      expect(await slot(0)).to.deep.equal([0n, 0n, 0n])
      await refused({ fill: 1 }, 'OrderDead')
    })
    it('when it fills partly, its slot stores salt, filled quantity and batch', async () => {
      await settle(exchange, part({}, { batchId: 9 }))
      expect(await state()).to.equal(PARTLY)
      expect(await slot(0)).to.deep.equal([SALT, 400n, 9n])
    })
    it('when it fills partly without a slot, it reverts with PartialSlotMissing', () =>
      refused({ slot: null }, 'PartialSlotMissing'))
    it('when more is filled than signed, it reverts with Overfill', () =>
      refused({ fill: 1001 }, 'Overfill', [1000, 1001]))
  })

  describe('given a partly filled order', () => {
    beforeEach(async () => {
      await settle(exchange, part())
    })
    it('when it fills further, the slot adds the quantity', async () => {
      await settle(exchange, part({ fill: 500 }))
      expect((await slot(0))[1]).to.equal(900n)
      expect(await state()).to.equal(PARTLY)
    })
    it('when its rest fills, the salt is dead', async () => {
      await settle(exchange, part({ fill: 600 }))
      expect(await state()).to.equal(DEAD)
      await refused({ fill: 1 }, 'OrderDead')
    })
    it('when more than its rest is filled, it reverts with Overfill', () =>
      refused({ fill: 601 }, 'Overfill', [600, 601]))
    it('when no slot is given, it reverts with PartialSlotMissing', () =>
      refused({ slot: null }, 'PartialSlotMissing'))
    it('when an empty slot is given, it reverts with PartialSlotMismatch', () =>
      refused({ slot: 1 }, 'PartialSlotMismatch', [1]))
    it('when another order’s slot is given, it reverts with PartialSlotMismatch', async () => {
      await settle(exchange, part({ salt: 78n, slot: 1 }))
      await refused({ slot: 1 }, 'PartialSlotMismatch', [1])
    })
    it('when the signed quantity differs, maker and salt still identify it: Overfill', () =>
      refused({ quantity: 300, fill: 1 }, 'Overfill', [0, 1]))

    for (const [where, other] of [
      ['of the same word', 78n],
      ['of another word', 1n << 40n],
    ] as const) {
      it(`when its slot is reused by an order ${where}, it is dead`, async () => {
        await settle(exchange, part({ salt: other }))
        expect([await state(), await state(other)]).to.deep.equal([DEAD, PARTLY])
        await refused({ fill: 1 }, 'OrderDead')
      })
    }
    it('when the slot of a dead order is reused, only the slot’s new order changes state', async () => {
      await settle(exchange, part({ fill: 600 }))
      await settle(exchange, part({ salt: 1n << 40n }))
      expect([await state(), await state(1n << 40n)]).to.deep.equal([DEAD, PARTLY])
    })
  })

  describe('given an order without a limit price', () => {
    const market = { limit: 0 }
    it('when it ends within the part, it needs no slot and its salt is dead', async () => {
      await settle(exchange, part({ ...market, slot: null }))
      expect(await state()).to.equal(DEAD)
      await refused({ ...market, fill: 1 }, 'OrderDead')
    })
    it('when it fills in two parts of one batch, both settle', async () => {
      const asOf = ((await nextSecond(exchange)) * 1000) as never
      const batch = { batchId: 5, parts: 2, asOf, observedAt: asOf as number }
      await settle(exchange, part(market, { ...batch, part: 1 }))
      await settle(exchange, part(market, { ...batch, part: 2 }))
      expect((await slot(0))[1]).to.equal(800n)
    })
    it('when it is settled again in a later batch, it reverts with MarketOrderStale', async () => {
      await settle(exchange, part(market, { batchId: 5 }))
      await refused(market, 'MarketOrderStale', [5, 6])
    })
  })

  describe('given a cancel request', () => {
    const cancel = async (...salts: bigint[]) => {
      await exchange.trader.connect(await caller(exchange, exchange.users[0]!)).cancelSalts(salts)
      return (await exchange.connection.networkHelpers.time.latest()) * 1000
    }
    const late = async () => {
      const asOf = ((await nextSecond(exchange)) * 1000) as never
      return { asOf, observedAt: asOf as number }
    }

    it('when asOf is up to 5 s after the request, it fills; later it reverts with OrderCancelled', async () => {
      const requestedAt = await cancel(SALT)
      expect(await state()).to.equal(REQUESTED)
      await exchange.connection.networkHelpers.time.increase(5)
      await refused({}, 'OrderCancelled', [requestedAt, requestedAt + 5001], {
        asOf: requestedAt + 5001,
        observedAt: requestedAt + 5001,
      })
      await settle(exchange, part({}, { asOf: (requestedAt + 5000) as never, observedAt: requestedAt }))
      await refused({}, 'OrderCancelled', [requestedAt, (await late()).asOf])
    })
    it('when it fills before and after the request, the filled quantity adds up', async () => {
      await settle(exchange, part())
      await cancel(SALT)
      await settle(exchange, part({ fill: 500 }))
      await refused({ fill: 101 }, 'Overfill', [100, 101])
      await settle(exchange, part({ fill: 100 }))
      expect(await state()).to.equal(DEAD)
    })
    it('when it first fills after the request, further fills still need its slot and count that fill', async () => {
      await cancel(SALT)
      await settle(exchange, part())
      expect(await state()).to.equal(REQUESTED)
      await refused({ fill: 601 }, 'Overfill', [600, 601])
      await refused({ fill: 600, slot: null }, 'PartialSlotMissing')
    })
    it('when it first fills after the request into a slot of its own word, the slot’s former order is dead', async () => {
      await settle(exchange, part({ salt: 78n }))
      await cancel(SALT)
      await settle(exchange, part())
      expect([await state(78n), await state()]).to.deep.equal([DEAD, REQUESTED])
    })
    it('when its slot is reused, it is dead', async () => {
      await settle(exchange, part())
      await cancel(SALT)
      await settle(exchange, part({ salt: 78n }))
      expect(await state()).to.equal(DEAD)
    })
    it('when a salt was never cancelled or used, it is unused', async () => {
      expect(await state(5n)).to.equal(UNUSED)
    })
  })
})
