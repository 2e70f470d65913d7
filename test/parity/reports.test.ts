import { expect } from 'chai'
import { allowedMove, isReportUsable, type ReportRules, type UsedReport } from '../../domain/prices/report.ts'
import { type Millis, ONE, type Price } from '../../domain/units.ts'
import { parametersOf } from '../../stack/deploy.ts'
import type { OwnerHarness } from '../../typechain-types/mocks/OwnerHarness.ts'
import { refusalOf } from '../support/errors.ts'
import { binary, e18, perpetual } from '../support/markets.ts'
import { ownerHarness } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const RUNS = 600
const AS_OF = 1_700_000_000_000
const AHEAD = 2_000
const TICK = e18('0.001') as Price

type Random = (end: number) => number

describe('parity: reports', () => {
  let rules: OwnerHarness
  before(async () => {
    rules = await ownerHarness()
  })

  const edge = (random: Random, moment: number): number => moment - 1 + random(3)

  function draw(random: Random) {
    const kind = random(3) === 0 ? 'binary_future' : 'perpetual'
    const given: ReportRules = {
      kind,
      tick: TICK,
      maxAge: [1, 10_000, 60_000][random(3)] as Millis,
      moveBase: BigInt([0, 1, 100_000, 1_000_001][random(4)] as number),
      moveSlope: BigInt([0, 1, 20_000, 333_333][random(4)] as number),
      moveWindow: [1_000, 1_500, 60_000][random(3)] as Millis,
    }
    const last: UsedReport | null =
      random(5) === 0
        ? null
        : {
            price: (kind === 'perpetual'
              ? e18('100') + BigInt(random(1000))
              : [e18('0.4'), e18('0.6'), TICK, TICK + 1n, ONE - 1n, ONE][random(6)]) as Price,
            observedAt: (AS_OF - random(20_000)) as Millis,
          }
    const oldest = edge(random, AS_OF - given.maxAge)
    const newest = edge(random, AS_OF + AHEAD)
    const same = last?.observedAt ?? AS_OF
    const soon = same + random(2_000)
    const moments = [oldest, newest, same, edge(random, same), soon, AS_OF - random(500)]
    const observedAt = moments[random(moments.length)] as Millis
    const price = drawPrice(random, given, last, observedAt)
    return { given, last, report: { price, observedAt, signatures: '0x' as const } }
  }

  /** A price at the bounds of the allowed move. */
  function drawPrice(random: Random, rules: ReportRules, last: UsedReport | null, at: Millis): Price {
    const before = last?.price ?? (rules.kind === 'binary_future' ? e18('0.5') : e18('50'))
    const allowed = allowedMove(before as Price, Math.max(0, at - (last?.observedAt ?? at)), rules)
    const off = BigInt(random(3) - 1)
    const isBinary = rules.kind === 'binary_future'
    const ends = isBinary ? [TICK - 1n, TICK, ONE + off] : [before, before, before]
    return [0n, before, before + allowed + off, before - allowed - off, ...ends][random(7)] as Price
  }

  /** The error expected for an unusable report, with its arguments. */
  function expectedOf({ given, last, report }: ReturnType<typeof draw>): RegExp {
    const { price, observedAt } = report
    if (price === 0n || (given.kind === 'binary_future' && (price < TICK || price > ONE)))
      return new RegExp(`^ReportPriceInvalid\\(${price}\\)`)
    if (observedAt > AS_OF + AHEAD) return new RegExp(`^ReportAhead\\(${AS_OF},${observedAt}\\)`)
    if (AS_OF > observedAt + given.maxAge)
      return new RegExp(`^ReportStale\\(${AS_OF},${observedAt},${given.maxAge}\\)`)
    if (last !== null && observedAt < last.observedAt)
      return new RegExp(`^ReportOlder\\(${last.observedAt},${observedAt}\\)`)
    if (last?.observedAt === observedAt)
      return new RegExp(`^ReportConflict\\(${observedAt},${last.price},${price}\\)`)
    return new RegExp(`^ReportMoveTooLarge\\(${last?.price},${price},\\d+\\)`)
  }

  it(`allows moves of ${RUNS} reports alike, to the wei`, async () => {
    const random = randomOf(2)
    for (let run = 0; run < RUNS; run++) {
      const { given } = draw(random)
      const { kind, moveBase, moveSlope, moveWindow } = given
      const isBinary = kind === 'binary_future'
      const drawn = BigInt(random(2 ** 31)) * 10n ** BigInt(random(19)) + BigInt(random(1000))
      const near = [0n, 1n, TICK, ONE / 2n, ONE - TICK, ONE - 1n, ONE, drawn % (ONE + 1n)][random(8)]
      const price = (isBinary ? near : drawn) as Price
      const elapsed = [0, 1, edge(random, moveWindow), random(120_000), 2 ** 40 + random(1000)][
        random(5)
      ] as number
      const parameters = { ...parametersOf(perpetual), moveBase, moveSlope, moveWindow }
      const allowed = await rules.allowedMove(price, elapsed, parameters, isBinary)
      expect(allowed).to.equal(allowedMove(price, elapsed, given))
    }
  }).timeout(120_000)

  it(`accepts ${RUNS} reports alike or reverts with the expected error`, async () => {
    const random = randomOf(1)
    const seen = new Map<string, number>()
    for (let run = 0; run < RUNS; run++) {
      const drawn = draw(random)
      const { given, last, report } = drawn
      if (report.price < 0n) continue
      const { maxAge: reportMaxAge, moveBase, moveSlope, moveWindow, kind } = given
      const spec = kind === 'perpetual' ? perpetual : binary
      const parameters = { ...parametersOf(spec), reportMaxAge, moveBase, moveSlope, moveWindow }
      const before = {
        oraclePrice: last?.price ?? 0n,
        observedAt: last?.observedAt ?? 0,
        fundingIndex: 0,
        funded: false,
        changePending: false,
      }
      const { price, observedAt } = report
      const call = rules.checkReport(
        AS_OF,
        price,
        observedAt,
        before,
        parameters,
        TICK,
        kind === 'binary_future',
      )
      const refusal = await refusalOf(call)
      expect(refusal === null).to.equal(isReportUsable(report, last, given, AS_OF as Millis))
      if (refusal !== null) expect(refusal).to.match(expectedOf(drawn))
      const name = refusal?.replace(/\(.*/, '') ?? 'taken'
      seen.set(name, (seen.get(name) ?? 0) + 1)
    }
    for (const name of [
      ...['taken', 'ReportPriceInvalid', 'ReportAhead', 'ReportStale'],
      ...['ReportOlder', 'ReportConflict', 'ReportMoveTooLarge'],
    ]) {
      expect(seen.get(name), name).to.be.greaterThan(3)
    }
  }).timeout(120_000)
})
