/** Records in the database which transaction wrote which journal row, in an order that is a valid serial order of the transactions. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import type { SingleActions, Touch } from './single-actions.ts'

export interface Entry {
  readonly shard: string
  readonly seq: number
  readonly row: JournalRow
}

export interface Transaction {
  /**
   * A time at which the transaction had its locks, by the database's clock: transactions that ended before have committed, and
   * transactions that began after see its rows.
   */
  readonly at: number
  readonly entries: readonly Entry[]
  /** Recorded since the transaction before. */
  readonly touches: readonly Touch[]
}

interface RecordedEntry extends Entry {
  readonly n: number
  readonly tx: string
  readonly at: number
}

/**
 * The trigger runs as its owner, because the roles of the processes may not write the record. It writes nothing to the exchange's tables.
 * It adds what the journal lacks: the time and transaction of each row.
 */
const INSTALL = `
  create table transaction_record (
    n bigserial, shard text, seq bigint, tx text, at bigint, primary key (shard, seq)
  );
  create function record_transaction() returns trigger language plpgsql security definer set search_path = public as $$
    begin
      insert into transaction_record (shard, seq, tx, at)
      select placed.shard, placed.seq, pg_current_xact_id()::text, (extract(epoch from clock_timestamp()) * 1000)::bigint
      from added s join engine_groups g on g.number between s.first_group and s.last_group
      cross join lateral json_to_recordset(g.rows) as placed (shard text, seq bigint)
      where placed.shard = s.shard order by placed.seq;
      return null;
    end
  $$;
  create trigger record_transaction after insert on journal_spans
    referencing new table as added for each statement execute function record_transaction();
`

/** The engine stores one transaction after the other, each with the rows of one command (`GROUP_COMMANDS`): sorted by their first rows, they are in its order. */
export class TransactionRecorder {
  readonly #db: Db
  /** By shard: the last sequence that was returned. */
  readonly #read: Map<string, number>
  #touchesRead = 0

  private constructor(db: Db, read: Map<string, number>) {
    this.#db = db
    this.#read = read
  }

  /** Must be called while no process writes anything but prices. */
  static async install(db: Db): Promise<TransactionRecorder> {
    await sql.raw(INSTALL).execute(db)
    const heads = await db.selectFrom('shards').select(['shard', 'head']).execute()
    return new TransactionRecorder(db, new Map(heads.map(({ shard, head }) => [shard, head])))
  }

  /** The transactions that were committed since the last call, with what queued actions touch. */
  async nextTransactions(actions: SingleActions): Promise<Transaction[]> {
    const { rows } = await sql<RecordedEntry>`
      select t.n, j.shard, j.seq, j.row, t.tx, t.at
      from unnest(${[...this.#read.keys()]}::text[], ${[...this.#read.values()]}::bigint[]) as r(shard, seq)
      join journal j on j.shard = r.shard and j.seq > r.seq
      join transaction_record t on t.shard = j.shard and t.seq = j.seq
      order by t.n
    `.execute(this.#db)
    for (const { shard, seq } of rows) this.#read.set(shard, seq)
    const recorded = await actions.touchesAfter(this.#touchesRead)
    return [...Map.groupBy(rows, ({ tx }) => tx).values()].map((entries) => {
      const first = Math.min(...entries.map(({ n }) => n))
      const touches = recorded.filter(({ n }) => n > this.#touchesRead && n < first)
      this.#touchesRead = touches.at(-1)?.n ?? this.#touchesRead
      return { at: Math.min(...entries.map(({ at }) => at)), entries, touches }
    })
  }
}
