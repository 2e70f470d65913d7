/**
 * Accepts an adjustment, by the engine or by one transaction under the locks of its market and its account. Position and balance are final there, because from
 * its commit on the account takes part in no batch and no action of the market.
 */
import { sql } from 'kysely'
import { changeReserved, lockFunds } from '../../db/accounts.ts'
import {
  type AttemptRow,
  findByDigest,
  findInFlight,
  insertAttempt,
  isNonceTaken,
} from '../../db/adjustments.ts'
import type { Db, Tx } from '../../db/client.ts'
import { loadFunding } from '../../db/funding.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { hasLiveLease } from '../../db/leases.ts'
import { CLOSABLE, endOrders, toOpenOrder } from '../../db/orders.ts'
import { loadPositions, matchedPosition } from '../../db/positions.ts'
import { ADJUSTMENT_LANE } from '../../db/relayers.ts'
import { TERMS_SQL, type TermsColumns, toMarketTerms } from '../../db/terms.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { type TermsInForce, termsAt } from '../../domain/market/in-force.ts'
import { closeOrders } from '../../domain/orders/close-orders.ts'
import type { OrderPlan } from '../../domain/orders/order-changes.ts'
import { admitAdjustment, FAILURE_PAUSE } from '../../domain/positions/adjustment-admission.ts'
import { isLeverage, kindOf } from '../../domain/positions/adjustment-attempt.ts'
import { FLAT } from '../../domain/positions/position.ts'
import { fundingIndexAt } from '../../domain/prices/funding-state.ts'
import type { Address, Millis, Price, Quote, UserId } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Caller } from '../auth/caller.ts'
import type { FreshnessLimits } from '../commands/place.ts'
import type { EngineCalls } from '../engine-reply.ts'
import { ApiError } from '../errors.ts'
import { prepareByEngine } from './engine-prepare.ts'
import type { AdjustmentRequest } from './parse.ts'
import { refusalError } from './refusals.ts'
import { checkSigner } from './signer.ts'

export interface PreparePorts {
  readonly db: Db
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-adjustment-prepared'>
  /** Decides and stores the attempts; null: this process does. */
  readonly engine: EngineCalls | null
}

export interface PrepareOptions extends FreshnessLimits {
  readonly chainId: number
}

/** Most orders that a change of leverage cancels: the most that an account can have in a market. */
const MOST_CANCELS = 500

/** The attempt of the request: a new one, or the one that the same request has prepared before. Throws an ApiError if it is refused. */
export async function prepare(
  ports: PreparePorts,
  options: PrepareOptions,
  caller: Caller,
  request: AdjustmentRequest,
): Promise<AttemptRow> {
  const { db, engine } = ports
  const { marketId } = request.spec
  const known = await findByDigest(db, marketId, request.digest)
  if (known !== undefined) return known
  const attempt = await (engine === null
    ? store(ports, options, caller, request)
    : prepareByEngine(db, engine, caller, request))
  ports.killPoint('after-adjustment-prepared')
  return attempt
}

const store = (
  ports: PreparePorts,
  options: PrepareOptions,
  caller: Caller,
  request: AdjustmentRequest,
): Promise<AttemptRow> =>
  ports.db.transaction().execute(async (tx) => {
    const { marketId } = request.spec
    const head = await lockShard(tx, marketShard(marketId))
    const repeated = await findByDigest(tx, marketId, request.digest)
    if (repeated !== undefined) return repeated
    // An attempt keeps its account out of batches and liquidations, so none is accepted that would not be executed.
    if (!(await hasLiveLease(tx, ADJUSTMENT_LANE))) throw new ApiError('ADJUSTMENTS_UNAVAILABLE', {}, '5')
    await insert(tx, { ...ports, ...options, caller, request, head })
    return (await findByDigest(tx, marketId, request.digest)) as AttemptRow
  })

interface Scope extends PreparePorts, PrepareOptions {
  readonly caller: Caller
  readonly request: AdjustmentRequest
  readonly head: Awaited<ReturnType<typeof lockShard>>
}

async function insert(tx: Tx, { clock, caller, request, head, ...options }: Scope): Promise<void> {
  const { spec, digest, nonce, signed } = request
  const { marketId } = spec
  const { userId, address } = caller
  const account = userId as UserId
  const funds = (await lockFunds(tx, new Set([account]))).get(account)
  const now = clock.now()
  const open = await findInFlight(tx, marketId, userId)
  if (open !== undefined) {
    throw new ApiError(
      'ADJUSTMENT_IN_FLIGHT',
      { adjustment_id: open.adjustment_id, status: open.status },
      '1',
    )
  }
  await checkSigner(tx, { account: address, ...signed, digest }, now)
  const market = await readMarket(tx, { ...request, userId, address }, options, now)
  const cancels = isLeverage(signed.adjustment) ? await cancelsOf(tx, marketId, userId, now) : NO_CANCELS
  const released = cancels.reserved.get(account) ?? 0n
  const position =
    (await loadPositions(tx, marketId, new Set([userId]), matchedPosition)).get(account) ?? FLAT
  const verdict = admitAdjustment({
    ...{ ...signed, ...market, nonce, now, position },
    available: ((funds?.free ?? 0n) - (funds?.reserved ?? 0n) - released) as Quote,
    isNonceUsed: await isNonceTaken(tx, { marketId, userId, nonce }),
  })
  if (!verdict.ok) throw refusalError(verdict.refusal, spec)
  await endOrders(tx, cancels.orders)
  await changeReserved(tx, cancels.reserved)
  const seq = head.head + cancels.rows.length + 1
  const row = await insertAttempt(tx, {
    ...{ adjustmentId: `adj-${marketId}-${seq}`, marketId, userId, digest, nonce, signed, seq, at: now },
    ...{ kind: kindOf(signed.adjustment), ...verdict.value, cancelledOrders: cancels.orders.length },
  })
  await appendRows(tx, head, [...cancels.rows, row])
}

const NO_CANCELS: OrderPlan = { orders: [], reserved: new Map(), rows: [] }

/** Ends the account's live orders in the market. */
async function cancelsOf(tx: Tx, marketId: number, userId: number, now: Millis): Promise<OrderPlan> {
  const rows = await tx
    .selectFrom('orders')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('user_id', '=', userId)
    .where(CLOSABLE)
    .orderBy('seq')
    .limit(MOST_CANCELS)
    .execute()
  return closeOrders(rows.map(toOpenOrder), 'USER_CANCELLED', now)
}

interface MarketRow extends TermsColumns {
  readonly oracle_price: bigint | null
  readonly oracle_at: number | null
  readonly chain_seen_at: number | null
  readonly is_liquidating: boolean
  readonly failed_at: number | null
  readonly minimum: bigint
}

interface MarketState {
  readonly terms: TermsInForce
  readonly fundingIndex: ReturnType<typeof fundingIndexAt>
  readonly oracle: Price | null
  readonly isLiquidating: boolean
  readonly failedAt: Millis | null
  readonly minimumNonce: bigint
}

async function readMarket(
  tx: Tx,
  { spec, userId, address }: Pick<AdjustmentRequest, 'spec'> & { userId: number; address: Address },
  { chainId, oracleMaxAgeMs, chainMaxAgeMs }: PrepareOptions,
  now: Millis,
): Promise<MarketState> {
  const { marketId } = spec
  const { rows } = await sql<MarketRow>`
    select ${sql.raw(TERMS_SQL)}, r.price as oracle_price, r.observed_at as oracle_at,
      (select completed_at from chain_progress where chain_id = ${chainId}) as chain_seen_at,
      exists (select from liquidations where market_id = m.market_id and user_id = ${userId}) as is_liquidating,
      (
        select max(a.updated_at) from adjustment_attempts a where a.market_id = m.market_id and a.user_id = ${userId}
          and a.status = 'ABORTED' and a.relayer_nonce is not null and a.updated_at > ${now - FAILURE_PAUSE}::bigint
      ) as failed_at,
      coalesce((
        select minimum from margin_nonce_floors where market_id = m.market_id and account = ${address}
      ), 0) as minimum
    from markets m left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index' and r.status <> 'halted'
    where m.market_id = ${marketId}
  `.execute(tx)
  const row = rows[0] as MarketRow
  const { chain_seen_at: seenAt, oracle_at: oracleAt } = row
  if (seenAt === null || now - seenAt > chainMaxAgeMs)
    throw new ApiError('CHAIN_UNSEEN', { last_seen_ms: seenAt }, '1')
  const terms = termsAt(spec, toMarketTerms(row, spec), now)
  const maxAge = Math.min(oracleMaxAgeMs, terms.reports?.maxAge ?? oracleMaxAgeMs)
  const isFresh = oracleAt !== null && now - oracleAt <= maxAge
  return {
    ...{ terms, isLiquidating: row.is_liquidating, minimumNonce: row.minimum },
    failedAt: row.failed_at as Millis | null,
    fundingIndex: fundingIndexAt(await loadFunding(tx, marketId), now),
    oracle: isFresh ? (row.oracle_price as Price) : null,
  }
}
