/**
 * Folds all journals into a state and compares it with the tables of the write side at one snapshot. Later comparisons
 * continue with newly appended rows.
 */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { readRows } from '../../db/journal.ts'
import { apply, marketIdOf } from '../../domain/exchange/apply.ts'
import { violations } from '../../domain/exchange/laws.ts'
import { createState, type ExchangeState } from '../../domain/exchange/state.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import { COMPARISONS } from './comparisons.ts'
import type { Facts } from './facts.ts'

/** Rows that are read at once. */
const PAGE = 5_000
/** Differences of one table that are reported. */
const MOST_DIFFERENCES = 5

export class ShadowRun {
  readonly state: ExchangeState = createState()
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /** Applies the rows that have been appended since. */
  follow(): Promise<void> {
    return this.#db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute((tx) => this.#follow(tx))
  }

  /** One line per difference and violated law; empty if state and tables agree. */
  compare(): Promise<string[]> {
    return this.#db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (tx) => {
        await this.#follow(tx)
        const found: string[] = []
        for (const { name, stored, held } of COMPARISONS)
          found.push(...differences(name, await stored(tx), held(this.state)))
        return [...found, ...violations(this.state)]
      })
  }

  /** Applies what the snapshot has. The accounts come first: rows of markets name users that they have created. */
  async #follow(tx: Tx): Promise<void> {
    const { rows: shards } = await sql<{ shard: string }>`
      select shard from shards order by shard <> 'accounts', shard
    `.execute(tx)
    for (const { shard } of shards) {
      for (;;) {
        const after = this.state.heads.get(marketIdOf(shard))?.seq ?? 0
        const rows = await readRows(tx, shard, after, PAGE)
        for (const { seq, row } of rows) apply(this.state, { shard, seq, row: kept(row) })
        this.state.core.undo.clear()
        if (rows.length < PAGE) break
      }
    }
  }
}

/** The engine releases ended entries from its memory; the tables, and therefore this fold, keep them. */
const kept = (row: JournalRow): JournalRow => (row.kind === 'ended_released' ? { ...row, up_to: 0 } : row)

/** One line per fact in which a table and a state differ. */
export function differences(table: string, stored: Facts, held: Facts): string[] {
  const found: string[] = []
  for (const key of new Set([...stored.keys(), ...held.keys()])) {
    if (found.length >= MOST_DIFFERENCES) return found
    const [a, b] = [stored.get(key), held.get(key)]
    if (a === undefined || b === undefined) {
      found.push(`${table} ${key}: only in the ${a === undefined ? 'state' : 'table'}`)
      continue
    }
    for (const field of Object.keys(a)) {
      const [was, is] = [textOf(a[field]), textOf(b[field])]
      if (was !== is) found.push(`${table} ${key} ${field}: the table has ${was}, the state ${is}`)
    }
  }
  return found
}

/** Names of objects come in any order; amounts are bigint in one of the two. */
const textOf = (value: unknown): string => {
  const sorted = (_: string, inner: unknown): unknown => {
    if (typeof inner === 'bigint') return inner.toString()
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
  }
  return JSON.stringify(value, sorted) ?? 'null'
}
