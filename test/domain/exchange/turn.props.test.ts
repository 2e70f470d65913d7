/** Laws of a market's turn, over random placements, prices and times. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { MAX_ORDERS_PER_TURN } from '../../../domain/auction/turn-bound.ts'
import { load, serialize } from '../../../domain/exchange/checkpoint.ts'
import { firstStep, marketTurn } from '../../../domain/exchange/decide/turn/turn.ts'
import { decideOn } from '../../../domain/exchange/decide.ts'
import { violations } from '../../../domain/exchange/laws.ts'
import { digestOf } from '../../../domain/exchange/state.ts'
import type { OrderHash } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'
import { type AnyPlacement, TurnMarket } from './support/turn-market.ts'

const USERS = 5
const START_SECONDS = 1_800_000_000

const anySide = fc.constantFrom('LONG' as const, 'SHORT' as const)
const anyPlacement: fc.Arbitrary<AnyPlacement> = fc.oneof(
  fc.record({
    by: fc.integer({ min: 1, max: USERS }),
    side: anySide,
    steps: fc.integer({ min: 10, max: 200 }),
    limit: fc.oneof(fc.constant(0), fc.integer({ min: 980, max: 1020 })),
    leverage: fc.constantFrom(1, 5, 20),
    expiration: fc.oneof(fc.constant(0), fc.integer({ min: START_SECONDS, max: START_SECONDS + 20 })),
    reduceOnly: fc.boolean(),
  }),
  fc.record({
    by: fc.integer({ min: 1, max: USERS }),
    side: anySide,
    steps: fc.integer({ min: 10, max: 200 }),
    limit: fc.constant(0),
    type: fc.constant('STOP_MARKET' as const),
    trigger: fc.integer({ min: 960, max: 1040 }),
  }),
)

interface Round {
  readonly placements: readonly AnyPlacement[]
  readonly wait: number
  readonly oracle: number
}

const anyRounds: fc.Arbitrary<Round[]> = fc.array(
  fc.record({
    placements: fc.array(anyPlacement, { maxLength: 12 }),
    wait: fc.constantFrom(200, 1_000, 3_000),
    oracle: fc.integer({ min: 900, max: 1100 }),
  }),
  { minLength: 1, maxLength: 8 },
)

const DEPOSIT = 10n ** 22n

/** Calls back before each step of each turn. */
function run(rounds: readonly Round[], check: Parameters<TurnMarket['turn']>[0]): TurnMarket {
  const market = new TurnMarket(USERS, DEPOSIT)
  for (const { placements, wait, oracle } of rounds) {
    for (const placement of placements) market.place(placement)
    market.wait(wait, oracle)
    market.turn(check)
  }
  return market
}

const kindsOf = (market: TurnMarket) => new Set<string>(market.rows.map(({ kind }) => kind))

describe('the laws of a market’s turn', () => {
  it('when turns run, no decision changes the state, and reservations and positions add up after every step', () => {
    const kinds = new Set<string>()
    fc.assert(
      fc.property(anyRounds, (rounds) => {
        const market = new TurnMarket(USERS, DEPOSIT)
        for (const { placements, wait, oracle } of rounds) {
          for (const placement of placements) market.place(placement)
          market.wait(wait, oracle)
          const before = digestOf(market.state)
          market.decide(firstStep(perpetual.marketId, market.memory))
          expect(digestOf(market.state)).to.deep.equal(before)
          market.turn(() => expect(violations(market.state)).to.deep.equal([]))
          expect(violations(market.state)).to.deep.equal([])
        }
        for (const kind of kindsOf(market)) kinds.add(kind)
      }),
      { numRuns: 60 },
    )
    const wanted = [
      'batch_cleared',
      'order_triggered',
      'order_ended',
      'liquidation_changed',
      'prices_updated',
    ]
    for (const kind of wanted) expect([...kinds], kind).to.include(kind)
  })

  it('when turns run, the matched pool and the scanner equal the pool and the scanner of a loaded checkpoint', () => {
    fc.assert(
      fc.property(anyRounds, (rounds) => {
        const market = run(rounds, () => {})
        const loaded = load(serialize(market.state))
        const [live, again] = [market.state, loaded].map((state) =>
          state.marketIndexes.matched(perpetual.marketId),
        )
        expect(live?.pool).to.equal(again?.pool)
        expect(live?.scanner.size).to.equal(again?.scanner.size)
        expect([...market.state.marketIndexes.liquidating(perpetual.marketId)]).to.deep.equal([
          ...loaded.marketIndexes.liquidating(perpetual.marketId),
        ])
      }),
      { numRuns: 25 },
    )
  })

  it('when a step is decided again, on the same state or on one loaded from a checkpoint, its rows are the same', () => {
    const decider = marketTurn((order) => `0x${order.salt.toString(16).padStart(64, '0')}` as OrderHash)
    fc.assert(
      fc.property(anyRounds, (rounds) => {
        const market: TurnMarket = new TurnMarket(USERS, DEPOSIT)
        for (const { placements, wait, oracle } of rounds) {
          for (const placement of placements) market.place(placement)
          market.wait(wait, oracle)
          market.turn((decision, command) => {
            const loaded = load(serialize(market.state))
            for (const state of [market.state, loaded])
              expect(decideOn(state, market.inputs, { decider, command }).entries).to.deep.equal(
                decision.entries,
              )
          })
        }
      }),
      { numRuns: 25 },
    )
  })

  it('when nothing has changed since the last turn, a turn writes nothing', () => {
    fc.assert(
      fc.property(anyRounds, (rounds) => {
        const market = run(rounds, () => {})
        // Turns follow until no order ends by itself and no liquidation takes a step.
        for (let turn = 0; turn < 60 && market.turn().flat().length > 0; turn++) {}
        expect(market.turn().flat()).to.deep.equal([])
      }),
      { numRuns: 25 },
    )
  })

  for (const [name, placement, wait, kind] of [
    ['expire', { limit: 990, expiration: START_SECONDS + 1 }, 2_000, 'order_ended'],
    ['are triggered', { limit: 0, type: 'STOP_MARKET', trigger: 1010 }, 1_000, 'order_triggered'],
  ] as const) {
    it(`when ${MAX_ORDERS_PER_TURN + 200} orders ${name} at once, no step changes more than the bound, and all of them do`, function () {
      this.timeout(60_000)
      const market = new TurnMarket(50)
      const count = MAX_ORDERS_PER_TURN + 200
      for (let at = 0; at < count; at++)
        market.place({ by: 1 + (at % 50), side: 'LONG', steps: 10, ...placement })
      market.turn()
      market.wait(wait, 1010)
      const changes: number[] = []
      for (let turn = 0; turn < 3; turn++) {
        market.turn((decision) =>
          changes.push(decision.entries.filter(({ row }) => row.kind === kind).length),
        )
        market.wait(200)
      }
      expect(Math.max(...changes)).to.equal(MAX_ORDERS_PER_TURN)
      expect(changes.reduce((sum, one) => sum + one, 0)).to.equal(count)
    })
  }
})
