import { expect } from 'chai'
import { type ContractTransactionResponse, NonceManager, Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { fromE18, toE18 } from '../../client/decimals.ts'
import { verifyBatch } from '../../client/proof/verify-batch.ts'
import type { Fill, Market, Transaction } from '../../client/responses.ts'
import { type BatchProof, statusOf } from '../../domain/proof/verify.ts'
import type { Price } from '../../domain/units.ts'
import { overrideFeed } from '../../stack/feed-override.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import { TestUSDM__factory } from '../../typechain-types/factories/TestUSDM__factory.ts'
import { replaceFrom } from '../support/chain-faults.ts'
import { waitFor } from '../support/patience.ts'
import { isDone, nearOracle, newestProofs, trade, useStack } from './support/stack.ts'

const E18 = 10n ** 18n
const MARKETS = [1, 2, 3, 4] as const

/** The fee schedule of the contract with traders, implemented independently of domain/. */
function takerFee({ type, taker_fee_e18_raw }: Market, fill: Fill): bigint {
  const [price, quantity] = [BigInt(fill.price_e18_raw), BigInt(fill.quantity_e18_raw)]
  const rate = BigInt(taker_fee_e18_raw)
  if (type !== 'binary_future') return (price * quantity * rate) / E18 / E18
  const variance = (price * (E18 - price)) / E18
  return (quantity * ((variance * rate) / E18)) / E18
}

describe('trading, end to end', function () {
  this.timeout(60_000)
  const exchange = useStack()

  it('when a trader deposits, the balance increases by the amount', async () => {
    const alice = exchange.trader(0)
    const before = BigInt((await alice.account.balance()).free_e18_raw)
    const { balance, tx_hash } = await alice.bank.deposit('1234.5')
    expect(BigInt(balance.free_e18_raw) - before).to.equal(toE18('1234.5'))
    expect(tx_hash).to.match(/^0x[0-9a-f]{64}$/)
  })

  it('when deposits and a withdrawal are made directly on the chain, they are listed', async () => {
    const { file, provider } = exchange.stack
    const erin = exchange.trader(4)
    const key = file.accounts[4]?.private_key as string
    const wallet = new NonceManager(new Wallet(key, provider))
    const bank = MarginBank__factory.connect(file.contracts.margin_bank, wallet)
    const usdm = TestUSDM__factory.connect(file.contracts.usdm, wallet)
    await (await usdm.approve(file.contracts.margin_bank, 10n * E18)).wait()
    const free = BigInt((await erin.account.balance()).free_e18_raw)
    const untilListed = async (sent: ContractTransactionResponse): Promise<Transaction> => {
      await sent.wait()
      // Those of one second are in the order of their ids.
      const listed = async () =>
        (await erin.account.transactions({ limit: 10 })).find(({ tx_hash }) => tx_hash === sent.hash)
      return (await waitFor(listed, (transaction) => transaction !== undefined)) as Transaction
    }
    for (let count = 0; count < 3; count++) {
      const deposit = await untilListed(await bank.deposit(E18))
      expect(deposit).to.include({ transaction_type: 'deposit', available_margin_delta: 1 })
      expect(deposit.log_index).to.be.a('number')
    }
    const request = await untilListed(await bank.requestWithdrawal(2n * E18))
    expect(request).to.include({ transaction_type: 'withdrawal', available_margin_delta: -2 })

    const { withdrawals, payable_at } = await erin.account.withdrawalPage({ limit: 1 })
    expect(withdrawals[0]).to.include({
      status: 'REQUESTED',
      amount: 2,
      tx_hash: request.tx_hash,
      payable_at,
    })
    const { requestedAt } = await bank.account(await wallet.getAddress())
    expect(Date.parse(payable_at as string)).to.equal(Number(requestedAt) * 1000 + 16_000)
    expect(BigInt((await erin.account.balance()).free_e18_raw)).to.equal(free + E18)
    const csv = await erin.account.transactionsCsv({ type: 'withdrawal', limit: 1 })
    expect(csv.split('\r\n')[1]).to.match(new RegExp(`^${request.id},withdrawal,2,-2,,USDM,,,`))
  })

  it('when a fork removes a deposit, balance and list are as before it, and it counts again once it is mined again', async () => {
    const { provider, file } = exchange.stack
    const frank = exchange.trader(5)
    const before = BigInt((await frank.account.balance()).free_e18_raw)
    const untilFree = (amount: bigint) =>
      waitFor(
        () => frank.account.balance(),
        ({ free_e18_raw }) => BigInt(free_e18_raw) === amount,
        { budgetMs: 30_000 },
      )
    const wallet = new Wallet(file.accounts[5]?.private_key as string, provider)
    const usdm = TestUSDM__factory.connect(file.contracts.usdm, wallet)
    await (await usdm.approve(file.contracts.margin_bank, 77n * E18)).wait()
    const bank = MarginBank__factory.connect(file.contracts.margin_bank, wallet)
    const deposit = await wallet.populateTransaction(await bank.deposit.populateTransaction(77n * E18))
    const raw = await wallet.signTransaction(deposit)
    const mined = await (await provider.broadcastTransaction(raw)).wait()
    const listed = async () => {
      const all = await frank.account.transactions({ limit: 10 })
      return all.filter(({ tx_hash }) => tx_hash === mined?.hash).length
    }
    await untilFree(before + 77n * E18)
    expect(await listed()).to.equal(1)

    await replaceFrom(provider, mined?.blockNumber as number)
    await untilFree(before)
    expect(await listed()).to.equal(0)
    expect(await exchange.differences()).to.deep.equal([])

    await provider.broadcastTransaction(raw)
    await untilFree(before + 77n * E18)
    expect(await listed()).to.equal(1)
    expect(await exchange.differences()).to.deep.equal([])
  })

  for (const marketId of MARKETS) {
    it(`when a buy and a sell match in market ${marketId}, both fill, the maker pays no fee and the taker the scheduled one`, async () => {
      const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
      const market = await alice.marketData.market(marketId)
      const price = await nearOracle(alice, marketId)
      const quantity = fromE18(BigInt(market.step_size_e18_raw) * 50n)
      const { buy, sell } = await trade(alice, bob, { marketId, price, quantity })
      expect([buy.status, sell.status]).to.deep.equal(['FILLED', 'FILLED'])
      expect(buy.filled_quantity_e18_raw).to.equal(toE18(quantity).toString())

      const [bought] = await alice.orders.fills(buy.order_id)
      const [sold] = await bob.orders.fills(sell.order_id)
      expect(bought?.price_e18_raw).to.equal(toE18(price).toString())
      expect([bought?.batch_id, bought?.tx_hash]).to.deep.equal([sold?.batch_id, sold?.tx_hash])
      expect(bought?.fee_e18_raw).to.equal('0')
      expect(sold?.fee_e18_raw).to.equal(takerFee(market, sold as Fill).toString())
      expect(BigInt(sold?.fee_e18_raw ?? 0) > 0n).to.equal(true)
    })

    it(`when a resting order in market ${marketId} is cancelled, its reservation is released at once`, async () => {
      const carol = exchange.trader(2)
      const before = await carol.account.balance()
      const price = await nearOracle(carol, marketId, -5)
      const quantity = fromE18(BigInt((await carol.marketData.market(marketId)).step_size_e18_raw) * 10n)
      const placed = await carol.orders.place({ marketId, side: 'LONG', price, quantity })
      expect(placed.order.status).to.equal('OPEN')
      expect(placed.balance.available).to.be.lessThan(before.available)

      const { order, cancelled, is_duplicate, read_after } = await carol.orders.cancel(
        placed.order.order_hash,
        'changed my mind',
      )
      expect({ status: order.status, cancelled, is_duplicate }).to.deep.equal({
        status: 'CANCELLED',
        cancelled: true,
        is_duplicate: false,
      })
      expect((await carol.account.balance({ readAfter: read_after })).available_e18_raw).to.equal(
        before.available_e18_raw,
      )
      expect((await carol.orders.cancel(placed.order.order_hash)).is_duplicate).to.equal(true)
    })
  }

  it('when a market order exceeds the book, it fills what it can and the remainder is cancelled', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const price = await nearOracle(alice, 1)
    const rest = await alice.orders.place({ marketId: 1, side: 'LONG', price, quantity: '0.02', leverage: 5 })
    const market = await bob.orders.place({ marketId: 1, side: 'SHORT', quantity: '0.05', leverage: 5 })
    const [maker, taker] = await Promise.all([
      alice.orders.waitFor(rest, isDone),
      bob.orders.waitFor(market, isDone),
    ])
    expect([maker.status, maker.filled_quantity]).to.deep.equal(['FILLED', 0.02])
    expect([taker.status, taker.status_reason, taker.filled_quantity]).to.deep.equal([
      'CANCELLED',
      'MARKET_REMAINDER',
      0.02,
    ])
  })

  it('when a market order fills, order, fill and auction show the protection price and what decided the price', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const price = await nearOracle(alice, 1)
    const order = { marketId: 1, quantity: '0.02', leverage: 5 } as const
    const rest = await alice.orders.place({ ...order, side: 'LONG', price })
    const market = await bob.orders.place({ ...order, side: 'SHORT' })
    const [maker, taker] = await Promise.all([
      alice.orders.waitFor(rest, isDone),
      bob.orders.waitFor(market, isDone),
    ])
    expect(market.order.protection_price).to.equal(null)
    expect(market.expected_protection_price).to.be.a('number')
    expect(rest.expected_protection_price).to.equal(null)
    expect(maker.protection_price).to.equal(null)
    expect(taker.protection_price).to.be.a('number').that.is.at.most(Number(price))

    const [fill] = await bob.orders.fills(taker.order_id)
    expect(fill?.protection_price_e18_raw).to.equal(taker.protection_price_e18_raw)
    const { auctions } = await waitFor(
      () => bob.marketData.auctionPage(1, { limit: 100 }),
      (page) =>
        page.auctions.some(({ batch_id, status }) => batch_id === fill?.batch_id && status === 'SETTLED'),
    )
    const auction = auctions.find(({ batch_id }) => batch_id === fill?.batch_id)
    expect(auction).to.include({
      price: Number(price),
      rule_version: 3,
      volume_e18_raw: toE18('0.02').toString(),
    })
  })

  it('when the price band rises while a sell rests, the sell fills to its last step', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const feed = overrideFeed(exchange.stack, 3)
    try {
      const price = await nearOracle(alice, 3)
      const order = { marketId: 3, price, quantity: '0.01', leverage: 2 } as const
      const sell = await bob.orders.place({ ...order, side: 'SHORT' })
      const risen = ((toE18(price) * 102n) / 100n) as Price
      feed.setPrice(risen)
      await waitFor(
        () => alice.marketData.market(3),
        ({ oracle_price_e18_raw }) => BigInt(oracle_price_e18_raw ?? 0) === risen,
      )
      const buy = await alice.orders.place({ ...order, side: 'LONG' })
      const ended = [await bob.orders.waitFor(sell, isDone), await alice.orders.waitFor(buy, isDone)]
      expect(ended.map(({ status }) => status)).to.deep.equal(['FILLED', 'FILLED'])
    } finally {
      await feed.release()
    }
  })

  it('when reduce-only orders close a position, its margin returns to the free balance', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const [position] = await alice.account.positions({ marketId: 2 })
    expect(position?.side).to.equal('LONG')
    const quantity = fromE18(BigInt(position?.size_e18_raw ?? 0))
    const price = await nearOracle(alice, 2)
    const sell = await alice.orders.place({ marketId: 2, side: 'SHORT', price, quantity, reduceOnly: true })
    const buy = await bob.orders.place({ marketId: 2, side: 'LONG', price, quantity, reduceOnly: true })
    await Promise.all([alice.orders.waitFor(sell, isDone), bob.orders.waitFor(buy, isDone)])
    const [closed] = await waitFor(
      () => alice.account.positions({ marketId: 2 }),
      ([now]) => now === undefined || now.size === 0,
    )
    expect(closed?.margin ?? 0).to.equal(0)
  })

  it('when trading is settled, the proof of every batch holds, also against its transactions', async () => {
    await waitFor(
      () => exchange.trader(0).marketData.auctionPage(1, { limit: 1 }),
      ({ auctions }) => auctions[0]?.status === 'SETTLED',
    )
    const { verified, problems, unavailable } = await newestProofs(exchange.stack)
    expect([...problems, ...unavailable]).to.deep.equal([])
    expect(verified).to.be.at.least(MARKETS.length)
  })

  it('when a proof denies a part that the chain has, the part is found on the chain', async () => {
    const { file } = exchange.stack
    const { auctions } = await exchange.trader(0).marketData.auctionPage(1, { limit: 1 })
    const source = `${file.base_url}/v0/auctions/1/${auctions[0]?.batch_id}/proof`
    const proof = (await (await fetch(source)).json()) as BatchProof
    const [part] = proof.parts
    for (const status of ['settling', 'failed'] as const) {
      const hidden = {
        ...{ part: 1, status, transaction_hash: null },
        fills: part?.fills.map((fill) => ({ ...fill, order_hash: null, salt: null })),
      }
      const denied = { ...proof, parts: [hidden, ...proof.parts.slice(1)] }
      const refused = { ...denied, status: statusOf(denied.parts) }
      const { problems } = await verifyBatch({ proof: refused, rpc: file.rpc_url })
      expect(problems).to.have.length(1)
      expect(problems[0]).to.include(
        `part 1 is ${status} in the proof; transaction ${part?.transaction_hash} settled it`,
      )
    }
  })

  it('when a trader looks for an own order in a proof, it is found with its salt and with no other', async () => {
    const { file } = exchange.stack
    const alice = exchange.trader(0)
    const [fill] = (await alice.account.fillPage({ limit: 1 })).fills
    const { order_id, market_id, batch_id } = fill as Fill
    const { order_hash: order, salt } = await alice.orders.commitment(order_id, batch_id)
    const proof = await alice.marketData.batchProof(market_id, batch_id)
    const found = await verifyBatch({ proof, readAt: Date.now(), rpc: file.rpc_url, own: { order, salt } })
    expect(found.problems).to.deep.equal([])
    expect(found.lines.at(-1)).to.match(/^the order is number \d+ of the statement/)
    const other = await alice.orders.commitment(order_id, batch_id > 1 ? batch_id - 1 : batch_id + 1)
    const missing = await verifyBatch({ proof, own: { order, salt: other.salt } })
    expect(missing.problems[0]).to.match(/^the order is not in the statement/)
  })

  it('when trading is settled, chain, journal, write side, read model and REST agree to the last wei', async () => {
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when trading is settled, the bank has exactly the tokens that it owes', async () => {
    const { provider, file, specs, db } = exchange.stack
    const { usdm, margin_bank } = file.contracts
    const bank = MarginBank__factory.connect(margin_bank, provider)
    const held = await TestUSDM__factory.connect(usdm, provider).balanceOf(margin_bank)
    const users = await db.selectFrom('users').select('address').execute()
    let owed = 0n
    for (const { address } of users) {
      const { free, pending } = await bank.account(address)
      owed += free + pending
    }
    for (const { trader } of specs) {
      const { pool, fees } = await bank.market(trader)
      owed += pool + fees
    }
    expect(owed).to.equal(held)
  })
})
