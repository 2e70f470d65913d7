/** A state with many accounts and resting orders: built in memory, stored as a checkpoint, and followed by a tail of groups. */
import type pg from 'pg'
import { appendGroup, readGroups, writeTables } from '../../db/engine-journal.ts'
import { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import { createState } from '../../domain/exchange/state.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { Address, OrderHash } from '../../domain/units.ts'
import { writeCheckpoint } from '../../keeper/engine/checkpoints.ts'
import { GROUP_VERSION } from '../../keeper/engine/ports.ts'
import { insertAccounts } from '../../test/support/rows/many-accounts.ts'
import type { BenchMarket } from '../intake/orders.ts'

export interface StateTerms {
  readonly markets: readonly BenchMarket[]
  readonly accounts: number
  /** Resting orders, spread over markets and accounts. */
  readonly orders: number
  /** Rows behind the checkpoint, half of them placements and half cancels. */
  readonly tail: number
}

/** Time of every prepared row, long before the measurement: a row that is ahead of the clock would hold it. */
const AT = 1_700_000_000_000
const DEPOSIT = 10n ** 26n
const STEPS = 100
const RESERVED = 10n ** 15n
/** Distances of resting orders from the oracle price, as fractions of it. No order of the flow reaches them. */
const NEAREST = 0.02
const FURTHEST = 0.05
const TAIL_GROUP = 50

const hexOf = (number: number, bytes: number): string => `0x${number.toString(16).padStart(bytes * 2, '0')}`

/** The first accounts belong to the flow of a measurement. */
export const addressOf = (userId: number): Address => hexOf(userId, 20) as Address

/** Digits that look random, as those of a hash do. */
export const hashOf = (number: number): OrderHash => {
  const mixed = Math.imul(number + 1, 0x9e3779b1) >>> 0
  return `${hexOf(mixed, 4)}${mixed.toString(16).padStart(8, '0').repeat(6)}${number.toString(16).padStart(8, '0')}` as OrderHash
}

/** 65 bytes, and one that names the scheme. */
export const signatureOf = (number: number): `0x${string}` =>
  `0x${hashOf(number).slice(2).repeat(2)}1b01` as `0x${string}`

class Builder {
  readonly applied = new AppliedRows(createState())
  readonly #markets: readonly BenchMarket[]
  readonly #accounts: number
  #orders = 0

  constructor({ markets, accounts }: StateTerms) {
    this.#markets = markets
    this.#accounts = accounts
  }

  write(shard: string, row: JournalRow): Entry {
    const marketId = shard === ACCOUNTS_SHARD ? 0 : Number(shard.slice(1))
    const { state } = this.applied
    const entry = { shard, seq: (state.heads.get(marketId as never)?.seq ?? 0) + 1, row }
    this.applied.apply(entry)
    return entry
  }

  forget(): void {
    this.applied.forget(this.applied.position())
  }

  open(userId: number): void {
    this.write(ACCOUNTS_SHARD, { kind: 'user_created', user_id: userId, address: addressOf(userId), at: AT })
    this.write(ACCOUNTS_SHARD, {
      kind: 'balance_changed',
      cause: 'deposit',
      rollback: false,
      user_id: userId,
      free_delta: DEPOSIT.toString(),
      pending_withdrawal_delta: '0',
      block: 1,
      tx_hash: hexOf(userId, 32),
      log_index: 0,
      at: AT,
    })
  }

  place(): Entry {
    const number = this.#orders++
    const { spec, oracle } = this.#markets[number % this.#markets.length] as BenchMarket
    const userId = 1 + (Math.floor(number / this.#markets.length) % this.#accounts)
    const isLong = number % 2 === 0
    const distance = NEAREST + ((FURTHEST - NEAREST) * (number % 4_999)) / 4_999
    const price = Math.round(oracle * (isLong ? 1 - distance : 1 + distance))
    const seq = (this.applied.state.heads.get(spec.marketId)?.seq ?? 0) + 1
    return this.write(marketShard(spec.marketId), {
      kind: 'order_placed',
      order_id: `${spec.marketId}-${seq}`,
      user_id: userId,
      maker: addressOf(userId),
      signer: addressOf(userId),
      hash: hashOf(number),
      signature: signatureOf(number),
      salt: number,
      side: isLong ? 'LONG' : 'SHORT',
      type: 'LIMIT',
      price,
      quantity: STEPS,
      trigger: 0,
      leverage: 5,
      reduce_only: false,
      expiration: 0,
      alive_until: 0,
      status: 'OPEN',
      accepted_at: AT,
      openable: STEPS,
      reserved: (RESERVED * BigInt(STEPS)).toString(),
      reserved_price: price,
    })
  }

  cancel({ shard, row }: Entry): Entry {
    if (row.kind !== 'order_placed') throw new Error('only a placement is cancelled')
    return this.write(shard, {
      kind: 'order_ended',
      order_id: row.order_id,
      user_id: row.user_id,
      status: 'CANCELLED',
      reason: 'USER_CANCELLED',
      note: null,
      reserved_delta: `-${row.reserved}`,
      at: AT,
    })
  }
}

/**
 * Stores the state behind the groups that list the markets. One group stands for all rows of the checkpoint, which a start never reads; tables of readers get
 * the accounts alone.
 */
export async function storeState(pool: pg.Pool, terms: StateTerms): Promise<void> {
  const builder = new Builder(terms)
  const { applied } = builder
  const listings = await readGroups(pool, 0, terms.markets.length)
  for (const { rows } of listings) for (const row of rows) applied.apply(row as Entry)
  const before = applied.digest()
  for (let userId = 1; userId <= terms.accounts; userId++) {
    builder.open(userId)
    builder.forget()
  }
  for (let at = 0; at < terms.orders; at++) {
    builder.place()
    builder.forget()
  }
  const prepared = { token: 0, version: GROUP_VERSION }
  const number = listings.length + 1
  await append(pool, { ...prepared, number, rows: [], before, digest: applied.digest() })
  if (!(await writeCheckpoint(pool, { applied, number }, () => true)))
    throw new Error('the prepared checkpoint is not complete')
  await storeTail(pool, builder, { from: number + 1, rows: terms.tail })
  // The prepared groups have no tables: an owner would otherwise write all of them first.
  const step = { token: 0, from: listings.length, to: await headOf(pool) }
  await writeTables(await pool.connect(), step, { ends: [], statements: [] })
  await insertAccounts(pool, { count: terms.accounts, at: AT })
}

const headOf = async (pool: pg.Pool): Promise<number> =>
  (await pool.query<{ head: number }>('select max(number)::int as head from engine_groups')).rows[0]?.head ??
  0

/** Each group places orders and cancels those of the group before. */
async function storeTail(
  pool: pg.Pool,
  builder: Builder,
  { from, rows }: { readonly from: number; readonly rows: number },
): Promise<void> {
  let placed: Entry[] = []
  for (let number = from, stored = 0; stored < rows; number++) {
    const before = builder.applied.digest()
    const ended = placed.map((entry) => builder.cancel(entry))
    placed = Array.from({ length: TAIL_GROUP / 2 }, () => builder.place())
    builder.forget()
    const group = [...ended, ...placed]
    stored += group.length
    const digest = builder.applied.digest()
    await append(pool, { number, token: 0, version: GROUP_VERSION, rows: group, before, digest })
  }
}

async function append(pool: pg.Pool, group: Parameters<typeof appendGroup>[1]): Promise<void> {
  if (!(await appendGroup(await pool.connect(), group)))
    throw new Error(`the prepared group ${group.number} does not follow the head`)
}
