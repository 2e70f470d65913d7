/**
 * The model's account of a run. It takes every transaction in the order in which the exchange did them, works out by itself what must come of
 * it, and compares that with what was written: each reservation, each trigger, each fill, each end with its reason. From outside come what
 * traders sent, what prices were said, and how the chain moved free balances; and whoever is said to have asked for something must have.
 */

import {
  ACCOUNTS_SHARD,
  type AccountsRow,
  type MarketRow,
  marketShard,
  type OrderPlaced,
  type PartSettled,
  type PositionChange,
} from '../../../domain/journal/journal-row.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { isConditional, type StatusReason } from '../../../domain/orders/order.ts'
import { reservedPriceOf } from '../../../domain/orders/reservation.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import type { Price, Quote, Steps } from '../../../domain/units.ts'
import type { ModelOrder } from '../../support/order-model-terms.ts'
import { Foresight } from './foresight.ts'
import type { MarketRecord } from './market-record.ts'
import type { Attempt, Paper, Sighting } from './paper.ts'
import type { Prices } from './prices.ts'
import { Sightings } from './sightings.ts'
import type { Entry, Transaction } from './witness.ts'

export interface Beginning {
  readonly markets: readonly MarketRecord[]
  /** By account. */
  readonly free: ReadonlyMap<number, bigint>
  readonly papers: ReadonlyMap<number, Paper>
  readonly prices: Prices
  readonly count: (name: string) => void
}

/** What traders were answered since the last time. */
interface Answers {
  readonly attempts: readonly Attempt[]
  readonly sightings: readonly Sighting[]
}

type Rows = readonly { readonly seq: number; readonly row: MarketRow }[]

interface Written {
  readonly at: number
  readonly rows: Rows
  /** Session keys that the same transaction revokes. */
  readonly keys: readonly string[]
}

type Ending = Extract<MarketRow, { readonly kind: 'order_ended' | 'order_ending' }>

/** Whatever ends orders without a batch. */
const BY_TIME: readonly StatusReason[] = ['EXPIRED', 'SIGNER_EXPIRED', 'NO_BATCH_IN_TIME']
const isEnding = (row: MarketRow): row is Ending => row.kind === 'order_ended' || row.kind === 'order_ending'

export class History {
  readonly free: Map<number, bigint>
  readonly #markets: ReadonlyMap<number, MarketRecord>
  readonly #papers: ReadonlyMap<number, Paper>
  readonly #prices: Prices
  readonly #count: (name: string) => void
  readonly #foresight: Foresight
  readonly #sightings: Sightings
  #wrong: string[] = []

  constructor({ markets, free, papers, prices, count }: Beginning) {
    this.free = new Map(free)
    this.#markets = new Map(markets.map((market) => [market.spec.marketId, market]))
    this.#papers = papers
    this.#prices = prices
    this.#count = count
    this.#foresight = new Foresight({ markets: this.#markets, prices, available: this.available, count })
    this.#sightings = new Sightings(this.#markets)
  }

  // ---------------------------------------------------------------------- what is asked

  market(marketId: number): MarketRecord {
    const market = this.#markets.get(marketId)
    if (market === undefined) throw new RangeError(`there is no market ${marketId} in this run`)
    return market
  }

  reserved = (account: number): bigint => this.#reservedBeside(null, account)
  available = (account: number): bigint => (this.free.get(account) ?? 0n) - this.reserved(account)

  #reservedBeside(market: MarketRecord | null, account: number): bigint {
    const others = [...this.#markets.values()].filter((other) => other !== market)
    return others.reduce((sum, { model }) => sum + model.reservedOf(account), 0n)
  }

  /** What the next auction would do, although there has been time enough for it. */
  due(now: number): string[] {
    return [...this.#markets.values()].flatMap(({ spec: { marketId }, model, reference }) => {
      const { clearing } = model.outcome({ now, oracle: this.#prices.now(marketId), reference })
      const wanted = clearing.fills.length + clearing.cancels.length
      return wanted === 0 ? [] : [`market ${marketId}: an auction would change ${wanted} orders`]
    })
  }

  // ---------------------------------------------------------------------- what happens

  /** Everything in these transactions, and in these answers, that should have been otherwise. */
  take(transactions: readonly Transaction[], { attempts, sightings }: Answers): string[] {
    this.#wrong = []
    this.#foresight.begin(attempts)
    this.#sightings.begin(sightings)
    for (const transaction of transactions) {
      this.#sightings.before(transaction.at)
      this.#wrong.push(...this.#foresight.before(transaction))
      this.#apply(transaction)
    }
    return [...this.#wrong, ...this.#foresight.end(), ...this.#sightings.end()]
  }

  #apply({ at, entries }: Transaction): void {
    const byShard = Map.groupBy(entries, ({ shard }) => shard)
    const keys = (byShard.get(ACCOUNTS_SHARD) ?? []).flatMap(({ row }) =>
      this.#applyAccounts(row as AccountsRow),
    )
    for (const market of this.#markets.values()) {
      const { marketId } = market.spec
      const rows = (byShard.get(marketShard(marketId)) ?? []) as Rows
      if (rows.length === 0 && keys.length === 0) continue
      this.#observe(market)
      const wrong = this.#applyMarket(market, { at, rows, keys })
      for (const { seq, row } of rows) market.write(seq, row)
      const where = `market ${marketId}, ${rows.map(nameOfRow).join(', ')}`
      this.#wrong.push(...[...wrong, ...market.differences()].map((what) => `${where}: ${what}`))
    }
    for (const account of this.#papers.keys())
      if (this.available(account) < 0n)
        this.#wrong.push(`account ${account} owes ${-this.available(account)}`)
  }

  /** What the model is told of balances: free is what other markets leave of it. */
  #observe(market: MarketRecord): void {
    const free = [...this.free].map(
      ([account, amount]) => [account, amount - this.#reservedBeside(market, account)] as const,
    )
    market.model.observe({ free: new Map(free), mined: new Map(market.mined) })
  }

  /** The keys that are revoked by it. */
  #applyAccounts(row: AccountsRow): string[] {
    if (row.kind === 'balance_changed') this.#credit(row.user_id, BigInt(row.free_delta))
    if (row.kind !== 'session_key_changed' || row.after?.revoked_at == null) return []
    this.#foresight.revoked.add(row.key)
    const wasAsked = [...this.#papers.values()].some(({ revoking }) => revoking.has(row.key))
    if (!wasAsked) this.#wrong.push(`nobody revoked ${row.key}`)
    return [row.key]
  }

  /** By what it writes, a transaction tells which part of the exchange it is of. */
  #applyMarket(market: MarketRecord, { at, rows, keys }: Written): string[] {
    const kinds = new Set(rows.map(({ row }) => row.kind))
    const endings = rows.map(({ row }) => row).filter(isEnding)
    const reasons = new Set(endings.map(({ reason }) => reason))
    if (kinds.has('prices_updated')) return this.#mark(market, rows)
    if (kinds.has('batch_cleared')) return this.#auction(market, rows)
    if (kinds.has('batch_voided')) return this.#voidBatches(market, rows)
    if (kinds.has('part_settled') || keys.length > 0) return this.#block(market, rows, keys)
    if (reasons.has('DEAD_MAN_SWITCH')) return this.#fire(market, endings)
    if (kinds.has('order_placed') || reasons.has('USER_CANCELLED')) return this.#command(market, at, rows)
    return endings.length > 0 ? this.#auction(market, rows) : []
  }

  // ---------------------------------------------------------------------- the api's commands

  #command(market: MarketRecord, at: number, rows: Rows): string[] {
    return rows.flatMap(({ seq, row }) => {
      if (row.kind === 'order_placed') return this.#place(market, seq, row)
      if (isEnding(row) && row.reason === 'USER_CANCELLED') return this.#cancel(market, at, row)
      return [`a command does not write ${row.kind}`]
    })
  }

  #cancel({ model, orders }: MarketRecord, at: number, row: Ending): string[] {
    const order = orders.get(row.order_id) as ModelOrder
    if (!model.isLive(order)) return [`cancels ${order.id}, ${order.status} already`]
    model.leave(order, 'USER_CANCELLED')
    const wasAsked = this.#papers.get(order.account)?.wasCancelling(order.id, at)
    return wasAsked ? [] : [`nobody was cancelling ${order.id}`]
  }

  #place(market: MarketRecord, seq: number, row: OrderPlaced): string[] {
    const { spec, model } = market
    const mine = this.#papers.get(row.user_id)?.byHash(row.hash)
    if (mine === undefined) return [`nobody sent ${row.hash}`]
    const { order, signer } = mine
    const placed = model.place(
      {
        ...{ id: row.order_id, account: row.user_id, signer, side: order.side, type: order.type },
        ...{ price: order.price, trigger: order.trigger, quantity: order.quantity, leverage: order.leverage },
        ...{ reduceOnly: order.reduceOnly, expiration: order.expiration, aliveUntil: row.alive_until },
        acceptedAt: row.accepted_at,
        status: isConditional(order.type) ? 'PENDING_TRIGGER' : 'OPEN',
        reservedPrice: reservedPriceOf(spec, order, priceBand(spec, this.#prices.now(spec.marketId))),
      },
      seq,
    )
    market.orders.set(placed.id, placed)
    const wrong: string[] = []
    const isOwn = signer === order.maker.toLowerCase()
    // A key outlives the test: it ends what never ends by itself.
    if (isOwn || order.expiration !== 0 ? row.alive_until !== order.expiration : row.alive_until === 0)
      wrong.push(`${row.order_id} lives until ${row.alive_until}, signed was ${order.expiration}`)
    const [expected, found] = [placed, { ...row, reservedPrice: row.reserved_price }].map(
      ({ openable, reservedPrice }) => `opens ${openable} at ${reservedPrice}`,
    )
    if (found !== expected) wrong.push(`${row.order_id} ${found}; the model: ${expected}`)
    return wrong
  }

  // ---------------------------------------------------------------------- the keeper

  #mark({ spec, model }: MarketRecord, rows: Rows): string[] {
    const first = rows[0]
    if (first?.row.kind !== 'prices_updated') return ['prices do not come first']
    const { mark_price, oracle_price, at } = first.row
    const oracle = BigInt(oracle_price) as Price
    const wrong = this.#prices.recent(spec.marketId).includes(oracle) ? [] : [`nobody said ${oracle}`]
    // A mark triggers only while a batch could run, then everything that it reaches.
    if (rows.some(({ row }) => row.kind === 'order_triggered'))
      model.trigger({ now: at, oracle }, BigInt(mark_price), first.seq)
    else if (model.reached(BigInt(mark_price)).length > 0) this.#count('marks without a batch')
    return wrong
  }

  #auction(market: MarketRecord, rows: Rows): string[] {
    const { model, spec, reference } = market
    const cleared = rows.map(({ row }) => row).find((row) => row.kind === 'batch_cleared') ?? null
    const endings = rows.map(({ row }) => row).filter(isEnding)
    const now = cleared?.as_of ?? (endings[0] as Ending).at
    model.expire(now)
    const ended = endings.filter(({ reason }) => !BY_TIME.includes(reason)).map(({ order_id }) => order_id)
    if (cleared === null && ended.length === 0) return []
    const recent = this.#prices.recent(spec.marketId)
    // Where nobody met, the row that would tell the price is not there.
    const explains = (oracle: Price): boolean => {
      const { clearing } = model.outcome({ now, oracle, reference })
      const ids = new Map(model.orders.map(({ rank, id }) => [rank, id]))
      return clearing.cancels.map(({ seq }) => ids.get(seq)).join() === ended.join()
    }
    const oracle = cleared ? (BigInt(cleared.oracle_price) as Price) : (recent.find(explains) ?? recent[0])
    const wrong = oracle !== undefined && recent.includes(oracle) ? [] : [`nobody said ${oracle}`]
    return [...wrong, ...market.hold({ now, oracle: oracle as Price }, cleared)]
  }

  #fire({ model }: MarketRecord, endings: readonly Ending[]): string[] {
    const accounts = Map.groupBy(endings, ({ user_id }) => user_id)
    return [...accounts].flatMap(([account, own]) => {
      const ended = own.map(({ order_id }) => order_id).sort()
      const isDoomed = (fireAt: number) => (order: ModelOrder) =>
        model.isLive(order) && order.account === account && order.acceptedAt <= fireAt
      const fires = this.#papers.get(account)?.possibleFires((own[0] as Ending).at) ?? []
      const explained = fires.find((fireAt) => {
        const doomed = model.orders.filter(isDoomed(fireAt)).map(({ id }) => id)
        return doomed.sort().join() === ended.join()
      })
      if (explained === undefined) return [`no switch of account ${account} explains the end of ${ended}`]
      model.leaveAll(isDoomed(explained), 'DEAD_MAN_SWITCH')
      return []
    })
  }

  #voidBatches({ model }: MarketRecord, rows: Rows): string[] {
    const voided = rows.flatMap(({ row }) => (row.kind === 'batch_voided' ? [row] : []))
    const waiting = model.queue.map(({ id }) => id).join()
    const batches = voided.map(({ batch_id }) => batch_id).join()
    const wrong = batches === waiting ? [] : [`voids ${batches}; the model waits for ${waiting}`]
    // Only time may fail a settlement here: the auction matches nothing that the chain refuses.
    for (const { why } of voided) if (why !== 'not mined in time') wrong.push(`a settlement failed: ${why}`)
    this.#count('voided')
    model.voidBatches(voided[0]?.at ?? 0, () => false)
    return wrong
  }

  // ---------------------------------------------------------------------- the chain

  /** What comes first in the block is done first: a key whose orders end before a part is mined was revoked before it. */
  #block(market: MarketRecord, rows: Rows, keys: readonly string[]): string[] {
    const { model } = market
    const revoke = () => model.leaveAll(({ signer }) => keys.includes(signer), 'SIGNER_REVOKED')
    if (rows[0] !== undefined && isEnding(rows[0].row)) revoke()
    const wrong = rows.flatMap(({ row }) => (row.kind === 'part_settled' ? this.#mine(market, row) : []))
    revoke()
    return wrong
  }

  #mine({ model, mined }: MarketRecord, row: PartSettled): string[] {
    const [batch] = model.queue
    const [expected, found] = [batch, { id: row.batch_id, price: row.price }].map(
      (one) => `batch ${one?.id} at ${one?.price}`,
    )
    const wrong = found === expected ? [] : [`${found} is mined; the model waits for ${expected}`]
    if (row.rollback || row.parts !== 1) wrong.push('the model knows of no such part')
    for (const { user_id, free_delta, from_pending } of row.fills)
      this.#credit(user_id, BigInt(free_delta) + BigInt(from_pending))
    const before = new Map(mined)
    for (const change of row.positions) mined.set(change.user_id, moved(mined.get(change.user_id), change))
    model.observe({ free: this.free, mined: before })
    model.mine({ free: this.free, mined: new Map(mined) })
    return wrong
  }

  #credit(account: number, delta: bigint): void {
    this.free.set(account, (this.free.get(account) ?? 0n) + delta)
  }
}

const moved = (
  { size, entryNotional, foldedMargin } = FLAT,
  { size_delta, entry_notional_delta, folded_margin_delta, leverage_after }: PositionChange,
): Position => ({
  size: (size + size_delta) as Steps,
  entryNotional: (entryNotional + BigInt(entry_notional_delta)) as Quote,
  foldedMargin: (foldedMargin + BigInt(folded_margin_delta)) as Quote,
  leverage: leverage_after,
})

const nameOfRow = ({ seq, row }: Entry | Rows[number]): string => `${seq} ${row.kind}`
