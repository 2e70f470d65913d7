import { expect } from 'chai'
import { AbiCoder } from 'ethers'
import { fillFee } from '../../domain/market/fees.ts'
import { packFlags } from '../../domain/orders/order-hash.ts'
import type { ForcedFill, SettlementFill, SettlementPart } from '../../domain/settlement/settlement.ts'
import {
  BATCH_SETTLED_TOPIC,
  decodeBatchSettled,
  encodeSettleBatch,
} from '../../domain/settlement/settlement-codec.ts'
import type { FundingIndex, Millis, Price, Quote, Rate, Steps, Ticks } from '../../domain/units.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { SettlementLens__factory } from '../../typechain-types/factories/SettlementLens__factory.ts'
import type { LibHarness, OrderFillStruct } from '../../typechain-types/mocks/LibHarness.ts'
import { addressOf, chain, fieldsOf, firstSigner, orderOf, signOrder, wallet } from '../support/exchange.ts'
import { markets, perpetual } from '../support/markets.ts'
import { harness, NO_SLOT, orderStruct } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const RUNS = 60
type Random = (end: number) => number

/** Values up to the full width of their field. */
const wide = (random: Random, bits: number): bigint =>
  ((BigInt(random(2 ** 31)) << 64n) | (BigInt(random(2 ** 31)) << 32n) | BigInt(random(2 ** 31))) &
  ((1n << BigInt(bits)) - 1n)
const count = (random: Random, bits: number): number => Number(wide(random, bits))

function drawFill(random: Random): SettlementFill | ForcedFill {
  const signer = wallet(`maker ${random(9)}`)
  const fill = 1 + count(random, 47)
  const taker = [0, fill, count(random, 46) % fill][random(3)] as number
  if (random(4) === 0) return drawForced(random, fill, taker)
  const order = orderOf(
    {
      by: signer,
      side: random(2) === 0 ? 'LONG' : 'SHORT',
      fill,
      limit: count(random, 40),
      quantity: 1 + count(random, 47),
      leverage: 1 + random(127),
      salt: wide(random, 53),
      reduceOnly: random(2) === 0,
      expiration: count(random, 40),
      type: random(2) === 0 ? 'LIMIT' : 'STOP_LOSS_LIMIT',
      trigger: count(random, 40),
    },
    1,
    perpetual,
  )
  const partialSlot = random(3) === 0 ? null : random(1023)
  return {
    order: signOrder(order, perpetual, signer),
    fill: fill as Steps,
    taker: taker as Steps,
    partialSlot,
  }
}

const drawForced = (random: Random, fill: number, taker: number): ForcedFill => ({
  account: addressOf(wallet(`maker ${random(9)}`)),
  number: wide(random, 53),
  side: random(2) === 0 ? 'LONG' : 'SHORT',
  fill: fill as Steps,
  taker: taker as Steps,
})

/** The record as a struct, without its signature. */
function structOf(record: SettlementFill | ForcedFill): Omit<OrderFillStruct, 'r' | 's' | 'v'> {
  const { fill, taker } = record
  if ('order' in record) {
    const { r: _r, s: _s, v: _v, ...given } = orderStruct(record.order, fill, taker)
    return { ...given, slot: record.partialSlot ?? NO_SLOT }
  }
  const { account: maker, number: salt, side } = record
  const flags = packFlags({ salt, side, reduceOnly: true })
  return {
    ...{ maker, flags, salt, buy: side === 'LONG', reduceOnly: true, quantity: fill, fill, taker },
    ...{ price: 0, trigger: 0, triggerCondition: 0, leverage: 0, expiration: 0, slot: NO_SLOT, forced: true },
  }
}

const UNSIGNED = { r: `0x${'0'.repeat(64)}`, s: `0x${'0'.repeat(64)}`, v: 27 }

/** The event's fields for a record that do not depend on its signer. */
const settledOf = (record: SettlementFill | ForcedFill) =>
  'order' in record
    ? {
        maker: record.order.maker,
        salt: record.order.salt,
        isForced: false,
        side: record.order.side,
        reduceOnly: record.order.reduceOnly,
        leverage: record.order.leverage,
        partialSlot: record.partialSlot,
      }
    : {
        maker: record.account,
        salt: record.number,
        isForced: true,
        side: record.side,
        reduceOnly: true,
        leverage: 0,
        partialSlot: null,
      }

function drawPart(random: Random): SettlementPart {
  const fills = Array.from({ length: 1 + random(4) }, () => drawFill(random))
  return {
    marketId: perpetual.marketId,
    actionId: count(random, 48),
    batchId: count(random, 48),
    part: random(256),
    parts: random(256),
    asOf: count(random, 48) as Millis,
    price: (1 + count(random, 39)) as Ticks,
    makerFee: (wide(random, 24) * 10n ** 12n) as Rate,
    takerFee: (wide(random, 24) * 10n ** 12n) as Rate,
    oracle: {
      price: wide(random, 90) as Price,
      observedAt: count(random, 48) as Millis,
      signatures: `0x${'ab'.repeat(65 * random(4))}`,
    },
    fills,
  }
}

describe('parity: codec', () => {
  let rules: LibHarness
  before(async () => {
    rules = await harness()
  })

  it(`decodes ${RUNS} parts to the values that were encoded`, async () => {
    const lens = await new SettlementLens__factory(await firstSigner(await chain())).deploy()
    const random = randomOf(1)
    for (let run = 0; run < RUNS; run++) {
      const part = drawPart(random)
      const [header, orders, proof] = await lens.decodePart(encodeSettleBatch(part, perpetual))
      expect(
        [header.actionId, header.batchId, header.asOf, header.part, header.parts].map(Number),
      ).to.deep.equal([part.actionId, part.batchId, part.asOf, part.part, part.parts])
      expect([header.oraclePrice, Number(header.observedAt), Number(header.price)]).to.deep.equal([
        part.oracle.price,
        part.oracle.observedAt,
        part.price,
      ])
      expect(proof).to.equal(part.oracle.signatures)
      for (const [index, record] of part.fills.entries()) {
        const { r, s, v, ...read } = fieldsOf(orders[index]!)
        expect({ ...read, maker: read.maker.toLowerCase() }).to.deep.equal(big(structOf(record)))
        const signature = 'order' in record ? record.order.signature : `0x${'0'.repeat(128)}1b01`
        expect(`${r}${s.slice(2)}${v.toString(16)}01`).to.equal(signature)
      }
    }
  }).timeout(60_000)

  it(`decodes ${RUNS} events of every market kind`, async () => {
    const random = randomOf(2)
    for (let run = 0; run < RUNS; run++) {
      const spec = { ...markets[run % 3]!, marketId: perpetual.marketId }
      const given = drawPart(random)
      const part = { ...given, price: (1 + (given.price % 900)) as Ticks }
      const index = (wide(random, 90) - (1n << 89n)) as FundingIndex
      const outcomes = part.fills.map(() => ({
        freeDelta: wide(random, 95) - (1n << 94n),
        fee: wide(random, 95),
        feeCapped: random(2) === 0,
        dead: random(2) === 0,
      }))
      const structs = part.fills.map((record) => ({ ...structOf(record), ...UNSIGNED }))
      const packed = await rules.encodeLog(encodeSettleBatch(part, spec), structs, outcomes, index)
      const data = AbiCoder.defaultAbiCoder().encode(['bytes'], [packed])
      const event = decodeBatchSettled([BATCH_SETTLED_TOPIC], data, spec)
      const { oracle, fills, marketId: _, ...header } = part
      expect({ ...event, fills: [] }).to.deep.equal({
        ...header,
        oraclePrice: oracle.price,
        observedAt: oracle.observedAt,
        fundingIndex: index,
        fills: [],
      })
      for (const [at, record] of fills.entries()) {
        const { fill, taker } = record
        const { fee, feeCapped, dead, freeDelta } = outcomes[at]!
        const shares = { taker, maker: (fill - taker) as Steps }
        expect(event.fills[at]).to.deep.equal({
          ...settledOf(record),
          fill,
          taker,
          isDead: dead,
          isFeeCapped: feeCapped,
          fee: feeCapped ? (fee as Quote) : fillFee(spec, part.price, shares, part),
          freeDelta,
        })
      }
    }
  }).timeout(60_000)

  it('uses the event’s topic', () => {
    const { topicHash } = IsolatedTrader__factory.createInterface().getEvent('BatchSettled')
    expect(BATCH_SETTLED_TOPIC).to.equal(topicHash)
  })
})

/** Numbers in the form in which the ABI returns them. */
const big = (struct: object): object =>
  Object.fromEntries(
    Object.entries(struct).map(([name, value]) => [name, typeof value === 'number' ? BigInt(value) : value]),
  )
