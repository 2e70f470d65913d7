/** Funding payments of a running exchange, across a fork, a restart and a rebuild. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { rebuild } from '../../indexer/project/rebuild.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { replaceFrom } from '../support/chain-faults.ts'
import { waitFor } from '../support/patience.ts'
import { FundingUpdates } from './support/funding-updates.ts'
import { differencesOf, nearOracle, trade, traderOn } from './support/stack.ts'

const MARKET = 1
/** Longer than a block, so that funding accrues between two of them. */
const ACCRUAL_MS = 1_500

describe('funding payments of a running exchange', function () {
  this.timeout(240_000)
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-funding-'))
  let stack: Stack
  let updates: FundingUpdates
  const start = async (): Promise<void> => {
    stack = await startStack({ port: 0, dataDir, fresh: false, bots: false, backstop: false }, () => {})
  }
  before(start)
  after(async () => {
    await stack.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })

  async function tradeBetween(buyer: number, seller: number): Promise<void> {
    const [long, short] = [traderOn(stack, buyer), traderOn(stack, seller)]
    const price = await nearOracle(long, MARKET)
    const { buy } = await trade(long, short, { marketId: MARKET, price, quantity: '0.01' })
    expect(buy.status).to.equal('FILLED')
  }

  /** Ids and amounts. */
  async function payments(): Promise<string[]> {
    const rows = await stack.db
      .selectFrom('read.account_transactions')
      .select(['id', 'funding_payment_delta'])
      .where('type', '=', 'funding_payment')
      .orderBy('id')
      .execute()
    return rows.map(({ id, funding_payment_delta }) => `${id} ${funding_payment_delta}`)
  }

  const agreed = async (): Promise<void> => {
    const differences = await waitFor(
      () => differencesOf(stack),
      (found) => found.length === 0,
      { budgetMs: 60_000 },
    )
    expect(differences).to.deep.equal([])
  }

  it('when rates change between trades, chain logs, contract views, read model and REST agree and sum to zero', async () => {
    updates = new FundingUpdates(stack, MARKET)
    await tradeBetween(0, 1)
    for (const [direction, buyer, seller] of [
      ['up', 2, 0],
      ['down', 1, 2],
      ['up', 0, 1],
    ] as const) {
      await updates.set(direction)
      await sleep(ACCRUAL_MS)
      await tradeBetween(buyer, seller)
    }
    await updates.set('down')
    await agreed()
    expect((await payments()).length).to.be.at.least(6)
    const { account } = traderOn(stack, 0)
    const [newest] = await account.transactions({ type: 'funding_payment', limit: 1 })
    expect(newest).to.include({
      market_id: MARKET,
      market_symbol: 'BTC-PERP',
      available_margin_delta_e18_raw: '0',
    })
    const [deposit] = await account.transactions({ type: 'deposit' })
    expect(deposit).to.include({ market_id: null, funding_payment_delta: null })
    expect(deposit?.amount_e18_raw).to.equal(deposit?.available_margin_delta_e18_raw)
  })

  it('when the chain forks, all agree again once the actions are mined again', async () => {
    const rolledBack = async () => {
      const { rows } = await sql<{ count: number }>`
        select count(*)::integer as count from journal where shard = ${marketShard(MARKET)} and row->>'rollback' = 'true'
      `.execute(stack.db)
      return rows[0]?.count ?? 0
    }
    await updates.set('up')
    const { block } = await stack.db
      .selectFrom('read.funding_indexes')
      .select((eb) => eb.fn.max('block').as('block'))
      .where('market_id', '=', MARKET)
      .executeTakeFirstOrThrow()
    await replaceFrom(stack.provider, block)
    expect(await waitFor(rolledBack, (rows) => rows > 0, { budgetMs: 60_000 })).to.be.greaterThan(0)
    await tradeBetween(2, 0)
    await agreed()
    expect((await payments()).length).to.be.at.least(4)
  })

  it('when the exchange restarts and the read model is rebuilt, the payments are the same', async () => {
    const before = await payments()
    await stack.stop()
    await start()
    await agreed()
    expect(await payments()).to.include.members(before)
    const live = await payments()
    await rebuild(stack.db, { limit: 1_000, killPoint() {} })
    await agreed()
    expect(await payments()).to.include.members(live)
  })
})
