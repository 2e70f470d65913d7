/** Placements and cancels: check what needs no lock, wait for the market's transaction, answer. */
import type pg from 'pg'
import type { MarketSpec } from '../../domain/market.ts'
import type { Db } from '../../indexer/db/client.ts'
import type { Caller } from '../auth/caller.ts'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../market-directory.ts'
import type { Metrics } from '../metrics.ts'
import type { Clock, Reached } from '../ports.ts'
import { fillsOfOrder } from '../queries/fills.ts'
import type { CancelAnswer, Fill, PlaceOrderAnswer, PlaceOrderBody } from '../schemas/order.ts'
import { fillView } from '../views/fill.ts'
import { orderView } from '../views/order.ts'
import { balanceView } from '../views/position.ts'
import { createAnnouncer } from './announce.ts'
import { type Cancelled, type Command, keysOf, type Placed, type Waiting } from './commands.ts'
import { createGroupRunner, type GroupLog } from './group.ts'
import { createLane, type Lane } from './lane.ts'
import { parseOrder } from './parse-order.ts'
import { verifyOrder } from './verify.ts'

export interface Intake {
  place(caller: Caller, body: PlaceOrderBody): Promise<PlaceOrderAnswer>
  cancel(caller: Caller, orderHash: string, reason: string | null): Promise<CancelAnswer>
  /** Takes nothing more, and resolves when everything taken is answered. */
  stop(): Promise<void>
}

export interface IntakePorts {
  /** For the groups alone: a read must never wait for, or hold up, a placement. */
  readonly pool: pg.Pool
  readonly db: Db
  readonly clock: Clock
  readonly reached: Reached
  readonly markets: MarketDirectory
  readonly metrics: Metrics
  readonly log: GroupLog
}

export type IntakeOptions = Pick<
  Config,
  'chainId' | 'oracleMaxAgeMs' | 'chainMaxAgeMs' | 'maxGroup' | 'maxQueue' | 'commandTimeoutMs'
>

const MAX_DUPLICATE_FILLS = 1000

/** Fills exist only where the order is not new. */
async function fillsOf(db: Db, spec: MarketSpec, { isDuplicate, order }: Placed): Promise<Fill[]> {
  if (!isDuplicate || order.filled + order.settling === 0) return []
  const rows = await fillsOfOrder(db, order.order_id, { limit: MAX_DUPLICATE_FILLS, cursor: null })
  return rows.map((row) => fillView(spec, row))
}

function createLanes(ports: IntakePorts, options: IntakeOptions) {
  const lanes = new Map<number, Lane<Command>>()
  const announcer = createAnnouncer(ports.db)
  const run = createGroupRunner({ ...ports, announcer, observe: ports.metrics.group }, options)
  const { maxGroup, maxQueue } = options
  const laneOf = (marketId: number): Lane<Command> => {
    const known = lanes.get(marketId)
    if (known !== undefined) return known
    const lane = createLane<Command>({ run: (group) => run(marketId, group), keysOf, maxGroup, maxQueue })
    lanes.set(marketId, lane)
    return lane
  }
  ports.metrics.watch('api_commands_waiting', 'Commands that wait for a transaction', () =>
    [...lanes.values()].reduce((sum, lane) => sum + lane.waiting, 0),
  )
  const drained = async (): Promise<void> => {
    await Promise.all([...lanes.values()].map((lane) => lane.drained()))
    await announcer.drained()
  }
  return { laneOf, drained }
}

/** The market of an order, from its hash alone: hashes are placed here mostly, so the last ones are remembered. */
function createHashIndex(db: Db) {
  const recent = new Map<string, number>()
  const SIZE = 100_000
  return {
    remember(hash: string, marketId: number): void {
      if (recent.size >= SIZE) recent.delete(recent.keys().next().value as string)
      recent.set(hash, marketId)
    },
    async marketOf(hash: string): Promise<number> {
      const known = recent.get(hash)
      if (known !== undefined) return known
      const row = await db
        .selectFrom('orders')
        .select('market_id')
        .where('hash', '=', hash)
        .executeTakeFirst()
      if (row === undefined) throw new ApiError('ORDER_NOT_FOUND', { field: 'order_hash', received: hash })
      return row.market_id
    },
  }
}

export function createIntake(ports: IntakePorts, options: IntakeOptions): Intake {
  const { db, clock, markets, metrics } = ports
  const lanes = createLanes(ports, options)
  const hashes = createHashIndex(db)
  let isStopping = false

  const enqueue = <Result>(
    spec: MarketSpec,
    commandOf: (waiting: Waiting<Result>) => Command,
    userId: number,
  ): Promise<Result> =>
    new Promise((resolve, reject) => {
      if (isStopping) throw new ApiError('SHUTTING_DOWN', {}, '1')
      const waiting = { spec, userId, arrivedAt: clock.now(), resolve, reject }
      lanes.laneOf(spec.marketId).push(commandOf(waiting))
    })

  const counted = async <Value>(kind: 'place' | 'cancel', work: () => Promise<Value>): Promise<Value> => {
    try {
      const value = await work()
      metrics.command(kind, 'accepted')
      return value
    } catch (error) {
      metrics.command(kind, error instanceof ApiError ? error.code : 'INTERNAL')
      throw error
    }
  }

  const place: Intake['place'] = async ({ userId, address }, body) => {
    const spec = await markets.byId(Number(body.market_id))
    const order = await verifyOrder(spec, parseOrder(spec, address, body), body.signature, markets.all)
    const placed = await enqueue<Placed>(spec, (waiting) => ({ kind: 'place', order, ...waiting }), userId)
    hashes.remember(placed.order.hash, spec.marketId)
    return {
      order: orderView(spec, placed.order),
      fills: await fillsOf(db, spec, placed),
      is_duplicate: placed.isDuplicate,
      balance: balanceView(placed.balance),
      read_after: placed.read_after,
    }
  }

  const cancel: Intake['cancel'] = async ({ userId }, hash, reason) => {
    const spec = await markets.byId(await hashes.marketOf(hash))
    const result = await enqueue<Cancelled>(
      spec,
      (waiting) => ({ kind: 'cancel', hash, reason, ...waiting }),
      userId,
    )
    const { cancelled, isDuplicate, order, read_after } = result
    return { cancelled, is_duplicate: isDuplicate, order: orderView(spec, order), read_after }
  }

  return {
    place: (caller, body) => counted('place', () => place(caller, body)),
    cancel: (caller, hash, reason) => counted('cancel', () => cancel(caller, hash, reason)),
    async stop() {
      isStopping = true
      await lanes.drained()
    },
  }
}
