/** Adjustments on a real chain: accepted as by the api, executed by a keeper that can be replaced at any point. */
import { expect } from 'chai'
import { getBytes } from 'ethers'
import { loadAttempt } from '../../../db/adjustments.ts'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import type { Fence } from '../../../db/fence.ts'
import { createLeases } from '../../../db/leases.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import {
  type Adjustment,
  holdOf,
  isInFlight,
  isLeverage,
  kindOf,
} from '../../../domain/positions/adjustment-attempt.ts'
import { hashLeverageAdjustment, hashMarginAdjustment } from '../../../domain/positions/adjustment-hash.ts'
import type { Quote, Seconds } from '../../../domain/units.ts'
import { createCalls } from '../../../keeper/adapters/calls.ts'
import { createChain, createSigner } from '../../../keeper/adapters/chain.ts'
import { Adjustments } from '../../../keeper/adjustments/adjustments.ts'
import { createExpiry } from '../../../keeper/adjustments/expiry.ts'
import type { AdjustmentStore } from '../../../keeper/adjustments/ports.ts'
import { createAdjustmentStore } from '../../../keeper/adjustments/store.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import type { Calls, Chain } from '../../../keeper/ports.ts'
import { Delivery } from '../../../keeper/relayer/delivery.ts'
import type { RelayerLane } from '../../../keeper/relayer/ports.ts'
import { createRelayerStore } from '../../../keeper/relayer/store.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { e18 } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { loginOf } from '../../support/postgres.ts'
import { insertAttempt } from '../../support/rows/adjustments.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { adjustKey, type ChainFixture, POLICY } from './chain-fixture.ts'
import { addressOf, keccak, NO_METRICS, SILENT_LOGGER, type Trader } from './market-fixture.ts'
import type { Trading } from './trading.ts'

const CHAIN_ID = 6343
const PRICE = 1000
const HOUR = 3600

export const changeMargin = (amount: string): Adjustment => ({
  ...{ amount: e18(amount) as Quote, removeMode: 'exact', minAmount: 0n as Quote },
})
export const changeLeverage = (leverage: number): Adjustment => ({
  ...{ leverage, maxMarginIn: e18('1000') as Quote, minMarginOut: 0n as Quote },
})

export interface KeeperOptions {
  readonly wrap?: (chain: Chain) => Chain
  readonly killPoint?: (point: string) => void
  readonly adjust?: Calls['adjust']
  /** The fixture's by default. */
  readonly engine?: Engine
}

export interface AdjustmentKeeper {
  /** One pass, and the responses to what it sent. */
  step(): Promise<void>
}

let nextNonce = 1

export class AdjustmentRun {
  readonly fixture: ChainFixture
  readonly alice: Trader
  readonly bob: Trader
  readonly lane: RelayerLane = {
    ...{ name: 'adjust', relayer: createSigner(CHAIN_ID, plainKey(adjustKey)).address, chainId: CHAIN_ID },
  }
  /** With the rights of a keeper. */
  readonly #db: Db

  private constructor({ fixture, alice, bob }: Trading, db: Db) {
    this.fixture = fixture
    this.alice = alice
    this.bob = bob
    this.#db = db
  }

  /** Alice is long and Bob is short; both have a leverage of 5. */
  static async on(trading: Trading): Promise<AdjustmentRun> {
    const { fixture, alice, bob, auction, settling } = trading
    await fixture.place({ by: alice, side: 'LONG', steps: 50, limit: PRICE })
    await fixture.place({ by: bob, side: 'SHORT', steps: 50, limit: PRICE })
    await auction.run()
    await fixture.settle(settling)
    await fixture.follow()
    const url = await loginOf(fixture.url, 'keeper')
    return new AdjustmentRun(
      trading,
      createDb(createPool({ url, connections: 4, name: 'test keeper', idleInTransactionMs: 0 })),
    )
  }

  async close(): Promise<void> {
    await this.#db.destroy()
    await this.fixture.close()
  }

  // ---------------------------------------------------------------------- accepting

  #sign({ wallet }: Trader, adjustment: Adjustment, nonce: number, deadline: Seconds): string {
    const signed = { account: addressOf(wallet), nonce: BigInt(nonce), deadline }
    const digest = isLeverage(adjustment)
      ? hashLeverageAdjustment({ ...adjustment, ...signed }, this.fixture.spec, keccak)
      : hashMarginAdjustment({ ...adjustment, ...signed }, this.fixture.spec, keccak)
    return `${wallet.signMessageSync(getBytes(digest))}01`
  }

  /** Stores the attempt as the api does. Returns its id. `signer`: signs in the trader's place, without a right to. */
  async accept(
    trader: Trader,
    adjustment: Adjustment,
    { signer = trader, life = HOUR } = {},
  ): Promise<string> {
    const nonce = nextNonce++
    const deadline = (Math.floor(this.fixture.clock.now() / 1000) + life) as Seconds
    const signature = this.#sign(signer, adjustment, nonce, deadline)
    await this.fixture.db.transaction().execute(async (tx) => {
      const shard = await lockShard(tx, marketShard(1))
      const row = await insertAttempt(tx, {
        ...{ adjustmentId: `adj-${nonce}`, marketId: 1, userId: trader.account, digest: `0x${nonce}`, nonce },
        ...{ kind: kindOf(adjustment), hold: holdOf(adjustment), pays: 0n, cancelledOrders: 0 },
        signed: { adjustment, signer: addressOf(trader.wallet), signature, deadline },
        ...{ seq: shard.head + 1, at: this.fixture.clock.now() },
      })
      await appendRows(tx, shard, [row])
    })
    return `adj-${nonce}`
  }

  // ---------------------------------------------------------------------- the keeper

  /** The lease of the lane; it is taken from its owner. */
  async acquire(owner: string): Promise<Fence> {
    await this.fixture.db.updateTable('leases').set({ expires_at: 0 }).where('name', '=', 'adjust').execute()
    return (await createLeases(this.fixture.db, owner, 600_000).acquire('adjust')) as Fence
  }

  #chain(): Chain {
    const { url } = this.fixture.chainSide.anvil
    return createChain({ url, chainId: CHAIN_ID, requestTimeoutMs: 3000, sendTimeoutMs: 3000 })
  }

  /** A keeper as it is after a start: it remembers nothing. */
  async keeper(
    fence: Fence,
    {
      wrap = (chain) => chain,
      killPoint = () => {},
      adjust,
      engine = this.fixture.engine,
    }: KeeperOptions = {},
  ): Promise<AdjustmentKeeper> {
    const { clock, spec } = this.fixture
    const chain = wrap(this.#chain())
    const relayers = createRelayerStore({ db: this.#db, engine })
    let headTime = (await chain.head()).time
    const calls = createCalls({ part: 400_000n, order: 150_000n, simple: 300_000n })
    const common = {
      ...{ chain, relayers, clock, killPoint, confirmations: 0 },
      ...{
        signer: createSigner(CHAIN_ID, plainKey(adjustKey)),
        calls: adjust ? { ...calls, adjust } : calls,
      },
      ...{ metrics: NO_METRICS, logger: SILENT_LOGGER },
      fee: () => ({ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1_000_000n }),
    }
    const delivery = new Delivery({ ...common, policy: POLICY, onChange: () => {} }, this.lane)
    const ports = {
      adjustments: this.#store(engine),
      markets: async () => [spec],
    }
    const job = new Adjustments({ ...common, ...ports, delivery, headTime: () => headTime }, this.lane)
    await relayers.register(this.lane, await chain.transactionCount(this.lane.relayer))
    await delivery.recover(fence)
    return {
      async step() {
        headTime = (await chain.head()).time
        await job.pass(fence)
        await delivery.settled()
      },
    }
  }

  #store(engine: Engine = this.fixture.engine): AdjustmentStore {
    return createAdjustmentStore({ db: this.#db, engine }, this.fixture.databaseTime)
  }

  /** One pass of the job that ends what the lane does not. */
  expiry(): () => Promise<void> {
    const { clock } = this.fixture
    const adjustments = this.#store()
    const expire = createExpiry({
      ...{ adjustments, chain: this.#chain(), clock, logger: SILENT_LOGGER, confirmations: 0 },
    })
    return async () =>
      expire((await createLeases(this.fixture.db, 'expiry', 1).acquire('adjust-expiry')) as Fence)
  }

  /** Passes, with the indexer following, until nothing is in flight; then the laws hold. */
  async settle(keeper: AdjustmentKeeper, limitMs = 10_000): Promise<void> {
    for (const deadline = Date.now() + limitMs; ; ) {
      await this.fixture.report(PRICE)
      await keeper.step()
      await this.fixture.follow()
      const open = (await this.attempts()).filter(({ status }) => isInFlight(status))
      if (open.length === 0) return this.expectLaws()
      if (Date.now() > deadline) throw new Error(`still in flight: ${open.map((one) => one.adjustment_id)}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  // ---------------------------------------------------------------------- what it left

  attempts = () =>
    this.fixture.db
      .selectFrom('adjustment_attempts')
      .selectAll()
      .orderBy('created_at')
      .orderBy('seq')
      .execute()

  attempt = async (id: string) => {
    const found = await loadAttempt(this.fixture.db, id)
    if (found === undefined) throw new Error(`no attempt ${id}`)
    return found
  }

  statusOf = async (id: string): Promise<string> => (await this.attempt(id)).status

  /** The lane's transactions, by nonce and time. */
  async sent() {
    const rows = await this.fixture.transactions()
    return rows.filter(({ relayer }) => relayer === this.lane.relayer)
  }

  /** As the comparison of the lane's nonces with the chain's reads them. */
  assigned = () =>
    createRelayerStore({ db: this.#db, engine: this.fixture.engine }).assigned(this.lane, 0, 100)

  marginOf = async ({ wallet }: Trader): Promise<bigint> =>
    (await this.fixture.trading().position(wallet.address)).margin

  /** Reservations are those of the attempts in flight, and ledger and positions those of the contracts. */
  async expectLaws(): Promise<void> {
    const { db, chainSide } = this.fixture
    const attempts = await this.attempts()
    for (const { adjustment_id, status, hold, held } of attempts)
      expect(held, `${adjustment_id} ${status}`).to.equal(isInFlight(status) ? hold : 0n)
    const bank = MarginBank__factory.connect(chainSide.shared.marginBank, chainSide.provider)
    for (const trader of [this.alice, this.bob]) {
      const { reserved, free } = await this.fixture.account(trader)
      const held = attempts.filter(({ user_id }) => user_id === trader.account).map((one) => one.held)
      expect(reserved).to.equal(held.reduce((sum, one) => sum + one, 0n))
      expect(free).to.equal((await bank.account(trader.wallet.address)).free)
      const position = await withMirror(db)
        .selectFrom('positions')
        .selectAll()
        .where('user_id', '=', trader.account)
        .executeTakeFirstOrThrow()
      expect(position.folded_margin).to.equal(await this.marginOf(trader))
    }
  }
}
