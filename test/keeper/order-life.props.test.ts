/**
 * The life of orders, against a model: placements of every type, cancels, marks, expiries, batches, failures, reorganisations, revoked keys,
 * dead-man switches, clock steps and power cuts in any order. `npm run model:deep` takes many more and longer runs.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { ORDER_TYPES } from '../../domain/orders/order.ts'
import { ShadowRun } from '../../stack/shadow/shadow-run.ts'
import { binary, perpetual } from '../support/markets.ts'
import { adoptUsers } from '../support/mirror.ts'
import { expectConsistent, expectSameBook, expectSameReadModel } from './support/invariants.ts'
import { type Command, TRADERS } from './support/model-commands.ts'
import { ModelRun } from './support/model-run.ts'

const RUNS = Number(process.env.MODEL_RUNS ?? 12)
const LENGTH = Number(process.env.MODEL_LENGTH ?? 60)
const SEED = Number(process.env.MODEL_SEED ?? 5)

const trader = fc.nat(TRADERS - 1)
const of = <T extends object>(weight: number, fields: { readonly [K in keyof T]: fc.Arbitrary<T[K]> }) => ({
  weight,
  arbitrary: fc.record(fields) as fc.Arbitrary<unknown>,
})
const kind = <K extends string>(name: K) => fc.constant(name)

const anyCommand = fc.oneof(
  of(20, {
    kind: kind('place'),
    by: trader,
    side: fc.constantFrom('LONG', 'SHORT'),
    type: fc.constantFrom(...ORDER_TYPES, 'LIMIT', 'LIMIT', 'LIMIT', 'MARKET'),
    steps: fc.integer({ min: 1, max: 40 }),
    limit: fc.integer({ min: -8, max: 8 }),
    trigger: fc.integer({ min: -6, max: 6 }),
    leverage: fc.integer({ min: 1, max: 5 }),
    reduceOnly: fc.constantFrom(false, false, false, true),
    life: fc.constantFrom(0, 0, 0, 0, 0, 0, 3),
    keyLife: fc.constantFrom(null, null, null, null, 2, 1_000),
  }),
  of(7, { kind: kind('deal'), buyer: trader, seller: trader, steps: fc.integer({ min: 1, max: 25 }) }),
  of(5, {
    kind: kind('protect'),
    by: trader,
    side: fc.constantFrom('LONG', 'SHORT'),
    type: fc.constantFrom('LIMIT', 'LIMIT', 'STOP_LOSS_MARKET', 'TAKE_PROFIT_LIMIT'),
    steps: fc.integer({ min: 1, max: 40 }),
    offset: fc.integer({ min: 1, max: 9 }),
  }),
  of(4, { kind: kind('close'), by: trader, next: fc.constantFrom('mine', 'wait', 'fail') }),
  of(3, { kind: kind('cancel'), pick: fc.nat(80) }),
  of(12, { kind: kind('step') }),
  of(4, { kind: kind('wait'), ms: fc.integer({ min: 1, max: 1500 }) }),
  of(6, { kind: kind('price'), offset: fc.integer({ min: -7, max: 7 }) }),
  of(4, { kind: kind('force'), towards: fc.constantFrom(1, -1), steps: fc.integer({ min: 1, max: 3 }) }),
  of(10, { kind: kind('mine') }),
  of(3, { kind: kind('reorg') }),
  of(1, { kind: kind('fail'), culprit: fc.nat(3) }),
  of(1, { kind: kind('restart') }),
  of(2, { kind: kind('cut'), at: fc.constantFrom(1, 2) }),
  of(1, { kind: kind('revoke'), by: trader }),
  of(1, { kind: kind('arm'), by: trader, seconds: fc.integer({ min: 1, max: 4 }) }),
  of(2, { kind: kind('fire') }),
  of(1, { kind: kind('halt') }),
  of(6, { kind: kind('open') }),
) as fc.Arbitrary<Command>

describe('the life of orders against a model', function () {
  this.timeout(Number(process.env.MODEL_TIMEOUT ?? 300_000))

  const seen: Record<string, number> = {}
  const count = (counts: Readonly<Record<string, number>>): void => {
    for (const [name, times] of Object.entries(counts)) seen[name] = (seen[name] ?? 0) + times
  }

  for (const [spec, middle, funds] of [
    [perpetual, 1000, '1.5'],
    [binary, 500, '7'],
  ] as const) {
    it(`when random commands run in a ${spec.kind} market, database and model agree after each`, async () => {
      const commands = fc.array(anyCommand, { minLength: LENGTH, maxLength: 2 * LENGTH, size: 'max' })
      await fc.assert(
        fc.asyncProperty(commands, async (taken) => {
          const run = await ModelRun.open(spec, middle, funds)
          const shadow = new ShadowRun(run.fixture.db)
          await adoptUsers(run.fixture.db, shadow.state)
          try {
            for (const command of taken) {
              await run.take(command)
              await run.compare()
            }
            await expectConsistent(run.fixture)
            await expectSameBook(run.fixture)
            await expectSameReadModel(run.fixture)
            expect(await shadow.compare()).to.deep.equal([])
            count(run.model.seen)
            count(run.liquidations.seen)
            count(run.counts)
          } finally {
            await run.fixture.close()
          }
        }),
        { numRuns: RUNS, seed: SEED, endOnFailure: true },
      )
    })
  }

  it('when all runs are over, every kind of event has occurred', () => {
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).to.be.greaterThan(0)
  })
})
