/** A fixture with a chain below it: contracts, relayers, and an indexer that looks when it is asked to. */

import { HDNodeWallet, id, JsonRpcProvider, NonceManager, parseEther, Wallet } from 'ethers'
import { after, afterEach, before, beforeEach } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { type Address, type Millis, ONE, type Price, type Rate, type UserId } from '../../../domain/units.ts'
import { createChain as createFollowerChain } from '../../../indexer/adapters/chain.ts'
import { createEngineRecord } from '../../../indexer/ingest/engine-record.ts'
import { Follower } from '../../../indexer/ingest/follow.ts'
import { createCalls } from '../../../keeper/adapters/calls.ts'
import { createChain, createSigner } from '../../../keeper/adapters/chain.ts'
import { createStores, type WorkerStores } from '../../../keeper/compose-stores.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { Delivery, type DeliveryPorts } from '../../../keeper/relayer/delivery.ts'
import type { RelayerLane } from '../../../keeper/relayer/ports.ts'
import { recoverLane, type SettlePorts, settleMarket } from '../../../keeper/settlement/settle-market.ts'
import type { Clock } from '../../../service/clock.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { type Anvil, startAnvil } from '../../../stack/anvil.ts'
import {
  deployMarket,
  deployShared,
  feedIdOf,
  REPORT_LIMITS,
  type SharedContracts,
} from '../../../stack/deploy.ts'
import { createReportSigner } from '../../../stack/oracle.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import { AdoptingEngine } from '../../support/adopting-engine.ts'
import { accountIn } from '../../support/mirror.ts'
import { PATIENCE } from '../../support/patience.ts'
import { type Auction, createAuction, createMarketMemory } from './engine-turns.ts'
import { MarketFixture, NO_METRICS, RULES, realClock, SILENT_LOGGER, type Trader } from './market-fixture.ts'
import { restoreChain, type SavedChain, saveChain } from './saved-chain.ts'

const CHAIN_ID = 6343
const DEVELOPER = HDNodeWallet.fromPhrase('test test test test test test test test test test test junk')

export const laneKey = id('lane m1')
export const faucetKey = id('lane faucet')
export const adjustKey = id('lane adjust')
const OPERATORS = [laneKey, adjustKey]
const oracleKey = id('oracle')

/** Traders with a deposit from the start of the chain. */
const FUNDED = ['alice', 'bob', 'carol', 'dave']
const FUNDS = '100000'
const walletOf = (name: string): Wallet => new Wallet(id(name))

export interface Deployed {
  readonly anvil: Anvil
  /** The first block that the indexer has to read. */
  readonly startBlock: number
  readonly provider: JsonRpcProvider
  readonly admin: NonceManager
  readonly shared: SharedContracts
  readonly spec: MarketSpec
}

export async function deployChain(listed: MarketSpec): Promise<Deployed> {
  const anvil = await startAnvil({ blockTime: 1, mixedMining: true })
  const provider = new JsonRpcProvider(anvil.url, CHAIN_ID, {
    staticNetwork: true,
    pollingInterval: 20,
    cacheTimeout: -1,
  })
  const admin = new NonceManager(DEVELOPER.connect(provider))
  for (const key of [laneKey, faucetKey, adjustKey]) {
    await (await admin.sendTransaction({ to: new Wallet(key).address, value: parseEther('100') })).wait()
  }
  const shared = await deployShared(admin)
  const trader = await deployMarket(admin, shared, listed, {
    operators: OPERATORS.map((key) => new Wallet(key, provider)),
    oracleSigners: [new Wallet(oracleKey).address.toLowerCase() as Address],
    // Tests move the price by some percent within a tenth of a second.
    reports: { ...REPORT_LIMITS, moveBase: ONE as Rate },
  })
  // The lanes have accepted their roles; tests count their transactions from here.
  for (const key of OPERATORS) await provider.send('anvil_setNonce', [new Wallet(key).address, '0x0'])
  const deployed = { anvil, provider, admin, shared, spec: { ...listed, trader } }
  const startBlock = await provider.getBlockNumber()
  await deposit(
    deployed,
    FUNDED.map((name) => walletOf(name).address),
    parseEther(FUNDS),
  )
  return { ...deployed, startBlock }
}

/** Any account may deposit for another one. */
async function deposit(
  { shared, admin }: Pick<Deployed, 'shared' | 'admin'>,
  owners: readonly string[],
  wei: bigint,
): Promise<void> {
  const token = TestUSDM__factory.connect(shared.usdm, admin)
  const bank = MarginBank__factory.connect(shared.marginBank, admin)
  const total = wei * BigInt(owners.length)
  const sent = [
    await token.mint(await admin.getAddress(), total),
    await token.approve(shared.marginBank, total),
  ]
  for (const owner of owners) sent.push(await bank.depositFor(owner, wei))
  await Promise.all(sent.map((transaction) => transaction.wait()))
}

/** Runs `before` and `after` of a file: one chain, as good as new for each test. */
export function useChain(listed: MarketSpec): () => Deployed {
  let deployed: Deployed | undefined
  let saved: SavedChain | undefined
  before(async () => {
    deployed = await deployChain(listed)
  })
  beforeEach(async () => {
    if (deployed !== undefined) saved = await saveChain(deployed)
  })
  afterEach(async () => {
    if (deployed !== undefined && saved !== undefined) await restoreChain(deployed, saved)
  })
  after(async () => {
    deployed?.provider.destroy()
    await deployed?.anvil.stop()
  })
  return () => deployed as Deployed
}

/** Mines a transaction of a relayer's key that the keeper has not signed. */
export async function foreignTransaction(
  { provider }: Deployed,
  nonce: number,
  key = laneKey,
): Promise<void> {
  const wallet = new Wallet(key, provider)
  await (await wallet.sendTransaction({ to: wallet.address, value: 1n, nonce })).wait()
}

const FOLLOW_LIMIT_MS = 5_000 * PATIENCE

export const POLICY = { resendAfterMs: 200, stuckAfterMs: 1500, feeCap: 10n ** 12n, priorityFee: 1_000_000n }

export class ChainFixture extends MarketFixture {
  readonly chainSide!: Deployed
  readonly lane: RelayerLane = { name: 'm1', relayer: plainKey(laneKey).address, chainId: CHAIN_ID }
  follower!: Follower
  #headTime: Millis | null = null
  /** The oracle's signature under a report of any feed. */
  signFeed!: (feedId: string, price: Price, at: Millis) => string

  static async openOn(deployed: Deployed): Promise<ChainFixture> {
    const { db, url } = await MarketFixture.database(deployed.spec)
    const fixture = new ChainFixture(db, url, deployed.spec, realClock())
    Object.assign(fixture, { chainSide: deployed })
    const signer = createReportSigner(oracleKey, { chainId: CHAIN_ID, address: deployed.shared.oracle })
    fixture.signFeed = (feed, price, at) => signer.sign(feed, price, at).signatures
    const feed = feedIdOf(deployed.spec.marketId)
    fixture.signReport = (price: Price, at: number) => signer.sign(feed, price, at as Millis).signatures
    fixture.follower = await fixture.#createFollower(fixture.engine)
    return fixture
  }

  /** From here on the indexer records blocks through this engine. */
  async followThrough(engine: Engine): Promise<void> {
    this.follower = await this.#createFollower(engine)
  }

  async #createFollower(engine: Engine): Promise<Follower> {
    const chain = createFollowerChain({ url: this.chainSide.anvil.url, chainId: CHAIN_ID, timeoutMs: 5000 })
    const metrics = {
      headReached: () => {},
      blockApplied: () => {},
      rolledBack: () => {},
      mismatch: () => {},
    }
    const { marginBank, accountManager, forwarder } = this.chainSide.shared
    const ports = {
      db: this.db,
      chain,
      clock: this.clock,
      logger: SILENT_LOGGER,
      metrics: metrics,
      killPoint: () => {},
    }
    const record = createEngineRecord({ ...ports, engine }, CHAIN_ID)
    return new Follower(
      { ...ports, record },
      {
        chainId: CHAIN_ID,
        bank: marginBank,
        ...{ accountManager, forwarder },
        startBlock: this.chainSide.startBlock,
        range: 500,
        liveDepth: 20,
      },
    )
  }

  /** The indexer sees everything that is on the chain by now. */
  async follow(): Promise<void> {
    for (const deadline = Date.now() + FOLLOW_LIMIT_MS; ; ) {
      try {
        if (await this.follower.pass()) return
      } catch (error) {
        // A node that switches forks during a pass contradicts itself; the indexer starts the pass over, too.
        if ((error as Error).name !== 'InconsistentNodeError' || Date.now() > deadline) throw error
      }
    }
  }

  /** An account with a deposit that the indexer has recorded. */
  async depositor(name: string, amount = FUNDS): Promise<Trader> {
    const wallet = walletOf(name)
    if (!FUNDED.includes(name)) await this.deposit(wallet.address, parseEther(amount))
    else if (amount !== FUNDS)
      throw new Error(`${name} has a deposit of ${FUNDS}; another amount needs another name`)
    await this.follow()
    const { user_id } = await this.db
      .selectFrom('users')
      .select('user_id')
      .where('address', '=', wallet.address.toLowerCase())
      .executeTakeFirstOrThrow()
    return { wallet, account: user_id as UserId }
  }

  deposit(owner: string, wei: bigint): Promise<void> {
    return deposit(this.chainSide, [owner], wei)
  }

  /** The account's ledger as the indexer has recorded it. */
  account({ account }: Trader) {
    return accountIn(this.db, account)
  }

  trading() {
    return IsolatedTrader__factory.connect(this.spec.trader, this.chainSide.provider)
  }

  override headTime(): Millis | null {
    return this.#headTime
  }

  /** As of the fixture's clock and the chain's head. `aheadMs`: both of its times are wrong by so much. */
  auction({ aheadMs = 0 } = {}): Auction {
    const engine =
      aheadMs === 0
        ? this.engine
        : new AdoptingEngine(this.db, { now: () => (this.clock.now() + aheadMs) as Millis })
    const headTime = (): Millis | null => this.#headTime && ((this.#headTime + aheadMs) as Millis)
    const memory = createMarketMemory({ ...RULES, kind: this.spec.kind })
    const auction = createAuction({ engine, headTime }, this.spec, memory)
    return {
      run: async () => {
        await this.readHead()
        return auction.run()
      },
    }
  }

  /** The engine knows the chain's head from here on. */
  async readHead(): Promise<void> {
    const { timestamp } = (await this.chainSide.provider.getBlock('latest')) as { timestamp: number }
    this.#headTime = (timestamp * 1000) as Millis
  }

  /** A keeper's settlement as it is after a start: it remembers nothing. */
  settlement(
    changes: {
      readonly chain?: (chain: Chain) => Chain
      readonly killPoint?: (point: string) => void
      /** Of the node; anvil's by default. */
      readonly url?: string
      /** Of the keeper's process; the fixture's by default. */
      readonly clock?: Clock
      /** With the fixture's engine by default. */
      readonly stores?: WorkerStores
      /** The lane's present relayer key; `laneKey` by default. */
      readonly key?: string
      /** Former keys of the lane that the keeper still has. */
      readonly formerKeys?: readonly string[]
    } = {},
  ): SettlementFixture {
    return new SettlementFixture(this, changes)
  }

  /** A keeper that starts settles everything in the queue. */
  async settle(fence: Fence): Promise<void> {
    const settlement = this.settlement()
    await settlement.start(fence)
    await settlement.settleAll(fence)
  }

  async mode(): Promise<string> {
    return (await this.db.selectFrom('markets').select('mode').executeTakeFirstOrThrow()).mode
  }

  async actions() {
    return this.db.selectFrom('actions').selectAll().orderBy('queue_no').execute()
  }

  async transactions() {
    return this.db
      .selectFrom('relayer_transactions')
      .selectAll()
      .orderBy('nonce')
      .orderBy('signed_at')
      .execute()
  }

  async position(trader: Trader): Promise<bigint> {
    return (await this.trading().position(trader.wallet.address)).size
  }
}

export class SettlementFixture {
  readonly delivery: Delivery
  readonly #fixture: ChainFixture
  readonly #stores: WorkerStores
  readonly #ports: SettlePorts
  readonly lane: RelayerLane
  readonly chain: Chain
  #headTime: Millis | null = null

  constructor(
    fixture: ChainFixture,
    {
      chain: wrap = (chain) => chain,
      killPoint = () => {},
      url = fixture.chainSide.anvil.url,
      clock = fixture.clock,
      stores = createStores(fixture),
      key = laneKey,
      formerKeys = [],
    }: Parameters<ChainFixture['settlement']>[0] & object,
  ) {
    this.#fixture = fixture
    this.#stores = stores
    this.chain = wrap(createChain({ url, chainId: CHAIN_ID, requestTimeoutMs: 3000, sendTimeoutMs: 3000 }))
    const former = formerKeys.map((each) => createSigner(CHAIN_ID, plainKey(each)))
    const common = {
      chain: this.chain,
      signer: createSigner(CHAIN_ID, plainKey(key)),
      calls: createCalls({ part: 400_000n, order: 150_000n, simple: 300_000n }),
      clock,
      confirmations: 0,
      killPoint,
      metrics: NO_METRICS,
      logger: SILENT_LOGGER,
      fee: () => ({ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1_000_000n }),
    }
    const delivery: DeliveryPorts = {
      ...common,
      relayers: stores.relayers,
      policy: POLICY,
      formerSigner: (relayer) => former.find(({ address }) => address === relayer) ?? null,
      onChange: () => {},
    }
    this.lane = { ...fixture.lane, relayer: common.signer.address }
    this.delivery = new Delivery(delivery, this.lane)
    this.#ports = {
      ...common,
      delivery: this.delivery,
      store: stores.settlement,
      voids: stores.voids,
      requeues: stores.requeues,
      maxInFlight: 8,
      headTime: () => this.#headTime,
    }
  }

  async start(fence: Fence): Promise<void> {
    const { relayers } = this.#stores
    await relayers.register(this.lane, await this.chain.transactionCount(this.lane.relayer))
    await recoverLane(this.#ports, this.#fixture.spec, this.lane, fence)
  }

  /** One look, and the answers of what it sent. */
  async step(fence: Fence): Promise<void> {
    this.#headTime = (await this.chain.head()).time
    await settleMarket(this.#ports, this.#fixture.spec, this.lane, fence)
    await this.delivery.settled()
  }

  /** Looks, with the indexer following, until nothing of the market is unsettled. */
  async settleAll(fence: Fence, limitMs = 60_000): Promise<void> {
    const deadline = Date.now() + limitMs
    for (;;) {
      await this.step(fence)
      await this.#fixture.follow()
      const pending = ['QUEUED', 'SIGNED', 'SUBMITTED']
      const open = (await this.#fixture.actions()).filter(({ status }) => pending.includes(status))
      if (open.length === 0) return
      if (Date.now() > deadline) throw new Error(`still unsettled: ${JSON.stringify(open)}`)
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
  }
}
