/** Tasks that display a market, an account or an order, run against a node. */
import { expect } from 'chai'
import { HardhatPluginError } from 'hardhat/plugins'
import { hashOrder } from '../../../domain/orders/order-hash.ts'
import {
  caller,
  chain,
  type Exchange,
  keccak,
  nextSecond,
  orderOf,
  pair,
  perpetualExchange,
  settle,
  signOrder,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { withBackstop } from '../support/risk.ts'
import { runTask, type ServedChain, serveChain, servedAt } from '../support/tasks.ts'

describe('tasks: show-market, show-account, hash-order, validate-order', function () {
  this.timeout(120_000)
  let exchange: Exchange
  let served: ServedChain
  const user = (index: number) => exchange.users[index]!
  const run = (name: string, given: Record<string, unknown>): Promise<string> =>
    runTask({ network: 'served', config: servedAt(served.url) }, name, given)

  before(async () => {
    const connection = await chain()
    exchange = await connection.networkHelpers.loadFixture(perpetualExchange)
    served = await serveChain(connection.provider)
  })
  after(() => served.stop())

  /** Runs the task until it fails and returns the error message. */
  async function refusalOf(name: string, given: Record<string, unknown>): Promise<string> {
    try {
      await run(name, given)
    } catch (error) {
      expect(HardhatPluginError.isHardhatPluginError(error), 'an error without a stack trace').to.equal(true)
      return (error as Error).message
    }
    throw new Error(`${name} did not fail`)
  }

  // -------------------------------------------------------------------- a market, an account

  it('when a market has not traded, show-market prints its grid, parameters and roles', async () => {
    const text = await run('show-market', { trader: exchange.spec.trader })
    expect(text).to.contain('market 1 (perpetual)')
    expect(text).to.match(/tick +0\.1 USDM per unit/)
    expect(text).to.match(/step +0\.001 units/)
    expect(text).to.match(/may settle +from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
    expect(text).to.match(/mode +open/)
    expect(text).to.match(/maintenance margin +2\.25 % of notional/)
    expect(text).to.match(/oracle price +-/)
    expect(text).to.contain(`operator    ${exchange.operator.address}`)
    expect(text).to.match(/parameters {2}0x\w{40} \(at once\)/)
  })

  it('when a batch is settled and a mode is scheduled, show-market prints both with their times', async () => {
    await withBackstop(exchange, e18('1000000'), 0n)
    await settle(exchange, { price: 500_000, fills: pair(user(0), user(1), 1_000, { leverage: 20 }) })
    const activeFrom = ((await nextSecond(exchange)) + 2 * 86_400) * 1_000
    await exchange.trader.connect(exchange.admin).scheduleMode(1, activeFrom)
    const text = await run('show-market', { trader: exchange.spec.trader })
    expect(text).to.match(/last batch +1, part 1 of 1/)
    expect(text).to.match(/clearing price +50000 USDM per unit/)
    expect(text).to.match(/pool +5000 USDM/)
    expect(text).to.match(/backstop +0x\w{40}, up to 1000000 USDM of notional/)
    const time = new Date(activeFrom).toISOString().slice(0, 19).replace('T', ' ')
    expect(text).to.contain(`cancel_only from ${time} UTC`)
  })

  it('when an account has a position, show-account prints balance, position, pending withdrawal and cancels', async () => {
    const { trader } = exchange.spec
    const long = await run('show-account', { trader, account: user(0).address })
    expect(long).to.match(/size +1 units \(long\)/)
    expect(long).to.match(/entry price +50000 USDM per unit/)
    expect(long).to.match(/margin +2500 USDM/)
    expect(long).to.match(/margin ratio +5 %/)
    const alice = await caller(exchange, user(0))
    await exchange.bank.connect(alice).requestWithdrawal(e18('7'))
    await exchange.trader.connect(alice).cancelSaltsBelow(77)
    const later = await run('show-account', { trader, account: user(0).address })
    expect(later).to.match(/pending withdrawal +7 USDM/)
    expect(later).to.match(/requested at +\d{4}-.* UTC/)
    expect(later).to.match(/cancelled below salt +77/)
    expect(await run('show-account', { trader, account: user(5).address })).to.match(/size +none/)
  })

  it('when the address is not a market or an account, it fails and names the argument', async () => {
    const { trader } = exchange.spec
    expect(await refusalOf('show-market', { trader: 'btc' })).to.equal(
      '--trader must be an address; received "btc"',
    )
    expect(await refusalOf('show-market', { trader: user(0).address })).to.match(/has no code on this chain$/)
    expect(await refusalOf('show-market', { trader: exchange.shared.marginBank })).to.match(
      /which is another contract$/,
    )
    expect(await refusalOf('show-account', { trader, account: '0x12' })).to.equal(
      '--account must be an address; received "0x12"',
    )
  })

  // -------------------------------------------------------------------- an order

  const body = (change: Record<string, unknown> = {}): string =>
    JSON.stringify({
      maker: user(2).address,
      market_id: 1,
      side: 'LONG',
      order_type: 'LIMIT',
      price: 50000.1,
      quantity: '0.25',
      leverage: 5,
      expiration_seconds: 4_000_000_000,
      salt: '9007199254740991',
      ...change,
    })

  /** The same order in the form of domain/. */
  const order = () => ({
    ...orderOf({ by: user(2), side: 'LONG', fill: 250, salt: 2n ** 53n - 1n }, 500_001, exchange.spec),
  })

  it('when given an order, hash-order prints the same hash as domain/, market and typed data', async () => {
    const text = await run('hash-order', { trader: exchange.spec.trader, order: body() })
    const hash = hashOrder(order(), exchange.spec, keccak)
    expect(text).to.match(new RegExp(`computed +${hash}`))
    expect(text).to.match(new RegExp(`by the market +${hash}`))
    const typed = JSON.parse(text.slice(0, text.indexOf('\norder hash')))
    expect(typed.domain.verifyingContract.toLowerCase()).to.equal(exchange.spec.trader)
    expect(typed.message.price).to.equal('50000100000000000000000')
  })

  it('when the maker signed, validate-order succeeds; when another account signed, it fails with SignerUnauthorized', async () => {
    const { trader } = exchange.spec
    const { signature } = signOrder(order(), exchange.spec, user(2))
    const text = await run('validate-order', { trader, order: body(), signature })
    expect(text).to.contain(`${user(2).address} (its maker)`)

    const foreign = signOrder(order(), exchange.spec, user(3)).signature
    const refusal = await refusalOf('validate-order', { trader, order: body(), signature: foreign })
    expect(refusal).to.match(
      /^the market rejects the order: SignerUnauthorized\(maker 0x\w{40}, salt 9007199254740991, signer /,
    )
    expect(refusal).to.contain(user(3).address)
  })

  it('when a session key signed, validate-order names the key; when the order is cancelled, it fails with its salt', async () => {
    const { trader } = exchange.spec
    const carol = await caller(exchange, user(2))
    await exchange.keys.connect(carol).registerSessionKey(user(4).address, 1)
    const { signature } = signOrder(order(), exchange.spec, user(4))
    const text = await run('validate-order', { trader, order: body(), signature })
    expect(text).to.contain(`${user(4).address} (a session key of its maker)`)

    await exchange.trader.connect(carol).cancelSalts([2n ** 53n - 1n])
    await exchange.connection.networkHelpers.time.increase(10)
    expect(await refusalOf('validate-order', { trader, order: body(), signature })).to.match(
      /OrderCancelled\(maker 0x\w{40}, salt 9007199254740991, requestedAt \d+, asOf \d+\)/,
    )
  })

  it('when a field is invalid, it fails with the field, the received value and a valid one', async () => {
    const { trader } = exchange.spec
    const refused = (change: Record<string, unknown>) =>
      refusalOf('hash-order', { trader, order: body(change) })
    expect(await refused({ side: 'BUY' })).to.equal(
      '--order: side must be one of LONG, SHORT; received "BUY"',
    )
    expect(await refused({ salt: '-1' })).to.equal('--order: salt must be a whole number; received "-1"')
    expect(await refused({ salt: '9007199254740992' })).to.match(
      /salt must be a whole number from 0 to 9007199254740991/,
    )
    expect(await refused({ maker: undefined })).to.match(/maker must be the address .*; received nothing$/)
    expect(await refused({ price: 50000.15 })).to.match(
      /price must be .*50000\.15.*nearest valid: 50000\.[12]/,
    )
    expect(await refused({ quantity: '0.0005' })).to.match(/quantity must be .*nearest valid: 0\.001/)
    expect(await refused({ quantity_e18_raw: '1' })).to.match(
      /quantity must be 0\.000000000000000001, equal to quantity_e18_raw/,
    )
    expect(await refused({ leverage: 21 })).to.match(/leverage must be .*received 21 \(nearest valid: 20\)/)
    expect(await refused({ reduce_only: 'yes' })).to.match(
      /reduce_only must be true or false; received "yes"/,
    )
    expect(await refusalOf('hash-order', { trader, order: 'nothing.json' })).to.equal(
      '--order must be an order as JSON, or a file with it; received "nothing.json"',
    )
    expect(
      await refusalOf('validate-order', { trader, order: body(), signature: `0x${'11'.repeat(65)}` }),
    ).to.match(/^--signature must be 66 bytes in hex: r, s, v and 01/)
  })
})
