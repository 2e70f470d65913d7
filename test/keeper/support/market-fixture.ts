/** A market in a database of its own, with a clock that stands still, traders, and an api reduced to two writes. */
import { getBytes, id, keccak256, Wallet } from 'ethers'
import { sql } from 'kysely'
import { createDb, createPool, type Db, type Tx } from '../../../db/client.ts'
import type { Fence } from '../../../db/fence.ts'
import { createLeases } from '../../../db/leases.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { type MarketSpec, priceOf } from '../../../domain/market/market.ts'
import { isReservable, leaveBook, reservable } from '../../../domain/orders/open-order.ts'
import {
  aliveUntil,
  isAlwaysReduceOnly,
  type Order,
  type OrderType,
  type Side,
} from '../../../domain/orders/order.ts'
import { hashOrder } from '../../../domain/orders/order-hash.ts'
import { accepted, isClosable } from '../../../domain/orders/order-state.ts'
import { reservationsOf, reservedPriceOf } from '../../../domain/orders/reservation.ts'
import type { Address, Millis, Price, Quote, Seconds, Steps, Ticks, UserId } from '../../../domain/units.ts'
import type { Metrics } from '../../../keeper/ports.ts'
import type { Logger } from '../../../service/logger.ts'
import type { AdoptingEngine, AdoptingOptions } from '../../support/adopting-engine.ts'
import { type BuildAction, enqueueOn } from '../../support/enqueue.ts'
import { e18 } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { changeReserved, lockAccounts } from '../../support/rows/accounts.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { toOpenOrder, updateOrders } from '../../support/rows/orders.ts'
import { ServedEngine } from '../../support/served-engine.ts'
import { adoptingEngine } from './adopting-engine.ts'
import type { TurnPorts } from './engine-turns.ts'

export const SILENT_LOGGER: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export const NO_METRICS: Metrics = {
  stage: () => {},
  transactionEnded: () => {},
  inFlight: () => {},
  queued: () => {},
  balance: () => {},
  head: () => {},
  clockSkew: () => {},
  freezeRequested: () => {},
  freezePending: () => {},
  finalReportMissing: () => {},
}

/** Everything a fresh report allows: tests of freshness name their own. */
export const RULES = {
  tick: 1n as Price,
  maxAge: 10_000 as Millis,
  moveBase: 1_000_000n,
  moveSlope: 0n,
  moveWindow: 1 as Millis,
}

export const keccak = (message: Uint8Array): Uint8Array => getBytes(keccak256(message))
export const addressOf = (wallet: Wallet): Address => wallet.address.toLowerCase() as Address

export interface Trader {
  readonly wallet: Wallet
  readonly account: UserId
}

export interface Placement {
  readonly by: Trader
  readonly side: Side
  readonly steps: number
  /** MARKET or LIMIT, by whether there is a limit, unless said otherwise. */
  readonly type?: OrderType
  /** Limit in ticks; a market order without it. */
  readonly limit?: number
  /** In ticks, of a conditional order. */
  readonly trigger?: number
  readonly leverage?: number
  readonly reduceOnly?: boolean
  readonly expiration?: number
  /** Signs in the maker's place. */
  readonly signer?: Wallet
  /** When the right of that signer ends, in Unix seconds. */
  readonly keyExpiresAt?: number
}

export interface TestClock {
  value: number
  now(): Millis
}

/** Moves only where the test moves it. */
const standingClock = (): TestClock => ({
  value: 1_800_000_000_000,
  now() {
    return this.value as Millis
  },
})

/** The computer's. What a test adds to `value` is added to it. */
export const realClock = (): TestClock => {
  let ahead = 0
  return {
    get value() {
      return Date.now() + ahead
    },
    set value(wanted) {
      ahead = wanted - Date.now()
    },
    now() {
      return this.value as Millis
    },
  }
}

class Uncovered extends Error {}

export class MarketFixture {
  readonly db: Db
  readonly url: string
  readonly spec: MarketSpec
  readonly clock: TestClock
  /** Decides on what the database has, at the fixture's time. */
  readonly engine: AdoptingEngine
  #salt = 1n
  #served: ServedEngine | null = null

  constructor(db: Db, url: string, spec: MarketSpec, clock: TestClock) {
    this.db = db
    this.url = url
    this.spec = spec
    this.clock = clock
    this.engine = adoptingEngine(db, this.times())
  }

  /** Another market of the same database, clock and traders. */
  async beside(spec: MarketSpec): Promise<MarketFixture> {
    await listMarket(this.db, spec)
    const other = new MarketFixture(this.db, this.url, spec, this.clock)
    other.#salt = BigInt(spec.marketId) * 1_000_000n
    return other
  }

  /** A new database in which the market is listed. */
  static async database(spec: MarketSpec): Promise<{ readonly db: Db; readonly url: string }> {
    const url = await freshDatabase()
    const db = createDb(createPool({ url, connections: 12, name: 'keeper test', idleInTransactionMs: 0 }))
    await listMarket(db, spec)
    return { db, url }
  }

  static async open(spec: MarketSpec, clock: TestClock = standingClock()): Promise<MarketFixture> {
    const { db, url } = await MarketFixture.database(spec)
    return new MarketFixture(db, url, spec, clock)
  }

  async close(): Promise<void> {
    await this.#served?.stop()
    await this.db.destroy()
  }

  /** The variables by which a process reaches the fixture's engine. */
  async serve(): Promise<ServedEngine['env']> {
    this.#served ??= await ServedEngine.start(this.db, this.engine)
    return this.#served.env
  }

  async trader(name: string, free = '1000000'): Promise<Trader> {
    const wallet = new Wallet(id(name))
    const { user_id } = await this.db
      .insertInto('users')
      .values({ address: addressOf(wallet), created_at: 0 })
      .returning('user_id')
      .executeTakeFirstOrThrow()
    await withMirror(this.db)
      .insertInto('accounts')
      .values({ user_id, free: e18(free) })
      .execute()
    return { wallet, account: user_id as UserId }
  }

  /** The oracle says so now. */
  async report(ticks: number, observedAt = this.clock.value): Promise<void> {
    const price = priceOf(this.spec, ticks as Ticks)
    const row = {
      price,
      observed_at: observedAt,
      signatures: this.signReport(price, observedAt),
      received_at: observedAt,
    }
    await this.db
      .insertInto('oracle_reports')
      .values({ market_id: this.spec.marketId, ...row })
      .onConflict((conflict) => conflict.columns(['market_id', 'feed']).doUpdateSet(row))
      .execute()
  }

  /** A fixture with a chain puts the oracle's signature here. */
  signReport: (price: Price, observedAt: number) => string = () => '0x'

  order(placement: Placement): Order {
    const { by, side, steps, limit = 0, trigger = 0, leverage = 5, expiration = 0 } = placement
    const { type = limit === 0 ? 'MARKET' : 'LIMIT', reduceOnly = isAlwaysReduceOnly(type) } = placement
    return {
      marketId: this.spec.marketId,
      maker: addressOf(by.wallet),
      side,
      type,
      price: limit as Ticks,
      quantity: steps as Steps,
      trigger: trigger as Ticks,
      leverage,
      reduceOnly,
      expiration: expiration as Order['expiration'],
      salt: this.#salt++,
    }
  }

  /** Accepts the order as the api does, without its checks. Returns its id. */
  place(placement: Placement): Promise<string> {
    return this.#place(placement, () => {})
  }

  /** Accepts the order if its account can pay for it. */
  async placeCovered(placement: Placement): Promise<string | null> {
    const refuse = ({ free, reserved }: { free: bigint; reserved: bigint }, amount: bigint): void => {
      if (reserved + amount > free) throw new Uncovered()
    }
    return this.#place(placement, refuse).catch((err: unknown) => {
      if (err instanceof Uncovered) return null
      throw err
    })
  }

  async #place(
    placement: Placement,
    check: (funds: { free: bigint; reserved: bigint }, amount: bigint) => void,
  ): Promise<string> {
    const { by } = placement
    const order = this.order(placement)
    const hash = hashOrder(order, this.spec, keccak)
    const signature = `${(placement.signer ?? by.wallet).signMessageSync(getBytes(hash))}01`
    return this.db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(this.spec.marketId))
      const [funds] = await lockAccounts(tx, [by.account])
      const terms = await this.#reserve(tx, by, order, head.head + 1)
      if (funds !== undefined) check(funds, terms.amount)
      const orderId = `${this.spec.marketId}-${head.head + 1}`
      const { marketId: _market, reduceOnly, salt, ...fields } = order
      const told = {
        ...fields,
        order_id: orderId,
        user_id: by.account as number,
        signer: (placement.signer === undefined ? order.maker : addressOf(placement.signer)) as string,
        hash: hash as string,
        salt: Number(salt),
        reduce_only: reduceOnly,
        alive_until: aliveUntil(
          order.expiration,
          (placement.keyExpiresAt ?? null) as Seconds | null,
        ) as number,
        status: accepted(order).status,
        accepted_at: this.clock.value,
        openable: terms.openable as number,
        reserved_price: terms.reservedPrice as number,
      }
      await tx
        .insertInto('orders')
        .values({
          ...told,
          market_id: this.spec.marketId,
          seq: head.head + 1,
          signature,
          ...{ status_reason: null, note: null, closing_reason: null, partial_slot: null, ended_at: null },
          reserved: terms.amount,
        })
        .execute()
      await changeReserved(tx, new Map([[by.account, terms.amount]]))
      const reserved = terms.amount.toString()
      await appendRows(tx, head, [{ kind: 'order_placed', ...told, reserved, signature }])
      return orderId
    })
  }

  async #reserve(tx: Tx, by: Trader, order: Order, seq: number) {
    const position = await withMirror(tx)
      .selectFrom('positions')
      .select('matched_size')
      .where('user_id', '=', by.account)
      .where('market_id', '=', this.spec.marketId)
      .executeTakeFirst()
    const { price } = await tx
      .selectFrom('oracle_reports')
      .select('price')
      .where('market_id', '=', this.spec.marketId)
      .executeTakeFirstOrThrow()
    const reservedPrice = reservedPriceOf(this.spec, order, priceBand(this.spec, price as Price))
    const rows = await tx
      .selectFrom('orders')
      .selectAll()
      .where('user_id', '=', by.account)
      .where('market_id', '=', this.spec.marketId)
      .where('ended_at', 'is', null)
      .execute()
    const others = rows.map(toOpenOrder).filter(isReservable)
    const { side, leverage, reduceOnly } = order
    const mine = {
      seq: seq as never,
      side,
      leverage,
      reduceOnly,
      limit: order.price,
      remaining: order.quantity,
      reservedPrice,
    }
    const all = reservationsOf(this.spec, (position?.matched_size ?? 0) as Steps, [
      ...others.map(reservable),
      mine,
    ])
    const own = all.at(-1)
    return { openable: own?.openable ?? (0 as Steps), amount: own?.amount ?? (0n as Quote), reservedPrice }
  }

  /** Cancels as the api does. False where it cannot be cancelled any more. */
  async cancel(orderId: string): Promise<boolean> {
    return this.db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(this.spec.marketId))
      const order = (await this.orders(tx)).find((one) => one.orderId === orderId)
      if (order === undefined || !isClosable(order)) return false
      await lockAccounts(tx, [order.account])
      const { order: after, row } = leaveBook(order, 'USER_CANCELLED', this.clock.now())
      await updateOrders(tx, [after])
      await changeReserved(tx, new Map([[order.account, -order.reserved as Quote]]))
      await appendRows(tx, head, [row])
      return true
    })
  }

  async orders(from: Db | Tx = this.db) {
    const rows = await from.selectFrom('orders').selectAll().orderBy('seq').orderBy('order_id').execute()
    return rows.map(toOpenOrder)
  }

  async orderOf(orderId: string) {
    const order = (await this.orders()).find((one) => one.orderId === orderId)
    if (order === undefined) throw new Error(`no order ${orderId}`)
    return order
  }

  async rows<K extends string>(...kinds: readonly K[]) {
    const rows = await this.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', marketShard(this.spec.marketId))
      .orderBy('seq')
      .execute()
    // biome-ignore lint/suspicious/noExplicitAny: tests look into rows by name
    return rows.map(({ row }) => row as any).filter(({ kind }) => kinds.includes(kind))
  }

  async lease(name: string, owner = 'one'): Promise<Fence> {
    const fence = await createLeases(this.db, owner, 60_000).acquire(name)
    if (fence === null) throw new Error(`${name} is taken`)
    return fence
  }

  /** The database's clock is the fixture's. */
  readonly databaseTime = () => sql<number>`${this.clock.now()}::bigint`

  /** Queues the action, without a command that asks for it. */
  enqueue(build: BuildAction) {
    return this.engine.decide((draft, inputs) => enqueueOn(draft, inputs, this.spec.marketId, build))
  }

  /** Clock, head and rules for an engine on the fixture. */
  times(): AdoptingOptions {
    return {
      now: () => this.clock.now(),
      headTime: () => this.headTime(),
      rules: () => ({ ...RULES, kind: this.spec.kind }),
    }
  }

  /** Block time of the chain's head; null while no node responds. */
  headTime(): Millis | null {
    return this.clock.now()
  }

  turnPorts(): TurnPorts {
    return { engine: this.engine, headTime: () => this.headTime() }
  }
}
