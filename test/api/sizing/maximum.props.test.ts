/** Property over HTTP: the returned maximum is accepted and one step more is rejected, for any position and orders of the account. */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { ORDER_TYPES, type OrderType } from '../../../domain/orders/order.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  type OrderTerms,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

/** The oracle price in ticks. */
const MARKETS = [
  { spec: perpetual, oracle: 1_000 },
  { spec: future, oracle: 100 },
  { spec: binary, oracle: 500 },
] as const
type Market = (typeof MARKETS)[number]

/** The decimal text of a number of ticks or steps. */
function times(unit: bigint, count: number | bigint): string {
  const wei = (unit * BigInt(count)).toString().padStart(19, '0')
  return `${wei.slice(0, -18)}.${wei.slice(-18)}`
}

interface Held {
  /** In steps; 0 for none. */
  readonly size: number
  /** Entry price in percent of the oracle price, and margin in percent of the notional. */
  readonly entry: number
  readonly margin: number
}

interface Terms {
  readonly side: 'LONG' | 'SHORT'
  readonly type: OrderType
  readonly leverage: number
  /** In permille of the oracle price. */
  readonly price: number
  readonly trigger: number
}

const OPENING = ['MARKET', 'LIMIT', 'STOP_MARKET', 'STOP_LIMIT'] as const
const side = fc.constantFrom('LONG', 'SHORT')
/** Mostly inside the band. */
const permille = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 960, max: 1040 }) },
  fc.integer({ min: 700, max: 1300 }),
)
const terms: fc.Arbitrary<Terms> = fc.record({
  side,
  type: fc.oneof(fc.constantFrom(...OPENING), fc.constantFrom(...ORDER_TYPES)),
  leverage: fc.integer({ min: 1, max: 20 }),
  price: permille,
  trigger: permille,
})
const held: fc.Arbitrary<Held> = fc.oneof(
  fc.constant({ size: 0, entry: 100, margin: 100 }),
  fc.record({
    size: fc.oneof(fc.integer({ min: -2_000, max: 2_000 }), fc.constantFrom(-1, 1, 5, -5)),
    entry: fc.integer({ min: 80, max: 120 }),
    margin: fc.integer({ min: 3, max: 120 }),
  }),
)
const scene = fc.record({
  free: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 2_000 }) },
    fc.constantFrom(0, 1_000_000_000),
  ),
  held,
  book: fc.array(fc.record({ terms, steps: fc.integer({ min: 10, max: 500 }) }), { maxLength: 4 }),
  terms,
})

const isMarket = (type: OrderType): boolean => type.endsWith('MARKET')
const isPlain = (type: OrderType): boolean => type === 'MARKET' || type === 'LIMIT'
const mustReduce = (type: OrderType): boolean => /^(TAKE_PROFIT|STOP_LOSS)/.test(type)

function draftOf({ spec, oracle }: Market, { type, leverage, price, trigger, ...terms }: Terms): OrderTerms {
  const at = (per: number): string => times(spec.tick, Math.max(10, Math.round((oracle * per) / 1_000)))
  return {
    ...terms,
    type,
    market: spec,
    leverage: Math.min(leverage, spec.maxLeverage),
    reduceOnly: mustReduce(type),
    ...(!isMarket(type) && { price: at(price) }),
    ...(!isPlain(type) && { trigger: at(trigger) }),
  }
}

describe('the maximum quantity', function () {
  this.timeout(120_000)
  let exchange: ExchangeFixture
  let users = 0

  before(async () => {
    exchange = await startExchange()
  })
  after(() => exchange.stop())

  /** Stores a position as the keeper does. */
  async function hold(user: User, { spec, oracle }: Market, { size, entry, margin }: Held): Promise<void> {
    if (size === 0) return
    const at = BigInt(Math.round((oracle * entry) / 100))
    const entry_notional = (BigInt(Math.abs(size)) * at * spec.tick * spec.step) / e18('1')
    const folded_margin = (entry_notional * BigInt(margin)) / 100n
    await withMirror(exchange.db)
      .insertInto('positions')
      .values({
        ...{
          user_id: user.userId,
          market_id: spec.marketId,
          size,
          entry_notional,
          folded_margin,
          leverage: 1,
        },
        ...{ matched_size: size, matched_entry_notional: entry_notional },
        ...{ matched_folded_margin: folded_margin, matched_leverage: 1 },
      })
      .execute()
  }

  const estimate = (
    user: User,
    { market, side, type, leverage, price, trigger }: OrderTerms,
  ): Promise<Answer> =>
    exchange.send(user, 'POST', '/v0/orders/estimate', {
      ...{ market_id: market?.marketId, side, order_type: type, leverage, sizing_intent: 'max' },
      ...(price !== undefined && { price }),
      ...(trigger !== undefined && { trigger_price: trigger }),
    })

  async function check(user: User, { spec }: Market, terms: OrderTerms): Promise<string> {
    const { status, body } = await estimate(user, terms)
    const input = JSON.stringify([{ ...terms, market: spec.symbol }, body])
    expect(status, input).to.equal(200)
    const { maximum } = body
    const most = Number(BigInt(maximum.quantity_e18_raw) / spec.step)
    const { code } = maximum.binding
    const place = (count: number) => exchange.place(user, { ...terms, quantity: times(spec.step, count) })
    // A reduce-only order above the position is accepted but fills only the position, so the maximum is the position.
    if (code !== 'POSITION_SIZE') {
      const { body: refused } = await place(most === 0 ? spec.minQuantity : most + 1)
      expect(refused.details?.code, input).to.equal(code)
      if (code === 'INSUFFICIENT_MARGIN' && most > 0)
        expect(e18(refused.details.nearest_valid), input).to.equal(BigInt(maximum.quantity_e18_raw))
    }
    if (most === 0) return `nothing: ${code}`
    const { status: placed, body: answer } = await place(most)
    expect(placed, `${input} ${JSON.stringify(answer)}`).to.equal(200)
    expect(answer.order.reserved_margin_e18_raw, input).to.equal(maximum.reserved_margin_e18_raw)
    return code
  }

  for (const market of MARKETS) {
    it(`when the maximum of any ${market.spec.kind} order is placed, it is accepted, and one step more is rejected`, async () => {
      const bindings: string[] = []
      await fc.assert(
        fc.asyncProperty(scene, async ({ free, held, book, terms }) => {
          const user = await createUser(exchange.db, `sizer-${++users}`, String(free))
          await hold(user, market, held)
          // Rejected orders are not in the book.
          for (const { terms, steps } of book)
            await exchange.place(user, {
              ...draftOf(market, terms),
              quantity: times(market.spec.step, steps),
            })
          bindings.push(await check(user, market, draftOf(market, terms)))
        }),
        { numRuns: 60 },
      )
      expect(bindings).to.include('INSUFFICIENT_MARGIN')
    })
  }
})
