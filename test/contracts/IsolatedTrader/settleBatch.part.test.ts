import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import type { Millis, Rate, Steps } from '../../../domain/units.ts'
import {
  buildPart,
  chain,
  type Exchange,
  excessive,
  nextSecond,
  type PartInput,
  pair,
  perpetualExchange,
  send,
  settle,
  signReport,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { expectPartRefused, expectRefused, expectRejected, withBytes } from '../../support/refusals.ts'
import { audit } from '../support/audit.ts'

const PRICE = 500_000
const O = e18('50000')

describe('settleBatch: checks per part', () => {
  let exchange: Exchange
  let fills: PartInput['fills']

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const [alice, bob] = exchange.users
    fills = pair(alice!, bob!, 1000)
  })
  afterEach(() => audit(exchange))

  const part = (input: Partial<PartInput> = {}): PartInput => ({ price: PRICE, fills, ...input })
  const ms = async (): Promise<Millis> => ((await nextSecond(exchange)) * 1000) as Millis

  it('when the caller is not an operator, it reverts with NotOperator', async () => {
    const bytes = encodeSettleBatch(await buildPart(exchange, part()), exchange.spec)
    await expect(exchange.trader.connect(exchange.admin).settleBatch(bytes))
      .to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
      .withArgs(exchange.admin.address)
  })

  describe('part encoding', () => {
    it('when shorter than a header, it reverts with PartLengthWrong', () =>
      expectRefused(exchange, new Uint8Array(63), { error: 'PartLengthWrong', args: [64, 63] }))
    it('when its codec version differs, it reverts with HeaderInvalid', () =>
      expectPartRefused(exchange, part(), { error: 'HeaderInvalid' }, (bytes) => withBytes(bytes, 31, 1)))
    it('when a reserved bit of the header is set, it reverts with HeaderInvalid', () =>
      expectPartRefused(exchange, part(), { error: 'HeaderInvalid' }, (bytes) => withBytes(bytes, 63, 1)))
    it('when it contains no orders, it reverts with EmptyPart', () =>
      expectPartRefused(exchange, part({ fills: [] }), { error: 'EmptyPart' }))
    it('when it contains more than 200 orders, it reverts with PartTooLarge', () =>
      expectPartRefused(exchange, part(), { error: 'PartTooLarge', args: [200, 201] }, (bytes) =>
        withBytes(bytes, 20, 0, 201),
      ))
    it('when it is shorter than header and proof, it reverts with PartLengthWrong', () =>
      expectPartRefused(exchange, part(), { error: 'PartLengthWrong', args: [194, 193] }, (bytes) =>
        bytes.slice(0, 193),
      ))
    for (const [what, change] of [
      ['missing', (bytes: Uint8Array) => bytes.slice(0, -1)],
      ['added', (bytes: Uint8Array) => Uint8Array.from([...bytes, 0])],
    ] as const)
      it(`when one byte is ${what} at the end, it reverts with an error of the oracle`, async () => {
        const bytes = encodeSettleBatch(await buildPart(exchange, part()), exchange.spec)
        const errors = /SignersNotAscending|SignerUnknown|ReportSignatureInvalid/
        await expectRejected(send(exchange, change(bytes)), errors)
      })

    const RECORDS_END = 64 + 2 * 110
    const refusedWith = (expected: number, change: (bytes: Uint8Array) => Uint8Array, length: number) =>
      expectPartRefused(exchange, part(), { error: 'PartLengthWrong', args: [expected, length] }, change)
    it('when there is a byte between the records and the proof, it reverts with PartLengthWrong', () =>
      refusedWith(
        414,
        (bytes) => Uint8Array.from([...bytes.slice(0, RECORDS_END), 0, ...bytes.slice(RECORDS_END)]),
        415,
      ))
    it('when it contains a record more than its header counts, it reverts with PartLengthWrong', () =>
      refusedWith(304, (bytes) => withBytes(bytes, 20, 0, 1), 414))
  })

  describe('sequence of actions', () => {
    for (const actionId of [0, 2, 7]) {
      it(`when the first actionId is ${actionId}, it reverts with ActionOutOfOrder`, () =>
        expectPartRefused(exchange, part({ actionId }), { error: 'ActionOutOfOrder', args: [1, actionId] }))
    }

    it('when a settled part is sent again, it reverts with ActionOutOfOrder', async () => {
      const bytes = encodeSettleBatch(await buildPart(exchange, part()), exchange.spec)
      await send(exchange, bytes)
      await expectRefused(exchange, bytes, { error: 'ActionOutOfOrder', args: [2, 1] })
    })

    it('when a settled part is sent again as the next action, it reverts with PartOutOfOrder', async () => {
      const first = await buildPart(exchange, part())
      await send(exchange, encodeSettleBatch(first, exchange.spec))
      const bytes = encodeSettleBatch({ ...first, actionId: 2 }, exchange.spec)
      await expectRefused(exchange, bytes, { error: 'PartOutOfOrder', args: [2, 1] })
    })

    it('when asOf is before the last action’s, it reverts with AsOfDecreased', async () => {
      const asOf = await ms()
      await settle(exchange, part({ asOf }))
      const earlier = (asOf - 1) as Millis
      await expectPartRefused(exchange, part({ asOf: earlier }), {
        error: 'AsOfDecreased',
        args: [asOf, earlier],
      })
    })

    it('when asOf is 2 s ahead of block time, it settles; 1 ms more reverts with AsOfAhead', async () => {
      const blockTime = await ms()
      const ahead = (blockTime + 2001) as Millis
      await expectPartRefused(exchange, part({ asOf: ahead }), {
        error: 'AsOfAhead',
        args: [blockTime, ahead],
      })
      const taken = ((await ms()) + 2000) as Millis
      await settle(exchange, part({ asOf: taken }))
    })

    it('when asOf is 10 s old, it settles; 1 ms more reverts with AsOfStale', async () => {
      const blockTime = await ms()
      const old = (blockTime - 10_001) as Millis
      await expectPartRefused(exchange, part({ asOf: old }), { error: 'AsOfStale', args: [blockTime, old] })
      await settle(exchange, part({ asOf: ((await ms()) - 10_000) as Millis }))
    })

    it('when the batch number decreases or is zero, it reverts with BatchOutOfOrder', async () => {
      await expectPartRefused(exchange, part({ batchId: 0 }), { error: 'BatchOutOfOrder', args: [0, 0] })
      await settle(exchange, part({ batchId: 9 }))
      await expectPartRefused(exchange, part({ batchId: 8 }), { error: 'BatchOutOfOrder', args: [9, 8] })
    })

    it('when the batch number exceeds block time in ms, it reverts with BatchOutOfOrder', async () => {
      const ahead = (await ms()) + 1
      const refusal = { error: 'BatchOutOfOrder', args: [0, ahead] }
      await expectPartRefused(exchange, part({ batchId: ahead }), refusal)
      await settle(exchange, part({ batchId: await ms() }))
      await settle(exchange, part())
    })
  })

  describe('several parts', () => {
    const first = async (): Promise<PartInput> => {
      const given = part({ batchId: 5, part: 1, parts: 3, asOf: await ms(), observedAt: await ms() })
      await settle(exchange, given)
      return { ...given, part: 2 }
    }

    it('when they are sent in order, all settle', async () => {
      const second = await first()
      await settle(exchange, second)
      await settle(exchange, { ...second, part: 3 })
      expect((await exchange.trader.clock()).part).to.equal(3n)
    })

    it('when a batch is incomplete, the next batch closes it', async () => {
      await first()
      await settle(exchange, part({ batchId: 6 }))
    })

    it('when a batch begins with its second part, it reverts with PartOutOfOrder', () =>
      expectPartRefused(exchange, part({ part: 2, parts: 2 }), { error: 'PartOutOfOrder', args: [1, 2] }))
    it('when a part number exceeds the number of parts, it reverts with PartOutOfOrder', () =>
      expectPartRefused(exchange, part({ part: 1, parts: 0 }), { error: 'PartOutOfOrder', args: [1, 1] }))

    const changes: readonly [string, (second: PartInput) => Partial<PartInput>][] = [
      ['price', () => ({ price: PRICE + 1, oraclePrice: O })],
      ['asOf', ({ asOf }) => ({ asOf: (asOf! + 1) as Millis })],
      ['number of parts', () => ({ parts: 4 })],
      ['maker rate', () => ({ makerFee: 0n as Rate })],
      ['taker rate', () => ({ takerFee: 0n as Rate })],
      ['report price', () => ({ oraclePrice: O + 1n })],
      ['report time', ({ observedAt }) => ({ observedAt: observedAt! + 1 })],
    ]
    for (const [name, change] of changes) {
      it(`when a later part has another ${name}, it reverts with BatchTermsChanged`, async () => {
        const second = await first()
        await expectPartRefused(
          exchange,
          { ...second, ...change(second) },
          {
            error: 'BatchTermsChanged',
            args: [5],
          },
        )
      })
    }
  })

  describe('price and rates', () => {
    it('when the price is at either end of the band, it settles; one tick further it reverts with PriceOffBand', async () => {
      const low = part({ price: 475_000, oraclePrice: O })
      const high = part({ price: 525_000, oraclePrice: O })
      const args = (price: number) => [475_000, 525_000, price]
      await settle(exchange, low)
      await settle(exchange, high)
      for (const price of [474_999, 525_001]) {
        const off = { ...part({ price, oraclePrice: O }) }
        await expectPartRefused(exchange, off, { error: 'PriceOffBand', args: args(price) })
      }
    })

    it('when a rate exceeds the schedule, it reverts with FeeAboveSchedule', async () => {
      await expectPartRefused(exchange, part({ makerFee: excessive }), {
        error: 'FeeAboveSchedule',
        args: [100, 10_000],
      })
      await expectPartRefused(exchange, part({ takerFee: excessive }), {
        error: 'FeeAboveSchedule',
        args: [500, 10_000],
      })
    })

    it('when both fee rates are zero, no fee is charged', async () => {
      await settle(exchange, part({ makerFee: 0n as Rate, takerFee: 0n as Rate }))
      expect((await exchange.bank.market(exchange.spec.trader)).fees).to.equal(0n)
    })
  })

  describe('balance of the part', () => {
    const [buy, sell] = [0, 1]
    const unbalanced = (index: number) =>
      fills.map((fill, at) => (at === index ? { ...fill, quantity: 1100, fill: 1100 } : fill))

    it('when more is bought than sold, it reverts with Unbalanced', () =>
      expectPartRefused(exchange, part({ fills: unbalanced(buy) }), {
        error: 'Unbalanced',
        args: [1100, 1000],
      }))
    it('when more is sold than bought, it reverts with Unbalanced', () =>
      expectPartRefused(exchange, part({ fills: unbalanced(sell) }), {
        error: 'Unbalanced',
        args: [1000, 1100],
      }))
    it('when the taker quantity differs from the matched volume, it reverts with TakerMismatch', async () => {
      for (const [taker, sum] of [
        [0, 0],
        [999, 999],
      ] as const) {
        const short = fills.map((fill) => ({ ...fill, taker: fill.side === 'LONG' ? taker : 0 }))
        await expectPartRefused(exchange, part({ fills: short }), {
          error: 'TakerMismatch',
          args: [1000, sum],
        })
      }
      const both = fills.map((fill) => ({ ...fill, taker: 1000 as Steps }))
      await expectPartRefused(exchange, part({ fills: both }), { error: 'TakerMismatch', args: [1000, 2000] })
    })
  })

  describe('oracle report', () => {
    it('when its price is zero, it reverts with ReportPriceInvalid', () =>
      expectPartRefused(exchange, part({ oraclePrice: 0n }), { error: 'ReportPriceInvalid', args: [0] }))

    it('when it is older than reportMaxAge before asOf, it reverts with ReportStale', async () => {
      const asOf = await ms()
      const observedAt = asOf - 10_001
      await expectPartRefused(exchange, part({ asOf, observedAt }), {
        error: 'ReportStale',
        args: [asOf, observedAt, 10_000],
      })
      await settle(exchange, part({ observedAt: (await ms()) - 10_000 }))
    })

    it('when it is observed more than 2 s after asOf, it reverts with ReportAhead', async () => {
      const asOf = await ms()
      await expectPartRefused(exchange, part({ asOf, observedAt: asOf + 2001 }), {
        error: 'ReportAhead',
        args: [asOf, asOf + 2001],
      })
    })

    it('when it is older than the last used report, it reverts with ReportOlder', async () => {
      const observedAt = await ms()
      await settle(exchange, part({ observedAt }))
      await expectPartRefused(exchange, part({ observedAt: observedAt - 1 }), {
        error: 'ReportOlder',
        args: [observedAt, observedAt - 1],
      })
      await settle(exchange, part({ observedAt }))
    })

    it('when it has the last report’s time and another price, it reverts with ReportConflict', async () => {
      const observedAt = await ms()
      await settle(exchange, part({ observedAt }))
      await expectPartRefused(exchange, part({ observedAt, oraclePrice: O + 1n }), {
        error: 'ReportConflict',
        args: [observedAt, O, O + 1n],
      })
    })

    it('when the price moves further than base and slope allow, it reverts with ReportMoveTooLarge', async () => {
      const observedAt = await ms()
      await settle(exchange, part({ observedAt }))
      // Half of the base of 10 %, and the slope of 2 % per second, half a second later.
      const highest = O + (O * 60_000n) / 1_000_000n
      const leap = { price: 550_000, observedAt: observedAt + 500 }
      await expectPartRefused(exchange, part({ ...leap, oraclePrice: highest + 1n }), {
        error: 'ReportMoveTooLarge',
        args: [O, highest + 1n, highest - O],
      })
      await settle(exchange, part({ ...leap, oraclePrice: highest }))
    })

    const forged: readonly [
      string,
      (part: Awaited<ReturnType<typeof buildPart>>) => `0x${string}`,
      string,
    ][] = [
      [
        'another price',
        ({ oracle }) =>
          signReport(exchange, { ...oracle, price: (oracle.price + 1n) as typeof oracle.price }),
        'SignersNotAscending|SignerUnknown',
      ],
      [
        'another time',
        ({ oracle }) => signReport(exchange, { ...oracle, observedAt: oracle.observedAt + 1 }),
        'SignersNotAscending|SignerUnknown',
      ],
      [
        'another feed',
        ({ oracle }) => signReport(exchange, { ...oracle, feedId: `0x${'00'.repeat(31)}02` }),
        'SignersNotAscending|SignerUnknown',
      ],
      [
        'unauthorized signers',
        ({ oracle }) =>
          signReport(exchange, { ...oracle, signers: [wallet('unauthorized'), wallet('unauthorized 2')] }),
        'SignersNotAscending|SignerUnknown',
      ],
      [
        'too few signers',
        ({ oracle }) => signReport(exchange, { ...oracle, signers: exchange.oracleSigners.slice(0, 1) }),
        'ProofLengthWrong',
      ],
    ]
    for (const [name, forge, errors] of forged) {
      it(`when the proof was made with ${name}, it reverts with an error of the oracle`, async () => {
        const built = await buildPart(exchange, part())
        const bytes = encodeSettleBatch(
          { ...built, oracle: { ...built.oracle, signatures: forge(built) } },
          exchange.spec,
        )
        await expectRejected(send(exchange, bytes), new RegExp(errors))
      })
    }
  })
})
