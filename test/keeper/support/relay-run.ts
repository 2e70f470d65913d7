/** Relays of signed requests on a real chain: accepted as by the api, sent by a keeper that can be replaced at any point. */
import { createDb, createPool, type Db } from '../../../db/client.ts'
import type { Fence } from '../../../db/fence.ts'
import { createLeases } from '../../../db/leases.ts'
import type { RelayOperation } from '../../../db/relay-operations.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import { calldataOf, REQUEST_GAS } from '../../../domain/relays/forward-request.ts'
import type { RelayEffect } from '../../../domain/relays/operation.ts'
import { createCalls } from '../../../keeper/adapters/calls.ts'
import { createChain, createSigner } from '../../../keeper/adapters/chain.ts'
import { createStores } from '../../../keeper/compose-stores.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { Delivery } from '../../../keeper/relayer/delivery.ts'
import type { RelayerLane } from '../../../keeper/relayer/ports.ts'
import { createRelayExpiry } from '../../../keeper/relays/expiry.ts'
import { createRelays } from '../../../keeper/relays/relays.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { Forwarder__factory } from '../../../typechain-types/factories/Forwarder__factory.ts'
import { digestOfForward, signForward } from '../../support/forward-request.ts'
import { PATIENCE } from '../../support/patience.ts'
import { loginOf } from '../../support/postgres.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { insertRelayOperation } from '../../support/rows/relay-operations.ts'
import { type ChainFixture, faucetKey, POLICY } from './chain-fixture.ts'
import { NO_METRICS, SILENT_LOGGER, type Trader } from './market-fixture.ts'

const CHAIN_ID = 6343
export const HOUR = 3600
const SETTLED_MS = 10_000 * PATIENCE

export interface RelayKeeper {
  readonly delivery: Delivery
  /** Ends what has expired, which needs no key. */
  expire(): Promise<void>
  /** One pass of each job, and the answers of what it sent. */
  step(): Promise<void>
}

export class RelayRun {
  readonly fixture: ChainFixture
  readonly lane: RelayerLane = {
    name: 'relay',
    relayer: createSigner(CHAIN_ID, plainKey(faucetKey)).address,
    chainId: CHAIN_ID,
  }

  /** With the rights of a keeper. */
  readonly #keeperDb: Db

  private constructor(fixture: ChainFixture, keeperDb: Db) {
    this.fixture = fixture
    this.#keeperDb = keeperDb
  }

  static async on(fixture: ChainFixture): Promise<RelayRun> {
    const url = await loginOf(fixture.url, 'keeper')
    return new RelayRun(
      fixture,
      createDb(createPool({ url, connections: 4, name: 'test keeper', idleInTransactionMs: 0 })),
    )
  }

  async close(): Promise<void> {
    await this.#keeperDb.destroy()
    await this.fixture.close()
  }

  get #shared() {
    return this.fixture.chainSide.shared
  }

  /** A signed request with the least gas that the api accepts. */
  async request(
    { wallet, account }: Trader,
    effect: RelayEffect,
    { nonce = 0, life = HOUR }: { readonly nonce?: number; readonly life?: number } = {},
  ) {
    const isOfMarket = effect.kind === 'invalidate_margin_nonces'
    const request = {
      from: wallet.address,
      to: isOfMarket ? this.fixture.spec.trader : this.#shared.accountManager,
      ...{ value: 0, gas: REQUEST_GAS.needed, nonce },
      deadline: Math.floor(Date.now() / 1000) + life,
      data: calldataOf(effect),
    }
    const signature = await signForward(wallet, request, this.#shared.forwarder)
    const operation = {
      operation_id: digestOfForward(request, this.#shared.forwarder),
      ...{ user_id: account, owner: wallet.address.toLowerCase(), target: request.to.toLowerCase() },
      kind: effect.kind,
      session_key: isOfMarket ? null : effect.sessionKey,
      market_id: isOfMarket ? effect.marketId : null,
      minimum: isOfMarket ? effect.minimum : null,
      ...{ gas: request.gas, nonce, deadline: request.deadline, data: request.data, signature },
    }
    return { request, signature, operation }
  }

  /** Stores the request as the api does. Returns its id. */
  async accept(...of: Parameters<RelayRun['request']>): Promise<string> {
    const { operation } = await this.request(...of)
    await this.fixture.db.transaction().execute(async (tx) => {
      const shard = await lockShard(tx, ACCOUNTS_SHARD)
      const { row } = await insertRelayOperation(tx, operation, Date.now())
      await appendRows(tx, shard, [row])
    })
    return operation.operation_id
  }

  /** Another party sends the request. Returns the transaction's hash. */
  async executeByOther(...of: Parameters<RelayRun['request']>): Promise<string> {
    const { request, signature } = await this.request(...of)
    const forwarder = Forwarder__factory.connect(this.#shared.forwarder, this.fixture.chainSide.admin)
    const sent = await forwarder.execute({ ...request, signature })
    await sent.wait()
    return sent.hash
  }

  acquire = async (owner = 'keeper'): Promise<Fence> =>
    (await createLeases(this.fixture.db, owner, 60_000).acquire('relay')) as Fence

  /** A keeper as it is after a start: it remembers nothing. */
  async keeper(
    fence: Fence,
    {
      wrap = (chain) => chain,
      killPoint = () => {},
      engine = this.fixture.engine,
    }: {
      readonly wrap?: (chain: Chain) => Chain
      readonly killPoint?: (point: string) => void
      /** The fixture's by default. */
      readonly engine?: Engine
    } = {},
  ): Promise<RelayKeeper> {
    const { clock, chainSide } = this.fixture
    const db = this.#keeperDb
    const url = chainSide.anvil.url
    const chain = wrap(createChain({ url, chainId: CHAIN_ID, requestTimeoutMs: 3000, sendTimeoutMs: 3000 }))
    const { relayers, relays: store } = createStores({ db, engine })
    const common = {
      ...{ chain, relayers, clock, killPoint, confirmations: 0 },
      signer: createSigner(CHAIN_ID, plainKey(faucetKey)),
      calls: createCalls({ part: 400_000n, order: 150_000n, simple: 300_000n }),
      ...{ metrics: NO_METRICS, logger: SILENT_LOGGER },
      fee: () => ({ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1_000_000n }),
    }
    const delivery = new Delivery({ ...common, policy: POLICY, onChange: () => {} }, this.lane)
    const pass = createRelays({ ...common, delivery, store, forwarder: this.#shared.forwarder }, this.lane)
    const expire = createRelayExpiry({ ...common, store })
    await relayers.register(this.lane, await chain.transactionCount(this.lane.relayer))
    await delivery.recover(fence)
    return {
      delivery,
      expire: () => expire(fence),
      async step() {
        await expire(fence)
        await pass(fence)
        await delivery.settled()
      },
    }
  }

  operation(id: string): Promise<RelayOperation> {
    return this.fixture.db
      .selectFrom('relay_operations')
      .selectAll()
      .where('operation_id', '=', id)
      .executeTakeFirstOrThrow()
  }

  statusesOf = async (...ids: string[]): Promise<string[]> =>
    Promise.all(ids.map(async (id) => (await this.operation(id)).status))

  /** Statuses of the operation by the journal, the oldest first. */
  async journalOf(id: string): Promise<string[]> {
    const rows = await this.fixture.db.selectFrom('journal').select('row').orderBy('seq').execute()
    return rows.flatMap(({ row }) =>
      row.kind === 'relay_changed' && row.operation_id === id ? [row.status] : [],
    )
  }

  /** Passes, with the indexer following, until the operations have ended. */
  async settle(keeper: RelayKeeper, ...ids: string[]): Promise<void> {
    for (const deadline = Date.now() + SETTLED_MS; ; ) {
      await keeper.step()
      await this.fixture.follow()
      const open = (await this.statusesOf(...ids)).filter((status) => ['QUEUED', 'RELAYING'].includes(status))
      if (open.length === 0) return
      if (Date.now() > deadline) throw new Error(`still open: ${open.join(', ')}`)
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
  }
}
