/** Attempts that the lane does not end: without its key or its gas they are aborted, and their reservations released. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { loadAttempt } from '../../../db/adjustments.ts'
import type { Tx } from '../../../db/client.ts'
import type { Fence } from '../../../db/fence.ts'
import { acceptTransactions, storeTransactions } from '../../../db/relayers.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { kindOf } from '../../../domain/positions/adjustment-attempt.ts'
import type { AttemptChange } from '../../../domain/positions/stored-attempt.ts'
import type { Millis, Quote, Seconds } from '../../../domain/units.ts'
import { createExpiry } from '../../../keeper/adjustments/expiry.ts'
import { ADJUSTMENT_PURPOSE, createAdjustmentStore } from '../../../keeper/adjustments/store.ts'
import type { Receipt } from '../../../keeper/ports.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { changeAttempt, insertAttempt } from '../../support/rows/adjustments.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { registerRelayer } from '../../support/rows/relayers.ts'
import { addressOf, MarketFixture, SILENT_LOGGER, type Trader } from '../support/market-fixture.ts'

const CHAIN_ID = 6343
const RELAYER = `0x${'ad'.repeat(20)}` as const
const ID = 'adj-1-1'
const CONFIRMATIONS = 3

describe('the expiry of adjustments', () => {
  let market: MarketFixture
  let trader: Trader
  let fence: Fence
  /** The node's responses. */
  let head: { block: number; time: Millis; baseFee: bigint }
  let receipts: Map<string, Receipt>
  let expire: (fence: Fence) => Promise<void>

  beforeEach(async () => {
    market = await MarketFixture.open(perpetual)
    trader = await market.trader('alice')
    fence = await market.lease('adjust-expiry')
    head = { block: 100, time: market.clock.now(), baseFee: 0n }
    receipts = new Map()
    const chain = {
      chainId: CHAIN_ID,
      head: async () => head,
      receipt: async (hash: string) => receipts.get(hash) ?? null,
    }
    const { db, clock } = market
    const adjustments = createAdjustmentStore(market)
    expire = createExpiry({
      ...{ adjustments, chain, clock, logger: SILENT_LOGGER, confirmations: CONFIRMATIONS },
    })
    const progress = { chain_id: CHAIN_ID, genesis_hash: '0x0', next_block: 50, head: 50, completed_at: 0 }
    await db.insertInto('chain_progress').values(progress).execute()
    await prepare()
  })
  afterEach(() => market.close())

  const underLock = <Result>(
    work: (tx: Tx, head: Awaited<ReturnType<typeof lockShard>>) => Promise<Result>,
  ) => market.db.transaction().execute(async (tx) => work(tx, await lockShard(tx, marketShard(1))))

  const prepare = () =>
    underLock(async (tx, shard) => {
      const adjustment = { amount: e18('50') as Quote, removeMode: 'exact' as const, minAmount: 0n as Quote }
      const deadline = 4_000_000_000 as Seconds
      const signed = { adjustment, signer: addressOf(trader.wallet), signature: '0x', deadline }
      const row = await insertAttempt(tx, {
        ...{ adjustmentId: ID, marketId: 1, userId: trader.account, digest: '0x1', nonce: 1 },
        ...{ kind: kindOf(adjustment), signed, hold: e18('50'), pays: 0n, cancelledOrders: 0 },
        ...{ seq: shard.head + 1, at: market.clock.now() },
      })
      await appendRows(tx, shard, [row])
    })

  /** As the lane does when it signs and sends. */
  const submit = async () => {
    const lane = { name: 'adjust', relayer: RELAYER, chainId: CHAIN_ID }
    await registerRelayer(market.db, lane, 8)
    const asOf = market.clock.now()
    await underLock(async (tx, shard) => {
      const sent = { relayer: RELAYER, relayer_nonce: 7, tx_hash: '0xa', as_of: asOf }
      await change(tx, shard, { status: 'SUBMITTED', ...sent })
      const transaction = { hash: '0xa', raw: '0x', nonce: 7, purpose: ADJUSTMENT_PURPOSE, signedAt: asOf }
      await storeTransactions(tx, lane, [transaction])
    })
    await acceptTransactions(market.db, ['0xa'])
  }
  const change = async (tx: Tx, shard: Awaited<ReturnType<typeof lockShard>>, to: AttemptChange) => {
    const attempt = await loadAttempt(tx, ID)
    if (attempt === undefined) throw new Error(`no attempt ${ID}`)
    const row = await changeAttempt(tx, attempt, to, { seq: shard.head + 1, at: market.clock.now() })
    await appendRows(tx, shard, [row])
  }
  const status = async () => (await loadAttempt(market.db, ID))?.status
  const reserved = async () =>
    (await withMirror(market.db).selectFrom('accounts').select('reserved').executeTakeFirstOrThrow()).reserved
  /** Time passes on the machine and on the chain. */
  const pass = (seconds: number, blocks: number) => {
    market.clock.value += seconds * 1000
    head = { ...head, time: (head.time + seconds * 1000) as Millis, block: head.block + blocks }
  }

  it('when an attempt is not signed in time, it is aborted with the release; before, the lane may still sign it', async () => {
    pass(39, 39)
    await expire(fence)
    expect([await status(), await reserved()]).to.deep.equal(['PREPARED', e18('50')])
    pass(2, 2)
    await expire(fence)
    expect([await status(), await reserved()]).to.deep.equal(['ABORTED', 0n])
  })

  it('when a sent attempt has no receipt after its lifetime, it is aborted once a block of that time is confirmed', async () => {
    await submit()
    pass(60, 60)
    await expire(fence)
    expect(await status()).to.equal('SUBMITTED')
    pass(0, CONFIRMATIONS - 1)
    await expire(fence)
    expect(await status()).to.equal('SUBMITTED')
    pass(0, 1)
    await expire(fence)
    expect([await status(), await reserved()]).to.deep.equal(['ABORTED', 0n])
  })

  it('when the chain has no block after the lifetime of a sent attempt, it stays in flight', async () => {
    await submit()
    market.clock.value += 600_000
    for (let passes = 0; passes < 5; passes++) {
      head = { ...head, block: head.block + 10 }
      await expire(fence)
    }
    expect(await status()).to.equal('SUBMITTED')
  })

  it('when the chain has executed a sent attempt, it is left to the indexer; when it has reverted, it is aborted', async () => {
    await submit()
    receipts.set('0xa', { hash: '0xa', succeeded: true, block: 90 })
    const passes = async () => {
      for (let n = 0; n < 2; n++) {
        pass(60, 60)
        await expire(fence)
      }
    }
    await passes()
    expect(await status()).to.equal('SUBMITTED')
    receipts.set('0xa', { hash: '0xa', succeeded: false, block: 90 })
    await passes()
    expect(await status()).to.equal('ABORTED')
  })

  it('when the lane signs between the read and the end, the attempt stays in flight', async () => {
    const store = createAdjustmentStore(market)
    const [prepared] = await store.open(1)
    if (prepared === undefined) throw new Error('no attempt is open')
    await submit()
    await store.fail(prepared, fence, { status: 'ABORTED', kind: null, reason: 'late' }, market.clock.now())
    expect(await status()).to.equal('SUBMITTED')
  })
})
