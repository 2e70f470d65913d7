/** The contracts of an exchange deployed on a real chain, with databases and followers on request. A follower runs only the passes that a test calls. */
import { getBytes, id, JsonRpcProvider, keccak256, Wallet } from 'ethers'
import type { Db } from '../../../db/client.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Order, Side, SignedOrder } from '../../../domain/orders/order.ts'
import { hashOrder } from '../../../domain/orders/order-hash.ts'
import type { SettlementPart } from '../../../domain/settlement/settlement.ts'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import type { Address, Millis, Price, Seconds, Steps, Ticks } from '../../../domain/units.ts'
import { createChain } from '../../../indexer/adapters/chain.ts'
import { createEngineRecord } from '../../../indexer/ingest/engine-record.ts'
import { Follower, type FollowOptions, type FollowPorts } from '../../../indexer/ingest/follow.ts'
import type { Chain } from '../../../indexer/ports.ts'
import { projectAll as projectShards } from '../../../indexer/project/project-shards.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import type { Logger } from '../../../service/logger.ts'
import { deployMarket, deployShared, feedIdOf, type SharedContracts } from '../../../stack/deploy.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import { LocalEngine, type LocalEngineOptions } from '../../support/local-engine.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { createShard } from '../../support/rows/journal.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { freshDatabase, type TestDatabase } from './database.ts'

export const CHAIN_ID = 6343
const ORACLE = new Wallet(id('oracle'))
const PRICE = { ticks: 1_000, wei: e18('100') as Price }

export const addressOf = (of: { readonly address: string }): Address => of.address.toLowerCase() as Address

export interface FillInput {
  readonly by: Wallet
  readonly side: Side
  readonly fill: number
  readonly quantity?: number
  readonly salt: bigint
  readonly slot?: number
}

/** A database with the engine that writes it. */
export interface ExchangeDatabase extends TestDatabase {
  readonly engine: LocalEngine
}

export class ExchangeFixture {
  readonly provider: JsonRpcProvider
  readonly url: string
  readonly shared: SharedContracts
  readonly spec: MarketSpec
  readonly startBlock: number

  private constructor(
    url: string,
    provider: JsonRpcProvider,
    deployed: { shared: SharedContracts; spec: MarketSpec; startBlock: number },
  ) {
    this.url = url
    this.provider = provider
    this.shared = deployed.shared
    this.spec = deployed.spec
    this.startBlock = deployed.startBlock
  }

  static async deploy(url: string): Promise<ExchangeFixture> {
    const provider = new JsonRpcProvider(url, CHAIN_ID, { staticNetwork: true, cacheTimeout: -1 })
    const startBlock = await provider.getBlockNumber()
    const admin = await provider.getSigner(0)
    const operator = await provider.getSigner(1)
    const shared = await deployShared(admin)
    const trader = await deployMarket(admin, shared, perpetual, {
      operators: [operator],
      oracleSigners: [addressOf(ORACLE)],
    })
    return new ExchangeFixture(url, provider, { shared, spec: { ...perpetual, trader }, startBlock })
  }

  // ---------------------------------------------------------------------- chain

  async rpc<Answer>(method: string, ...params: unknown[]): Promise<Answer> {
    return this.provider.send(method, params)
  }

  async user(name: string): Promise<Wallet> {
    const user = new Wallet(id(name), this.provider)
    await this.rpc('anvil_setBalance', user.address, '0xde0b6b3a7640000')
    return user
  }

  get bank() {
    return MarginBank__factory.connect(this.shared.marginBank, this.provider)
  }

  get trader() {
    return IsolatedTrader__factory.connect(this.spec.trader, this.provider)
  }

  async deposit(user: { readonly address: string }, amount: string): Promise<void> {
    const admin = await this.provider.getSigner(0)
    const usdm = TestUSDM__factory.connect(this.shared.usdm, admin)
    await (await usdm.mint(admin.address, e18(amount))).wait()
    await (await usdm.approve(this.shared.marginBank, e18(amount))).wait()
    await (await this.bank.connect(admin).depositFor(user.address, e18(amount))).wait()
  }

  sign(input: FillInput, ticks: number): SignedOrder {
    const order: Order = {
      marketId: this.spec.marketId,
      maker: addressOf(input.by),
      side: input.side,
      type: 'LIMIT',
      price: ticks as Ticks,
      quantity: (input.quantity ?? input.fill) as Steps,
      trigger: 0 as Ticks,
      leverage: 5,
      reduceOnly: false,
      expiration: 0 as Seconds,
      salt: input.salt,
    }
    const hash = hashOrder(order, this.spec, (message: Uint8Array) => getBytes(keccak256(message)))
    const signature = `${input.by.signMessageSync(getBytes(hash))}01` as `0x${string}`
    return { ...order, hash, signer: addressOf(input.by), signature }
  }

  /** The next part for the chain; the buyer is the taker. */
  async part(fills: readonly FillInput[], ticks = PRICE.ticks): Promise<SettlementPart> {
    const clock = await this.trader.clock()
    const asOf = ((await this.latestSecond()) * 1000) as Millis
    return {
      marketId: this.spec.marketId,
      actionId: Number(clock.actionId) + 1,
      batchId: Number(clock.batchId) + 1,
      part: 1,
      parts: 1,
      asOf,
      price: ticks as Ticks,
      makerFee: this.spec.makerFee,
      takerFee: this.spec.takerFee,
      oracle: { price: PRICE.wei, observedAt: asOf, signatures: await this.report(asOf) },
      fills: fills.map((input) => ({
        order: this.sign(input, ticks),
        fill: input.fill as Steps,
        taker: (input.side === 'LONG' ? input.fill : 0) as Steps,
        partialSlot: input.slot ?? null,
      })),
    }
  }

  async report(observedAt: number, price = PRICE.wei): Promise<`0x${string}`> {
    const domain = {
      name: 'SignedPriceOracle',
      version: '1',
      chainId: CHAIN_ID,
      verifyingContract: this.shared.oracle,
    }
    const types = {
      PriceReport: [
        { name: 'feedId', type: 'bytes32' },
        { name: 'price', type: 'uint256' },
        { name: 'observedAt', type: 'uint256' },
      ],
    }
    const value = { feedId: feedIdOf(this.spec.marketId), price, observedAt }
    return (await ORACLE.signTypedData(domain, types, value)) as `0x${string}`
  }

  /** Snapshots and time jumps move the chain's clock away from the machine's. */
  async latestSecond(): Promise<number> {
    const block = await this.provider.getBlock('latest')
    return block?.timestamp ?? 0
  }

  /** Mined a second after the latest block. */
  async send(part: SettlementPart): Promise<string> {
    await this.rpc('evm_setNextBlockTimestamp', (await this.latestSecond()) + 1)
    const operator = await this.provider.getSigner(1)
    const sent = await this.trader.connect(operator).settleBatch(encodeSettleBatch(part, this.spec))
    const receipt = await sent.wait()
    if (receipt?.status !== 1) throw new Error('the part was not settled')
    return sent.hash
  }

  // ---------------------------------------------------------------------- database

  /** A migrated database with the market listed and no other data. It has no engine. */
  async listed(): Promise<TestDatabase> {
    const test = await freshDatabase()
    await createShard(test.db, ACCOUNTS_SHARD)
    await listMarket(test.db, this.spec)
    return test
  }

  /** A database with the market listed, which an engine of its own writes. */
  async database(options: LocalEngineOptions = {}): Promise<ExchangeDatabase> {
    const test = await this.listed()
    return withEngine(test, await LocalEngine.over(test, options))
  }

  chain(): Chain & { close(): void } {
    return createChain({ url: this.url, chainId: CHAIN_ID, timeoutMs: 5_000 })
  }

  follower(test: Recorded, chain: Chain, options: Partial<FollowOptions> = {}): Follower {
    return new Follower(followPorts(test, chain), { ...this.followOptions(), ...options })
  }

  followOptions(): FollowOptions {
    return {
      chainId: CHAIN_ID,
      bank: this.shared.marginBank,
      accountManager: this.shared.accountManager,
      forwarder: this.shared.forwarder,
      startBlock: this.startBlock,
      range: 100,
      liveDepth: 64,
    }
  }
}

const SILENT_LOGGER: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** A database, and the engine through which a follower records blocks. */
export interface Recorded {
  readonly db: Db
  readonly engine: Engine
}

export function followPorts({ db, engine }: Recorded, chain: Chain): FollowPorts {
  return {
    db,
    chain,
    clock: { now: () => Date.now() as Millis },
    logger: SILENT_LOGGER,
    metrics: { headReached() {}, blockApplied() {}, rolledBack() {}, mismatch() {} },
    killPoint() {},
    record: createEngineRecord({ db, engine, chain, logger: SILENT_LOGGER }, CHAIN_ID),
  }
}

export const withEngine = (test: TestDatabase, engine: LocalEngine): ExchangeDatabase => ({
  db: test.db,
  url: test.url,
  engine,
  async close() {
    await engine.close()
    await test.close()
  },
})

/** Runs passes until the head is reached: a fork or a race may need several. */
export async function catchUp(follower: Follower): Promise<void> {
  for (let passes = 0; passes < 20; passes++) if (await follower.pass()) return
  throw new Error('the head was not reached in 20 passes')
}

export async function projectAll({ db }: TestDatabase): Promise<void> {
  await projectShards(db, { limit: 500, killPoint() {} })
}
