/** The task decode-settlement, run against a node: settled parts, reverted ones and the party that caused the revert. */
import { expect } from 'chai'
import type { ContractTransactionResponse } from 'ethers'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import {
  buildPart,
  caller,
  chain,
  type Exchange,
  excessive,
  nextSecond,
  type PartInput,
  pair,
  perpetualExchange,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { deleverage, inherit, pass, trade, withBackstop } from '../support/risk.ts'
import { runTask, type ServedChain, serveChain, servedAt } from '../support/tasks.ts'

const FALLEN = e18('48750')

describe('tasks: decode-settlement', function () {
  this.timeout(120_000)
  let exchange: Exchange
  let served: ServedChain
  const user = (index: number) => exchange.users[index]!
  const decode = (tx: string): Promise<string> =>
    runTask({ network: 'served', config: servedAt(served.url) }, 'decode-settlement', { tx })
  const decoded = async (sent: Promise<ContractTransactionResponse>): Promise<string> =>
    decode((await sent).hash)

  before(async () => {
    served = await serveChain((await chain()).provider)
  })
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })
  after(() => served.stop())

  /** Sends a part that reverts, has it mined, and decodes it. */
  async function decodeRefused(input: PartInput): Promise<string> {
    const { connection, trader, operator, spec } = exchange
    const part = await buildPart(exchange, input)
    const data = trader.interface.encodeFunctionData('settleBatch', [encodeSettleBatch(part, spec)])
    await connection.networkHelpers.time.setNextBlockTimestamp(await nextSecond(exchange))
    await operator.sendTransaction({ to: spec.trader, data, gasLimit: 5_000_000n }).then(
      () => expect.fail('the part did not revert'),
      () => undefined,
    )
    const block = await connection.ethers.provider.getBlock('latest')
    return decode(block?.transactions[0] ?? '')
  }

  // -------------------------------------------------------------------- mined

  it('when a batch is settled, it prints every order in units and UTC', async () => {
    const salts = [11n, 12n]
    const [buy, sell] = pair(user(0), user(1), 1_000, { leverage: 20 })
    const text = await decoded(
      settle(exchange, {
        price: 500_000,
        fills: [
          { ...buy!, salt: salts[0]!, quantity: 1_500, slot: 0 },
          { ...sell!, salt: salts[1]! },
        ],
      }),
    )
    expect(text).to.match(/to +0x\w{40} \(market 1, perpetual\)/)
    expect(text).to.match(/call +settleBatch/)
    expect(text).to.match(/status +mined/)
    expect(text).to.contain('batch 1 of market 1, part 1 of 1')
    expect(text).to.match(/clearing price +50000 USDM per unit/)
    expect(text).to.match(/oracle price +50000 USDM per unit, observed \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
    expect(text).to.match(/maker and taker rate +0\.01 %, 0\.05 %/)
    expect(text).to.contain(
      `${user(0).address.toLowerCase()} salt 11: LONG 1 units as taker, fee 25 USDM, free -2525 USDM, partly filled`,
    )
    expect(text).to.contain('salt 12: SHORT 1 units as maker, fee 5 USDM, free -2505 USDM, complete')
    expect(text).to.match(/failure_kind +none: it did what was asked/)
  })

  it('when a part contains a liquidation, it prints it as a liquidation', async () => {
    await trade(exchange, user(0), user(1), { steps: 1_000, price: 500_000 })
    const text = await decoded(
      settle(exchange, {
        price: 488_000,
        oraclePrice: FALLEN,
        fills: [
          { by: user(2), side: 'LONG', fill: 400 },
          { by: user(0), side: 'SHORT', fill: 400, forced: 7n },
        ],
      }),
    )
    expect(text).to.match(/liquidation 7: SHORT 0\.4 units as maker, fee [\d.]+ USDM, free [\d.]+ USDM\n/)
    expect(text).to.match(/failure_kind +none/)
  })

  it('when the backstop lacks capacity, it prints failure_kind backstop_inheritance_failed_only', async () => {
    await trade(exchange, user(0), user(1), { steps: 1_000, price: 500_000 })
    await withBackstop(exchange, e18('1000'), e18('100000'))
    const failed = await decoded(inherit(exchange, user(0), { price: e18('47600') }))
    expect(failed).to.match(/BackstopInheritanceFailed \(0x\w{40}\)/)
    expect(failed).to.match(/needed +47600 USDM\n +available +1000 USDM/)
    expect(failed).to.match(/failure_kind +backstop_inheritance_failed_only\n +reason +CAP_EXCEEDED/)

    await withBackstop(exchange, e18('1000000'), 0n)
    const taken = await decoded(inherit(exchange, user(0), { price: e18('47600') }))
    expect(taken).to.match(/PositionInherited/)
    expect(taken).to.match(/terms +asOf \d{4}-.* UTC, oraclePrice 47600 USDM per unit/)
    expect(taken).to.match(/failure_kind +none/)
  })

  it('when a deleveraging closes nothing or too little, it prints a different failure_kind for each', async () => {
    await trade(exchange, user(0), user(1), { steps: 1_000, price: 500_000 })
    await trade(exchange, user(2), user(3), { steps: 100, price: 500_000 })
    const closedNothing = await decoded(
      deleverage(exchange, user(0), [{ of: user(2), steps: 10 }], { price: e18('47000') }),
    )
    expect(closedNothing).to.match(/failure_kind +no_adl_trade_events/)
    const closedTooLittle = await decoded(
      deleverage(exchange, user(0), [{ of: user(3), steps: 400 }], { price: e18('47000') }),
    )
    expect(closedTooLittle).to.match(/failure_kind +missing_expected_position_updates/)
    expect(closedTooLittle).to.match(/closed 100 steps, expected 400/)
    const done = await decoded(
      deleverage(exchange, user(0), [{ of: user(1), steps: 400 }], { price: e18('47000') }),
    )
    expect(done).to.match(/legs +counterparty 0x\w{40}, steps 400, payout [\d.]+ USDM/)
    expect(done).to.match(/failure_kind +none/)
  })

  // -------------------------------------------------------------------- refused

  it('when a part is invalid as a whole, it prints no culprit', async () => {
    const text = await decodeRefused({
      price: 500_000,
      takerFee: excessive,
      fills: pair(user(0), user(1), 1_000),
    })
    expect(text).to.match(/status +reverted: nothing has moved/)
    expect(text).to.match(/error +FeeAboveSchedule\(allowed \d+, given 10000\)/)
    expect(text).to.match(/culprit +none: the error is about the call as a whole/)
  })

  it('when an order is invalid, it prints maker and salt', async () => {
    const [buy, sell] = pair(user(0), user(1), 1_000)
    const text = await decodeRefused({
      price: 500_000,
      fills: [{ ...buy!, limit: 499_999, salt: 21n }, sell!],
    })
    expect(text).to.match(/error +LimitViolated\(maker 0x\w{40}, salt 21, limit 499999, price 500000\)/)
    expect(text).to.contain(`the order 21 of ${user(0).address}`)
  })

  it('when an account lacks margin or free balance, it prints the account', async () => {
    const thin = await decodeRefused({
      price: 500_000,
      oraclePrice: e18('49000'),
      fills: pair(user(0), user(1), 1_000, { leverage: 20 }),
    })
    expect(thin).to.match(/error +MarginInsufficient\(account/)
    expect(thin).to.contain(`the account ${user(0).address}`)

    const alice = await caller(exchange, user(0))
    await exchange.bank.connect(alice).requestWithdrawal(e18('1000000'))
    await pass(exchange, 30)
    const empty = await decodeRefused({ price: 500_000, fills: pair(user(0), user(1), 1_000) })
    expect(empty).to.match(/error +FreeBalanceInsufficient\(account 0x\w{40}, available 0, asked \d+\)/)
    expect(empty).to.contain(`the account ${user(0).address}`)
  })

  // -------------------------------------------------------------------- anything else

  it('when a transaction is not a settlement, it prints its events; when it is not mined, it fails', async () => {
    const alice = await caller(exchange, user(0))
    const text = await decoded(exchange.bank.connect(alice).requestWithdrawal(e18('3')))
    expect(text).to.match(/call +requestWithdrawal/)
    expect(text).to.match(/amount +3 USDM\n +pending +3 USDM\n +requestedAt +\d{4}-.* UTC/)
    expect(text).not.to.contain('verdict')
    const unknown = `0x${'12'.repeat(32)}`
    await decode(unknown).then(
      () => expect.fail('decode-settlement did not fail'),
      (error: Error) => expect(error.message).to.equal(`--tx: ${unknown} is not mined on this chain`),
    )
    await decode('0x12').then(
      () => expect.fail('decode-settlement did not fail'),
      (error: Error) => expect(error.message).to.match(/^--tx must be the hash .*received "0x12"$/),
    )
  })
})
