/**
 * Applies every transaction of a run to the model, in the order of the exchange, and compares the result with the journal rows that the
 * transaction wrote: each reservation, trigger, fill, and end with its reason. The inputs are the traders' requests, the published prices,
 * and the chain's changes of free balances. Every change that a request caused must have a request in the traders' notes.
 */

import { MAX_ORDERS_PER_TURN } from '../../../domain/auction/turn-bound.ts'
import type { AccountsRow } from '../../../domain/journal/accounts-row.ts'
import {
  ACCOUNTS_SHARD,
  type MarketRow,
  marketShard,
  type OrderPlaced,
} from '../../../domain/journal/journal-row.ts'
import { priceBand } from '../../../domain/market/band.ts'
import { isConditional, type StatusReason } from '../../../domain/orders/order.ts'
import { reservedPriceOf } from '../../../domain/orders/reservation.ts'
import type { Address, FundingIndex, Price } from '../../../domain/units.ts'
import type { ModelOrder } from '../../support/order-model-terms.ts'
import type { MarketRecord } from './market-record.ts'
import { isFaultOfChain, MinedRows } from './mined-rows.ts'
import { Observations } from './observations.ts'
import { PlacementPrediction } from './placement-prediction.ts'
import type { Prices } from './prices.ts'
import { signedWei } from './settled-rows.ts'
import type { Observation, PlacementAttempt, TraderNotes } from './trader-notes.ts'
import type { Entry, Transaction } from './transaction-recorder.ts'
import type { UnseenTime } from './unseen-chain.ts'

export interface HistoryOptions {
  readonly markets: readonly MarketRecord[]
  /** By account. */
  readonly free: ReadonlyMap<number, bigint>
  /** Of all accounts. */
  readonly addresses: ReadonlyMap<number, Address>
  readonly notes: ReadonlyMap<number, TraderNotes>
  readonly prices: Prices
  readonly count: (name: string) => void
}

/** What happened outside the journal since the last call. */
interface Outside {
  /** The responses that traders received. */
  readonly attempts: readonly PlacementAttempt[]
  readonly observations: readonly Observation[]
  readonly unseen: readonly UnseenTime[]
  /** The index that the keeper used, by `<market> <batch>`; 0 if it is missing. */
  readonly funding: ReadonlyMap<string, bigint>
  /** Of each legal deleveraging, by `<market> <number in the queue>`. */
  readonly indexes: ReadonlyMap<string, FundingIndex>
}

type Rows = readonly { readonly seq: number; readonly row: MarketRow }[]

interface Written {
  readonly at: number
  readonly rows: Rows
  /** Session keys that the transaction revokes. */
  readonly keys: readonly string[]
}

type Ending = Extract<MarketRow, { readonly kind: 'order_ended' | 'order_ending' }>

/** Reasons that end orders by time. */
const BY_TIME: readonly StatusReason[] = ['EXPIRED', 'SIGNER_EXPIRED', 'NO_BATCH_IN_TIME']
/** Largest difference between a time that the keeper reads and the time at which the database writes it: drift, and waits for locks. */
const AHEAD_MS = 250
const BEHIND_MS = 30_000
const isEnding = (row: MarketRow): row is Ending => row.kind === 'order_ended' || row.kind === 'order_ending'

export class History {
  readonly free: Map<number, bigint>
  readonly #markets: ReadonlyMap<number, MarketRecord>
  readonly #notes: ReadonlyMap<number, TraderNotes>
  readonly #prices: Prices
  readonly #count: (name: string) => void
  readonly #predictions: PlacementPrediction
  readonly #observations: Observations
  #funding: Outside['funding'] = new Map()
  readonly #mined: MinedRows
  #problems: string[] = []

  constructor({ markets, free, addresses, notes, prices, count }: HistoryOptions) {
    this.free = new Map(free)
    this.#markets = new Map(markets.map((market) => [market.spec.marketId, market]))
    this.#notes = notes
    this.#prices = prices
    this.#count = count
    this.#mined = new MinedRows({ free: this.free, addresses, count })
    this.#predictions = new PlacementPrediction({
      markets: this.#markets,
      prices,
      available: this.available,
      count,
    })
    this.#observations = new Observations(this.#markets)
  }

  // ---------------------------------------------------------------------- queries

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

  /** One line per market in which the next auction would change orders. */
  overdue(now: number): string[] {
    return [...this.#markets.values()].flatMap(({ spec: { marketId }, model }) => {
      const oracle = this.#prices.now(marketId)
      const { clearing } = model.outcome({ now, oracle, standing: model.newest })
      const wanted = clearing.fills.length + clearing.cancels.length
      return wanted === 0 ? [] : [`market ${marketId}: an auction would change ${wanted} orders`]
    })
  }

  // ---------------------------------------------------------------------- transactions

  /** Applies the transactions and returns one line per difference from the model, in rows and in responses. */
  apply(transactions: readonly Transaction[], outside: Outside): string[] {
    const { attempts, observations, unseen } = outside
    this.#problems = []
    this.#funding = outside.funding
    this.#mined.indexes = outside.indexes
    this.#predictions.begin(attempts, unseen)
    this.#observations.begin(observations)
    for (const transaction of transactions) {
      this.#observations.before(transaction.at)
      this.#problems.push(...this.#predictions.before(transaction))
      this.#apply(transaction)
    }
    return [...this.#problems, ...this.#predictions.end(), ...this.#observations.end()]
  }

  /** No fork of a later round takes back what has ended by now. */
  endRound(): void {
    for (const market of this.#markets.values()) market.forgetEnded()
  }

  #apply({ at, entries, touches }: Transaction): void {
    for (const touch of touches) this.#markets.get(touch.market_id)?.touch(touch)
    const byShard = Map.groupBy(entries, ({ shard }) => shard)
    const keys = (byShard.get(ACCOUNTS_SHARD) ?? []).flatMap(({ row }) =>
      this.#applyAccounts(row as AccountsRow),
    )
    for (const market of this.#markets.values()) {
      const { marketId } = market.spec
      const rows = (byShard.get(marketShard(marketId)) ?? []) as Rows
      if (rows.length === 0 && keys.length === 0) continue
      this.#observe(market)
      const problems = this.#applyMarket(market, { at, rows, keys })
      for (const { seq, row } of rows) market.write(seq, row)
      const where = `market ${marketId}, ${rows.map(nameOfRow).join(', ')}`
      this.#problems.push(...[...problems, ...market.differences()].map((what) => `${where}: ${what}`))
    }
    for (const account of this.#notes.keys())
      if (this.available(account) < 0n && !this.#mined.areCreditsMissing)
        this.#problems.push(
          `account ${account} has reserved ${-this.available(account)} more than its free balance`,
        )
  }

  /** Sets the model's balances: an account's free balance less its reservations in other markets. */
  #observe(market: MarketRecord): void {
    const free = [...this.free].map(
      ([account, amount]) => [account, amount - this.#reservedBeside(market, account)] as const,
    )
    market.model.observe({ free: new Map(free), mined: new Map(market.mined) })
  }

  /** Returns the session keys that the row revokes. */
  #applyAccounts(row: AccountsRow): string[] {
    if (row.kind === 'balance_changed') this.#mined.credit(row.user_id, signedWei(row, row.free_delta))
    if (row.kind !== 'session_key_changed' || row.after?.revoked_at == null) return []
    this.#predictions.revoked.add(row.key)
    const wasRequested = [...this.#notes.values()].some(({ revoking }) => revoking.has(row.key))
    if (!wasRequested) this.#problems.push(`no trader revoked ${row.key}`)
    return [row.key]
  }

  /** The kinds of rows identify the part of the exchange that wrote the transaction. */
  #applyMarket(market: MarketRecord, { at, rows, keys }: Written): string[] {
    const kinds = new Set(rows.map(({ row }) => row.kind))
    const endings = rows.map(({ row }) => row).filter(isEnding)
    const reasons = new Set(endings.map(({ reason }) => reason))
    if (kinds.has('prices_updated')) return this.#mark(market, rows)
    if (kinds.has('liquidation_changed')) return this.#liquidate(market, rows)
    if (kinds.has('batch_cleared')) return this.#auction(market, at, rows)
    if (kinds.has('batch_voided')) return this.#voidBatches(market, rows)
    if (kinds.has('part_settled') || kinds.has('positions_moved') || keys.length > 0)
      return this.#block(market, rows, keys)
    if (reasons.has('DEAD_MAN_SWITCH')) return this.#fireSwitch(market, endings)
    if (kinds.has('order_placed') || reasons.has('USER_CANCELLED')) return this.#command(market, at, rows)
    return endings.length > 0 ? this.#auction(market, at, rows) : this.#dropped(market, rows)
  }

  // ---------------------------------------------------------------------- the api's commands

  #command(market: MarketRecord, at: number, rows: Rows): string[] {
    return rows.flatMap(({ seq, row }) => {
      if (row.kind === 'order_placed') return this.#place(market, seq, row)
      if (isEnding(row) && row.reason === 'USER_CANCELLED') return this.#cancel(market, at, row)
      return [`a command of the api must not write ${row.kind}`]
    })
  }

  #cancel({ model, orders }: MarketRecord, at: number, row: Ending): string[] {
    const order = orders.get(row.order_id) as ModelOrder
    if (!model.isLive(order)) return [`cancels ${order.id}, which is ${order.status}`]
    model.leave(order, 'USER_CANCELLED')
    const wasRequested = this.#notes.get(order.account)?.wasCancelling(order.id, at)
    return wasRequested ? [] : [`no request was cancelling ${order.id}`]
  }

  #place(market: MarketRecord, seq: number, row: OrderPlaced): string[] {
    const { spec, model } = market
    const sentOrder = this.#notes.get(row.user_id)?.byHash(row.hash)
    if (sentOrder === undefined) return [`no trader sent ${row.hash}`]
    const { order, signer } = sentOrder
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
    const problems: string[] = []
    const isOwn = signer === order.maker.toLowerCase()
    // `alive_until` is the order's own expiration, or the session key's if the order has none. The keys outlive the test.
    if (isOwn || order.expiration !== 0 ? row.alive_until !== order.expiration : row.alive_until === 0)
      problems.push(
        `${row.order_id} is alive until ${row.alive_until}; signed expiration: ${order.expiration}`,
      )
    const [expected, found] = [placed, { ...row, reservedPrice: row.reserved_price }].map(
      ({ openable, reservedPrice }) => `opens ${openable} at ${reservedPrice}`,
    )
    if (found !== expected) problems.push(`${row.order_id} ${found}; the model: ${expected}`)
    return problems
  }

  // ---------------------------------------------------------------------- the keeper

  #mark({ spec, model }: MarketRecord, rows: Rows): string[] {
    const first = rows[0]
    if (first?.row.kind !== 'prices_updated') return ['the first row must be prices_updated']
    const { mark_price, oracle_price, at } = first.row
    const oracle = BigInt(oracle_price) as Price
    const problems = this.#prices.recent(spec.marketId).includes(oracle)
      ? []
      : [`price ${oracle} was not published`]
    // A mark price triggers orders only while a batch may run, and then all that it reaches.
    if (rows.some(({ row }) => row.kind === 'order_triggered'))
      model.trigger({ now: at, oracle }, BigInt(mark_price), first.seq)
    else if (model.reached(BigInt(mark_price)).length > 0) this.#count('marks without a batch')
    return problems
  }

  #auction(market: MarketRecord, at: number, rows: Rows): string[] {
    const { model, spec } = market
    const protection = rows.map(({ row }) => row).find((row) => row.kind === 'orders_protected')
    // Standing orders matter to market orders only, and an auction that fills or ends any has this row.
    const standing = protection?.standing_seq ?? 0
    const cleared = rows.map(({ row }) => row).find((row) => row.kind === 'batch_cleared') ?? null
    const endings = rows.map(({ row }) => row).filter(isEnding)
    const now = cleared?.as_of ?? (endings[0] as Ending).at
    // Orders expire by the clock, which can be ahead of the batch's `asOf`.
    const late = endings.filter(({ reason }) => BY_TIME.includes(reason)).map(({ order_id }) => order_id)
    const isBounded = late.length >= MAX_ORDERS_PER_TURN
    model.expire(endings[0]?.at ?? now, ({ id }) => !isBounded || late.includes(id))
    const ended = endings.filter(({ reason }) => !BY_TIME.includes(reason)).map(({ order_id }) => order_id)
    const wrongTimes = [now, ...endings.map(({ at }) => at)].filter(
      (time) => time > at + AHEAD_MS || time < at - BEHIND_MS,
    )
    const problems = wrongTimes.map((time) => `a time of the auction is ${time - at} ms after the database's`)
    if (late.length > MAX_ORDERS_PER_TURN) problems.push(`${late.length} orders end by time in one turn`)
    if (cleared !== null) model.fundingIndex = this.#funding.get(`${spec.marketId} ${cleared.batch_id}`) ?? 0n
    if (cleared === null && ended.length === 0) return problems
    const recent = this.#prices.recent(spec.marketId)
    // Without a match there is no row with the oracle price, so it is the recent price that explains the cancels.
    const explains = (oracle: Price): boolean => {
      const { clearing } = model.outcome({ now, oracle, standing })
      const ids = new Map(model.orders.map(({ rank, id }) => [rank, id]))
      return clearing.cancels.map(({ seq }) => ids.get(seq)).join() === ended.join()
    }
    for (const { order_id } of cleared?.fills ?? [])
      if (market.orders.get(order_id)?.forced) this.#count('forced fills')
    const source = cleared ?? protection
    const oracle = source ? (BigInt(source.oracle_price) as Price) : (recent.find(explains) ?? recent[0])
    if (oracle === undefined || !recent.includes(oracle)) problems.push(`price ${oracle} was not published`)
    if (protection && (standing < market.lastBatchHead || standing > market.written))
      problems.push(
        `orders stand up to ${standing}, which is not from ${market.lastBatchHead} to ${market.written}`,
      )
    return [...problems, ...market.compareAuction({ now, oracle: oracle as Price, standing }, cleared)]
  }

  #liquidate({ liquidations, orders }: MarketRecord, rows: Rows): string[] {
    for (const { row } of rows) if (row.kind === 'liquidation_changed') this.#count(`liquidation ${row.step}`)
    try {
      const seqs = new Map(rows.map(({ seq, row }) => [row, seq]))
      const placed = liquidations.apply([...seqs.keys()], (row) => seqs.get(row) as number)
      for (const order of placed) orders.set(order.id, order)
      return []
    } catch (error) {
      return [`${(error as Error).message}`]
    }
  }

  #fireSwitch({ model }: MarketRecord, endings: readonly Ending[]): string[] {
    const accounts = Map.groupBy(endings, ({ user_id }) => user_id)
    return [...accounts].flatMap(([account, own]) => {
      const ended = own.map(({ order_id }) => order_id).sort()
      const isCovered = (fireAt: number) => (order: ModelOrder) =>
        model.isLive(order) && order.account === account && order.acceptedAt <= fireAt
      const fires = this.#notes.get(account)?.possibleFires((own[0] as Ending).at) ?? []
      const explained = fires.find((fireAt) => {
        const covered = model.orders.filter(isCovered(fireAt)).map(({ id }) => id)
        return covered.sort().join() === ended.join()
      })
      if (explained === undefined)
        return [`no dead-man switch of account ${account} explains the end of ${ended}`]
      model.leaveAll(isCovered(explained), 'DEAD_MAN_SWITCH')
      return []
    })
  }

  #voidBatches(market: MarketRecord, rows: Rows): string[] {
    const { model } = market
    const voided = rows.flatMap(({ row }) => (row.kind === 'batch_voided' ? [row] : []))
    const waiting = model.queue.map(({ id }) => id).join()
    const batches = voided.map(({ batch_id }) => batch_id).join()
    const problems = batches === waiting ? [] : [`voids ${batches}; the model waits for ${waiting}`]
    for (const { why } of voided) if (!isFaultOfChain(why)) problems.push(`a batch was voided: ${why}`)
    this.#count(`voided, ${(voided[0]?.why ?? '').split('(')[0]}`)
    for (const { batch_id } of voided) this.#mined.void(market, batch_id)
    model.voidBatches(voided[0]?.at ?? 0, () => false)
    return [...problems, ...this.#dropped(market, rows)]
  }

  #dropped(market: MarketRecord, rows: Rows): string[] {
    return rows.flatMap(({ row }) => (row.kind === 'action_dropped' ? this.#mined.drop(market, row) : []))
  }

  // ---------------------------------------------------------------------- the chain

  /** Rows keep the order of the block: if orders of a revoked key end before a part's row, the revocation came first. */
  #block(market: MarketRecord, rows: Rows, keys: readonly string[]): string[] {
    const { model } = market
    const revoke = () => model.leaveAll(({ signer }) => keys.includes(signer), 'SIGNER_REVOKED')
    if (rows[0] !== undefined && isEnding(rows[0].row)) revoke()
    const problems = rows.flatMap(({ row }) => {
      if (row.kind === 'part_settled') return this.#mined.settle(market, row)
      return row.kind === 'positions_moved' ? this.#mined.move(market, row) : []
    })
    revoke()
    return problems
  }
}

const nameOfRow = ({ seq, row }: Entry | Rows[number]): string => `${seq} ${row.kind}`
