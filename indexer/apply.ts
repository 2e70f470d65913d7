/** Applies the facts of one block to the write side, and takes them back. The caller's transaction holds the chain's progress. */
import { sql } from 'kysely'
import { invariant } from '../domain/invariant.ts'
import {
  ACCOUNTS_SHARD,
  type BalanceChanged,
  type LogRow,
  marketShard,
  type PartSettled,
} from '../domain/log.ts'
import { step } from '../domain/order-state.ts'
import type { Address } from '../domain/units.ts'
import type { Tx } from './db/client.ts'
import { appendRows, lockAccounts, lockShards, type ShardHead } from './db/shard-log.ts'
import { createUsers, findUsers } from './db/users.ts'
import type { ChainFact, LedgerMoved, PartMined, SaltsCancelled } from './facts.ts'
import type { Chain, ChainBlock, ChainLog } from './ports.ts'
import { type Mismatch, reconcile } from './reconcile.ts'
import { type Movement, movementOf, settlePart, takeBackPart } from './settle-part.ts'
import { confirmFills, expectationOf, loadOrders, loadPart, writePart } from './write-part.ts'

export interface BlockFact {
  readonly log: ChainLog
  readonly fact: ChainFact
}

/** Where the fact stands in the log; null where it became no row. */
export interface FactPlace {
  readonly shard: string
  readonly seq: number
}

export interface FoundMismatch extends Mismatch {
  readonly marketId: number
  readonly txHash: string
  readonly batchId: number | null
  readonly part: number | null
}

export interface Applied {
  /** Of each fact, in order. */
  readonly places: readonly (FactPlace | null)[]
  readonly mismatches: readonly FoundMismatch[]
}

/** Shards under lock, and the rows that are to be appended to each. */
class Shards {
  readonly #heads: ReadonlyMap<string, ShardHead>
  readonly #rows = new Map<string, LogRow[]>()

  private constructor(heads: ReadonlyMap<string, ShardHead>) {
    this.#heads = heads
  }

  static async lock(tx: Tx, shards: Iterable<string>): Promise<Shards> {
    return new Shards(await lockShards(tx, [...shards]))
  }

  append(shard: string, row: LogRow): FactPlace {
    const head = this.#heads.get(shard)
    invariant(head !== undefined, `rows are appended to ${shard} under its lock`)
    const rows = this.#rows.get(shard) ?? []
    this.#rows.set(shard, rows)
    rows.push(row)
    return { shard, seq: head.head + rows.length }
  }

  async write(tx: Tx): Promise<void> {
    for (const [shard, rows] of this.#rows) await appendRows(tx, this.#heads.get(shard) as ShardHead, rows)
  }
}

/** Everything that the facts of one block share. */
interface Context {
  readonly tx: Tx
  readonly block: ChainBlock
  readonly chain: Pick<Chain, 'position'>
  readonly shards: Shards
  readonly users: ReadonlyMap<Address, number>
  readonly mismatches: FoundMismatch[]
}

const makersOf = ({ settled }: PartMined): Address[] => settled.fills.map(({ maker }) => maker)

function accountsOf({ fact }: BlockFact): Address[] {
  if (fact.kind === 'ledger_moved') return [fact.account]
  return fact.kind === 'part_mined' ? makersOf(fact) : []
}

/** A stranger who cancels on the chain becomes no user by it. */
const cancellersOf = ({ fact }: BlockFact): Address[] => (fact.kind === 'salts_cancelled' ? [fact.maker] : [])

function shardsOf({ fact }: BlockFact): string[] {
  if (fact.kind === 'ledger_moved') return [ACCOUNTS_SHARD]
  if (fact.kind === 'part_mined' || fact.kind === 'salts_cancelled') return [marketShard(fact.spec.marketId)]
  return fact.kind === 'undecodable' && fact.spec ? [marketShard(fact.spec.marketId)] : []
}

/** `stopped`: shards that the caller needs to hold as well. */
export async function applyFacts(
  tx: Tx,
  block: ChainBlock,
  facts: readonly BlockFact[],
  { chain, stopped }: { readonly chain: Pick<Chain, 'position'>; readonly stopped: readonly string[] },
): Promise<Applied> {
  const addresses = [...new Set(facts.flatMap(accountsOf))]
  const known = await findUsers(tx, [...addresses, ...facts.flatMap(cancellersOf)])
  const newcomers = addresses.filter((address) => !known.has(address))
  const needed = newcomers.length > 0 ? [ACCOUNTS_SHARD] : []
  const shards = await Shards.lock(tx, [...facts.flatMap(shardsOf), ...stopped, ...needed])
  const created = await createUsers(tx, newcomers, block.timestamp * 1000)
  for (const row of created.rows) shards.append(ACCOUNTS_SHARD, row)
  const users = new Map([...known, ...created.users])
  await lockAccounts(tx, users.values())

  const context: Context = { tx, block, chain, shards, users, mismatches: [] }
  const places: (FactPlace | null)[] = []
  for (const fact of facts) places.push(await applyFact(context, fact))
  await shards.write(tx)
  return { places, mismatches: context.mismatches }
}

async function applyFact(context: Context, { fact, log }: BlockFact): Promise<FactPlace | null> {
  switch (fact.kind) {
    case 'ledger_moved':
      return applyLedger(context, fact, log)
    case 'part_mined':
      return applyPart(context, fact, log)
    case 'salts_cancelled':
      return applyCancel(context, fact)
    case 'undecodable':
      return noteUndecodable(context, fact.spec?.marketId ?? null, fact.problem, log)
    case 'unconcerning':
      return null
  }
}

async function applyLedger({ tx, block, shards, users }: Context, fact: LedgerMoved, log: ChainLog) {
  const row: BalanceChanged = {
    kind: 'balance_changed',
    cause: fact.cause,
    rollback: false,
    user_id: users.get(fact.account) as number,
    free_delta: fact.freeDelta.toString(),
    pending_withdrawal_delta: fact.pendingDelta.toString(),
    block: block.number,
    tx_hash: log.txHash,
    log_index: log.logIndex,
    at: block.timestamp * 1000,
  }
  await writeLedger(tx, row)
  return shards.append(ACCOUNTS_SHARD, row)
}

async function writeLedger(tx: Tx, row: BalanceChanged): Promise<void> {
  const sign = row.rollback ? -1n : 1n
  await tx
    .updateTable('accounts')
    .set({
      free: sql`free + ${sign * BigInt(row.free_delta)}::numeric`,
      pending_withdrawal: sql`pending_withdrawal + ${sign * BigInt(row.pending_withdrawal_delta)}::numeric`,
    })
    .where('user_id', '=', row.user_id)
    .execute()
}

async function applyPart(context: Context, { spec, settled }: PartMined, log: ChainLog): Promise<FactPlace> {
  const { tx, block, shards, mismatches } = context
  const { marketId } = spec
  const makers = new Set(settled.fills.map(({ maker }) => maker))
  const users = new Map([...context.users].filter(([address]) => makers.has(address)))
  const state = await loadPart(tx, marketId, settled, users)
  const movement = movementOf(spec, settled, state.positions)
  const expectation = await expectationOf(tx, marketId, settled, state.fills)
  const verdict = reconcile({ settled, undecodable: null, movesPositions: movement !== null }, expectation)
  if (!verdict.ok) {
    const { batchId, part } = settled
    mismatches.push({ ...verdict.refusal, marketId, txHash: log.txHash, batchId, part })
  }
  const mined = {
    block: block.number,
    tx_hash: log.txHash,
    log_index: log.logIndex,
    // Block time counts whole seconds: a part is not mined before the auction that it is from.
    at: Math.max(block.timestamp * 1000, settled.asOf),
  }
  const moved = movement ?? (await movementOnChain(context, { spec, settled, kind: 'part_mined' }))
  const { row, orders } = settlePart(marketId, settled, moved, state, mined)
  await writePart(tx, marketId, row, orders)
  return shards.append(marketShard(marketId), row)
}

/** Where our rules do not explain what the chain did, the contract itself is asked what became of the positions. */
async function movementOnChain({ chain, block }: Context, fact: PartMined): Promise<Movement> {
  const makers = [...new Set(makersOf(fact))]
  const positions = await Promise.all(
    makers.map(
      async (maker) => [maker, await chain.position(fact.spec.trader, maker, block.number)] as const,
    ),
  )
  return { positions: new Map(positions), realised: [] }
}

/** The maker's orders end here too, or once what settles of them is mined. Not taken back when the block is: he wanted it. */
async function applyCancel({ tx, block, shards }: Context, { spec, maker, salts }: SaltsCancelled) {
  const ids = await tx
    .selectFrom('orders')
    .select('order_id')
    .where('market_id', '=', spec.marketId)
    .where('maker', '=', maker)
    .where('ended_at', 'is', null)
    .where((where) =>
      'below' in salts ? where('salt', '<', Number(salts.below)) : where('salt', 'in', salts.map(Number)),
    )
    .orderBy('seq')
    .execute()
  const orders = await loadOrders(
    tx,
    ids.map(({ order_id }) => order_id),
  )
  for (const order of orders) {
    const closed = step(order, { kind: 'close', reason: 'USER_CANCELLED' })
    if (closed.ok) await writeCancel(tx, shards, spec.marketId, closed.value.life, block.timestamp * 1000)
  }
  return null
}

type Closed = Awaited<ReturnType<typeof loadOrders>>[number]

async function writeCancel(
  tx: Tx,
  shards: Shards,
  marketId: number,
  order: Closed,
  at: number,
): Promise<void> {
  const { status, statusReason, closingReason } = order
  const isEnded = status === 'CANCELLED' || status === 'EXPIRED'
  await tx
    .updateTable('orders')
    .set({ status, status_reason: statusReason, closing_reason: closingReason, openable: 0, reserved: 0n })
    .set({ ended_at: isEnded ? at : null })
    .where('order_id', '=', order.orderId)
    .execute()
  await tx
    .updateTable('accounts')
    .set({ reserved: sql`reserved - ${order.reserved}::numeric` })
    .where('user_id', '=', order.userId)
    .execute()
  const told = {
    order_id: order.orderId,
    user_id: order.userId,
    reason: 'USER_CANCELLED',
    note: null,
    reserved_delta: (-order.reserved).toString(),
    at,
  } as const
  shards.append(
    marketShard(marketId),
    isEnded ? { kind: 'order_ended', status, ...told } : { kind: 'order_ending', status, ...told },
  )
}

function noteUndecodable(context: Context, marketId: number | null, problem: string, log: ChainLog): null {
  if (marketId !== null) {
    const verdict = reconcile({ settled: null, undecodable: problem, movesPositions: false }, null)
    const at = { marketId, txHash: log.txHash, batchId: null, part: null }
    if (!verdict.ok) context.mismatches.push({ ...verdict.refusal, ...at })
  }
  return null
}

/** A fact that stands in the log, to be taken back or confirmed. */
export interface LoggedFact extends FactPlace {
  readonly row: LogRow
}

const marketIdOf = (shard: string): number => Number(shard.slice(1))

/** Takes back the facts of a block that left the chain; the newest comes first. */
export async function takeBackFacts(tx: Tx, facts: readonly LoggedFact[]): Promise<void> {
  const shards = await Shards.lock(tx, new Set(facts.map(({ shard }) => shard)))
  await lockAccounts(
    tx,
    facts.flatMap(({ row }) => usersOf(row)),
  )
  for (const { shard, row } of facts) {
    if (row.kind === 'balance_changed') {
      const back: BalanceChanged = { ...row, rollback: true }
      await writeLedger(tx, back)
      shards.append(shard, back)
    }
    if (row.kind === 'part_settled') {
      const ids = row.orders.map(({ order_id }) => order_id)
      const { row: back, orders } = takeBackPart(row, await loadOrders(tx, ids))
      await writePart(tx, marketIdOf(shard), back, orders)
      shards.append(shard, back)
    }
  }
  await shards.write(tx)
}

function usersOf(row: LogRow): number[] {
  if (row.kind === 'balance_changed') return [row.user_id]
  return row.kind === 'part_settled' ? row.fills.map(({ user_id }) => user_id) : []
}

/** The blocks of these parts are sealed. */
export async function confirmParts(tx: Tx, facts: readonly LoggedFact[], at: number): Promise<void> {
  const parts = facts.filter(
    (fact): fact is LoggedFact & { row: PartSettled } => fact.row.kind === 'part_settled',
  )
  const shards = await Shards.lock(tx, new Set(parts.map(({ shard }) => shard)))
  for (const { shard, row } of parts) {
    await confirmFills(tx, marketIdOf(shard), row)
    const { batch_id, part, block } = row
    shards.append(shard, { kind: 'part_confirmed', batch_id, part, block, at })
  }
  await shards.write(tx)
}
