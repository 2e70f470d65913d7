/** A state whose groups are stored with the tables that follow it, and comparisons of both. */
import { expect } from 'chai'
import { sql } from 'kysely'
import type pg from 'pg'
import { createDb, createPool, type Db, LOOKUP_SETTINGS } from '../../../../db/client.ts'
import {
  appendGroup,
  readGroups,
  type StoredGroup,
  takeLease,
  writeTables,
} from '../../../../db/engine-journal.ts'
import { shardEnds } from '../../../../db/journal.ts'
import type { Statement } from '../../../../db/round-trip.ts'
import { AppliedRows } from '../../../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../../../domain/exchange/apply.ts'
import { createState, type ExchangeState } from '../../../../domain/exchange/state.ts'
import { BatchEvidence } from '../../../../keeper/engine/tables/batch-evidence.ts'
import { createTableWriter, type TableWriter } from '../../../../keeper/engine/tables/table-writer.ts'
import { COMPARISONS } from '../../../../stack/shadow/comparisons.ts'
import type { Columns, Facts } from '../../../../stack/shadow/facts.ts'
import { differences } from '../../../../stack/shadow/shadow-run.ts'
import { freshDatabase, loginOf } from '../../../support/postgres.ts'

/** Rows of these tables stay when the state drops them. */
const KEPT = new Set(['orders', 'batches', 'actions'])

export class WrittenTables {
  readonly url: string
  readonly pool: pg.Pool
  readonly db: Db
  readonly token: number
  applied = new AppliedRows(createState())
  writer: TableWriter
  readonly evidence = new BatchEvidence()
  #number = 0
  /** The last group that the tables have, and the rows behind it. */
  #written = 0
  #pending: Entry[] = []
  #digest: string
  /** Columns that the tables keep of rows which the state has dropped, by table and key. */
  readonly #kept = new Map<string, Map<string, Columns>>()

  static async open(): Promise<WrittenTables> {
    const url = await freshDatabase()
    const db = createDb(createPool({ url, connections: 2, name: 'test', idleInTransactionMs: 0 }))
    await sql`
      insert into chain_progress (chain_id, genesis_hash, next_block, head, completed_at) values (1, '0x', 1, 0, 0)
    `.execute(db)
    const login = await loginOf(url, 'engine')
    const pool = createPool({ url: login, connections: 2, name: 'engine test', settings: LOOKUP_SETTINGS })
    const token = await takeLease(pool, { token: 0, renewals: 0, isReleased: true })
    if (token === null) throw new Error('the lease of a new database is free')
    return new WrittenTables({ url, pool, db, token })
  }

  private constructor({ url, pool, db, token }: Pick<WrittenTables, 'url' | 'pool' | 'db' | 'token'>) {
    this.url = url
    this.pool = pool
    this.db = db
    this.token = token
    this.writer = createTableWriter(this.state)
    this.#digest = this.applied.digest()
  }

  get state(): ExchangeState {
    return this.applied.state
  }

  async close(): Promise<void> {
    await this.pool.end()
    await this.db.destroy()
  }

  /** Applies rows as an owner does after a decision. */
  apply(rows: readonly Entry[]): void {
    for (const row of rows) {
      if (row.row.kind === 'ended_released') this.#keep()
      this.applied.apply(row)
    }
  }

  /** Statements for these rows and those of groups that the tables lack. */
  collect = (rows: readonly Entry[]): Statement[] => this.writer.collect([...this.#pending, ...rows])

  get isWritten(): boolean {
    return this.#written === this.#number
  }

  async append(rows: readonly Entry[]): Promise<boolean> {
    const digest = this.applied.digest()
    const group = {
      number: this.#number + 1,
      token: this.token,
      version: 1,
      rows,
      before: this.#digest,
      digest,
    }
    const evidence = this.evidence.statementsOf(rows)
    if (!(await appendGroup(await this.pool.connect(), group, evidence))) return false
    this.evidence.stored(rows)
    this.#number++
    this.#digest = digest
    this.applied.forget(this.applied.position())
    this.#pending.push(...rows)
    return true
  }

  async write(statements: readonly Statement[]): Promise<boolean> {
    const step = { token: this.token, from: this.#written, to: this.#number }
    const content = { ends: shardEnds(this.#pending), statements }
    if (!(await writeTables(await this.pool.connect(), step, content))) return false
    this.#written = this.#number
    this.#pending = []
    return true
  }

  async store(rows: readonly Entry[]): Promise<void> {
    const statements = this.collect(rows)
    expect(await this.append(rows)).to.equal(true)
    expect(await this.write(statements)).to.equal(true)
  }

  /** Writes what the tables lack. */
  async catchUp(): Promise<void> {
    if (!this.isWritten) expect(await this.write(this.collect([]))).to.equal(true)
  }

  /** The tables lack the group until the next one is stored. */
  async storeBehind(rows: readonly Entry[]): Promise<void> {
    expect(await this.append(rows)).to.equal(true)
  }

  /**
   * The changes of the group are collected with those of the groups before it, but the server refuses the group; its rows, from the position on, are
   * taken back. `further`: rows of the next group, which is decided meanwhile.
   */
  refuse(rows: readonly Entry[], position: number, further: readonly Entry[] = []): void {
    this.collect(rows)
    this.apply(further)
    this.writer.giveBack()
    this.applied.undoTo(position)
  }

  /** A new owner folds the journal as far as the tables have it, notes what they lack, and continues. */
  async restart(): Promise<void> {
    const groups = await readGroups(this.pool, 0, 100_000)
    const applied = new AppliedRows(createState())
    const before = this.applied.digest()
    this.applied = applied
    this.#pending = []
    if (this.#written === 0) this.writer = createTableWriter(this.state)
    for (const { number, rows } of groups) {
      if (number > this.#written) this.#pending.push(...(rows as Entry[]))
      this.apply(rows as Entry[])
      applied.forget(applied.position())
      if (number === this.#written) this.writer = createTableWriter(this.state)
    }
    expect(applied.digest()).to.equal(before)
  }

  /** One line per difference between the tables and the state. */
  compare(): Promise<string[]> {
    return this.db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (tx) => {
        const found: string[] = []
        for (const { name, stored, held } of COMPARISONS)
          found.push(...differences(name, await stored(tx), this.#with(name, held(this.state))))
        return found
      })
  }

  /** The rows of today's journal are those of the groups. Without rows about blocks, their fold has the state's digest. */
  async compareJournal({ hasBlocks }: { readonly hasBlocks: boolean }): Promise<void> {
    const groups = (await readGroups(this.pool, 0, 100_000)) as StoredGroup[]
    const expected = groups.flatMap(({ rows }) => rows as Entry[])
    const { rows: stored } =
      await sql<Entry>`select shard, seq, row from journal order by shard collate "C", seq`.execute(this.db)
    const inOrder = [...expected].sort((a, b) =>
      a.shard === b.shard ? a.seq - b.seq : a.shard < b.shard ? -1 : 1,
    )
    expect(stored).to.deep.equal(inOrder)
    const { rows: heads } = await sql<{
      shard: string
      head: number
    }>`select shard, head from shards`.execute(this.db)
    const last = new Map(
      expected.filter(({ shard }) => shard !== 'chain').map(({ shard, seq }) => [shard, seq]),
    )
    expect(new Map(heads.map(({ shard, head }) => [shard, head]))).to.deep.equal(last)
    if (hasBlocks) return
    const folded = new AppliedRows(createState())
    for (const row of stored) folded.apply(row)
    expect(folded.digest()).to.equal(this.applied.digest())
  }

  #keep(): void {
    for (const { name, held } of COMPARISONS.filter((one) => KEPT.has(one.name))) {
      const kept = this.#kept.get(name) ?? new Map<string, Columns>()
      for (const [key, columns] of held(this.state)) kept.set(key, columns)
      this.#kept.set(name, kept)
    }
  }

  #with(name: string, held: Facts): Facts {
    return new Map([...(this.#kept.get(name) ?? []), ...held])
  }
}
