import { expect } from 'chai'
import type { MarketSpec } from '../../domain/market/market.ts'
import { exposureOf, isHealthyAfterFills, isRatioNotWorse } from '../../domain/positions/margin.ts'
import { applyFill, FLAT, foldMargin, openingBasis, type Position } from '../../domain/positions/position.ts'
import type { FundingIndex, Price, Quote, Steps, Ticks } from '../../domain/units.ts'
import type { LibHarness } from '../../typechain-types/mocks/LibHarness.ts'
import { refusalOf } from '../support/errors.ts'
import { fieldsOf, orderOf, wallet } from '../support/exchange.ts'
import { markets, rate } from '../support/markets.ts'
import { errorOf, harness, orderStruct, positionStruct, termsStruct } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const RUNS = 150
const alice = wallet('alice')

/** All inputs of one fill, drawn from a seed. */
function draw(spec: MarketSpec, random: (end: number) => number) {
  const top = spec.kind === 'binary_future' ? 998 : 900_000
  const price = (1 + random(top)) as Ticks
  const oracle = (BigInt(price) * spec.tick + BigInt(random(1000)) * (spec.tick / 1000n)) as Price
  const fundingIndex = (BigInt(random(2_000_001) - 1_000_000) * 10n ** 12n) as FundingIndex
  const size = (random(5) === 0 ? 0 : random(4001) - 2000) as Steps
  const entryPrice = BigInt(1 + random(top))
  const held = BigInt(Math.abs(size))
  const entry =
    entryPrice * held * ((spec.tick * spec.step) / 10n ** 18n) + (held > 0n ? BigInt(random(1000)) : 0n)
  const margin = held === 0n ? 0n : (entry * BigInt(random(120) - 10)) / 100n + BigInt(random(97))
  const leverage = size === 0 ? 0 : 1 + random(spec.maxLeverage)
  const position: Position = {
    size,
    entryNotional: entry as Quote,
    foldedMargin: foldMargin(margin, size, fundingIndex),
    leverage,
  }
  const fill = 1 + random(3000)
  const taker = random(3) === 0 ? fill : random(fill + 1)
  const limit = random(3) === 0 ? 0 : price
  const side = random(2) === 0 ? 'LONG' : 'SHORT'
  const input = { by: alice, side, fill, limit, leverage: 1 + random(spec.maxLeverage) } as const
  const rates = { makerFee: rate('0.0001'), takerFee: random(3) === 0 ? rate('0') : spec.takerFee }
  return {
    price,
    oracle,
    position,
    order: orderOf(input, price, spec),
    fill,
    taker,
    terms: { ...rates, fundingIndex },
  }
}

type Drawn = ReturnType<typeof draw>

const inDomain = (spec: MarketSpec, { position, order, fill, taker, price, oracle, terms }: Drawn) =>
  applyFill(
    spec,
    position,
    {
      side: order.side,
      price,
      steps: fill as Steps,
      takerSteps: taker as Steps,
      leverage: order.leverage,
      basis: openingBasis(spec, { side: order.side, limit: order.price }, price, oracle),
    },
    terms,
  )

describe('parity: applyFill, exposure, margin rule', () => {
  let rules: LibHarness
  before(async () => {
    rules = await harness()
  })

  async function compareFill(spec: MarketSpec, drawn: Drawn): Promise<string> {
    const { position, order, fill, taker, terms } = drawn
    const struct = await termsStruct(rules, spec, drawn)
    const call = rules.applyFill(
      positionStruct(position, terms.fundingIndex),
      orderStruct(order, fill, taker),
      struct,
    )
    const verdict = inDomain(spec, drawn)
    if (!verdict.ok) {
      const expected =
        verdict.refusal.code === 'NEGATIVE_PROCEEDS' ? 'ProceedsNegative' : 'PositionOutOfRange'
      expect(await errorOf(call)).to.equal(expected)
      return expected
    }
    const [held, outcome, opened] = await call
    const { position: after, fee, closingFee: _, freeDelta, opened: openedSteps } = verdict.value
    expect({
      ...positionStruct(after, terms.fundingIndex),
      opened: openedSteps > 0,
      fee,
      freeDelta,
    }).to.deep.equal({
      size: Number(held.size),
      entryNotional: held.entryNotional,
      margin: held.margin,
      leverage: Number(held.leverage),
      hasFloors: false,
      opened,
      fee: outcome.fee,
      freeDelta: outcome.freeDelta,
    })
    await compareMargin(spec, drawn, after, struct, openedSteps > 0)
    return 'filled'
  }

  async function compareMargin(
    spec: MarketSpec,
    { position, oracle, terms }: Drawn,
    after: Position,
    struct: Awaited<ReturnType<typeof termsStruct>>,
    opened: boolean,
  ): Promise<void> {
    const held = positionStruct(after, terms.fundingIndex)
    const { equity, notional } = exposureOf(spec, after, terms.fundingIndex, oracle)
    const isBinary = spec.kind === 'binary_future'
    expect([...(await rules.exposure(held, oracle * spec.step, spec.step, isBinary))]).to.deep.equal([
      equity,
      notional,
    ])
    const fills = { before: position, after, opened }
    const isHealthy = isHealthyAfterFills(spec, fills, terms.fundingIndex, oracle)
    // The contract checks only parts that open: a pure close satisfies the rule by construction.
    const refusal = opened ? await errorOf(rules.requireInitial(held, struct)) : null
    expect(refusal).to.equal(isHealthy ? null : 'MarginInsufficient')
    if (!opened && after.size !== 0) {
      const before = exposureOf(spec, position, terms.fundingIndex, oracle)
      expect(isRatioNotWorse(before, { equity, notional })).to.equal(true)
    }
  }

  for (const spec of markets) {
    it(`returns the same results for ${RUNS} fills in a ${spec.kind} market`, async () => {
      const random = randomOf(spec.marketId)
      const seen = new Map<string, number>()
      for (let run = 0; run < RUNS; run++) {
        const outcome = await compareFill(spec, draw(spec, random))
        seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
      }
      expect(seen.get('filled')).to.be.greaterThan(RUNS / 3)
      expect(seen.get('ProceedsNegative')).to.be.greaterThan(3)
    }).timeout(60_000)
  }

  /** A fill of the whole side against `size` steps, with all other inputs as drawn. */
  async function fillAgainst(size: number, fill: number, margin: (entry: bigint) => bigint) {
    const spec = markets[0] as MarketSpec
    const drawn = draw(spec, randomOf(21))
    const index = drawn.terms.fundingIndex
    const entryNotional = (BigInt(drawn.price) * spec.tick * spec.step * BigInt(Math.abs(size))) / 10n ** 18n
    const folded = foldMargin(margin(entryNotional), size as Steps, index)
    const position = {
      size: size as Steps,
      entryNotional: entryNotional as Quote,
      foldedMargin: folded,
      leverage: 1,
    }
    const order = { ...drawn.order, side: size > 0 ? 'SHORT' : 'LONG' } as const
    return { ...drawn, spec, position, order, fill, taker: fill }
  }

  it('when a fill closes one step, or a position of one step, it returns the same results', async () => {
    for (const [size, fill] of [
      [1, 1],
      [-1, 1],
      [1, 3],
      [-1, 3],
      [7, 1],
      [-7, 1],
    ] as const) {
      const drawn = await fillAgainst(size, fill, (entry) => entry)
      // With a profit, so that the side matters.
      const { entryNotional } = drawn.position
      const position = {
        ...drawn.position,
        entryNotional: ((entryNotional * (size > 0 ? 9n : 11n)) / 10n) as Quote,
      }
      expect(await compareFill(drawn.spec, { ...drawn, position })).to.equal('filled')
    }
  })

  it('when a sell opens, it returns the same margin for a limit and an oracle price below the clearing price', async () => {
    const spec = markets[0] as MarketSpec
    const drawn = draw(spec, randomOf(22))
    const price = 10_000 as Ticks
    for (const limit of [0, 9_000, 10_000])
      for (const oracleTicks of [9_500n, 10_500n]) {
        const order = { ...drawn.order, side: 'SHORT', price: limit as Ticks } as const
        const oracle = (oracleTicks * spec.tick) as Price
        const opening = { ...drawn, price, oracle, position: FLAT, order }
        expect(await compareFill(spec, opening)).to.equal('filled')
      }
  })

  it('when a reduce-only order exceeds the position, it reverts with ReduceOnlyExceeded', async () => {
    const { order, fill, taker, spec, position, terms, ...drawn } = await fillAgainst(4, 5, (entry) => entry)
    const struct = await termsStruct(rules, spec, { ...drawn, terms })
    const held = positionStruct(position, terms.fundingIndex)
    const reducing = { ...order, reduceOnly: true }
    expect(await errorOf(rules.applyFill(held, orderStruct(reducing, fill, taker), struct))).to.equal(
      'ReduceOnlyExceeded',
    )
    expect(await errorOf(rules.applyFill(held, orderStruct(reducing, 4, 4), struct))).to.equal(null)
  })

  it('when the proceeds of a close are exactly zero or the fee, it settles and caps only a larger fee', async () => {
    const outcomeWith = async (margin: bigint) => {
      const { order, fill, taker, spec, position, terms, ...drawn } = await fillAgainst(2, 2, () => margin)
      const struct = await termsStruct(rules, spec, { ...drawn, terms })
      const call = rules.applyFill(
        positionStruct(position, terms.fundingIndex),
        orderStruct(order, fill, taker),
        struct,
      )
      return (await call)[1]
    }
    // Bought and sold at the same price: the proceeds are the margin.
    const { fee } = await outcomeWith(10n ** 24n)
    expect(fee).to.be.greaterThan(0n)
    for (const [margin, isCapped] of [
      [0n, true],
      [fee - 1n, true],
      [fee, false],
    ] as const) {
      const outcome = await outcomeWith(margin)
      expect([outcome.freeDelta, outcome.feeCapped]).to.deep.equal([0n, isCapped])
    }
  })

  it('requires margin for a single step', async () => {
    const random = randomOf(11)
    for (const spec of markets) {
      const drawn = draw(spec, random)
      const struct = await termsStruct(rules, spec, drawn)
      const worth = (BigInt(drawn.price) * spec.tick * spec.step) / 10n ** 18n
      for (const size of [1, -1] as Steps[]) {
        const bare = { ...FLAT, size, entryNotional: worth as Quote }
        const held = positionStruct(bare, drawn.terms.fundingIndex)
        expect(await errorOf(rules.requireInitial({ ...held, margin: 0 }, struct))).to.equal(
          'MarginInsufficient',
        )
      }
    }
  })

  it('packs a position into one slot and back, also at the bounds', async () => {
    const random = randomOf(7)
    const bounds: Position[] = [
      FLAT,
      {
        size: Number.MAX_SAFE_INTEGER as Steps,
        entryNotional: ((1n << 92n) - 1n) as Quote,
        foldedMargin: ((1n << 91n) - 1n) as Quote,
        leverage: 127,
      },
      {
        size: -Number.MAX_SAFE_INTEGER as Steps,
        entryNotional: 0n as Quote,
        foldedMargin: (1n - (1n << 91n)) as Quote,
        leverage: 1,
      },
    ]
    const drawn = Array.from({ length: 50 }, () => draw(markets[0]!, random).position)
    for (const position of [...bounds, ...drawn]) {
      const index = BigInt(random(1000) - 500) as FundingIndex
      const struct = { ...positionStruct(position, index), hasFloors: random(2) === 1 }
      const word = await rules.packPosition(struct, index)
      const read = fieldsOf(await rules.unpack(word, index))
      expect({ ...read, size: Number(read.size), leverage: Number(read.leverage) }).to.deep.equal(struct)
    }
  })

  it('changes margin and leverage in the packed slot as in the unpacked position', async () => {
    const random = randomOf(8)
    for (let run = 0; run < 50; run++) {
      const { position } = draw(markets[0]!, random)
      const index = BigInt(random(1000) - 500) as FundingIndex
      const struct = { ...positionStruct(position, index), hasFloors: random(2) === 1 }
      const word = await rules.packPosition(struct, index)
      const moved = (BigInt(random(2001)) - 1000n) * 10n ** BigInt(random(22))
      const after = { ...struct, margin: BigInt(struct.margin) + moved }
      const { changed, folded } = await rules.addMargin(word, moved, alice.address)
      expect(changed).to.equal(await rules.packPosition(after, index))
      expect(folded).to.equal(position.foldedMargin + moved)
      const leverage = 1 + random(127)
      expect(await rules.withLeverage(word, leverage)).to.equal(
        await rules.packPosition({ ...struct, leverage }, index),
      )
    }
  })

  it('reverts with PositionOutOfRange when the margin exceeds the slot', async () => {
    const most = (1n << 91n) - 1n
    const refusal = `PositionOutOfRange(${alice.address})`
    for (const sign of [1n, -1n]) {
      const full = { ...positionStruct(FLAT, 0n as FundingIndex), size: 5, margin: sign * most }
      const word = await rules.packPosition(full, 0)
      expect((await rules.addMargin(word, 0, alice.address)).folded).to.equal(sign * most)
      expect(await refusalOf(rules.addMargin(word, sign, alice.address))).to.equal(refusal)
      const empty = await rules.packPosition({ ...full, margin: 0n }, 0)
      expect((await rules.addMargin(empty, sign * most, alice.address)).changed).to.equal(word)
      for (const moved of [sign * (most + 1n), sign * ((1n << 96n) + 1n), sign * ((1n << 255n) - 1n)]) {
        expect(await refusalOf(rules.addMargin(empty, moved, alice.address))).to.equal(refusal)
      }
    }
  })

  it('reverts with PositionOutOfRange where domain/ reports a value out of range', async () => {
    const over: Partial<Position>[] = [
      { entryNotional: (1n << 92n) as Quote },
      { foldedMargin: (1n << 91n) as Quote },
      { foldedMargin: -(1n << 91n) as Quote },
    ]
    for (const change of over) {
      const struct = positionStruct({ ...FLAT, ...change }, 0n as FundingIndex)
      expect(await errorOf(rules.packPosition(struct, 0))).to.equal('PositionOutOfRange')
    }
    const struct = { ...positionStruct(FLAT, 0n as FundingIndex), size: 1n << 53n }
    expect(await errorOf(rules.packPosition(struct, 0))).to.equal('PositionOutOfRange')
  })
})
