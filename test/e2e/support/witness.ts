/** What the exchange wrote down, transaction by transaction, in an order that explains every one of them. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'

export interface Entry {
  readonly shard: string
  readonly seq: number
  readonly row: JournalRow
}

export interface Transaction {
  /** While it held its locks, by the database's clock: what came before it was over, what came after it had not begun. */
  readonly at: number
  readonly entries: readonly Entry[]
}

interface Noted extends Entry {
  readonly tx: string
  readonly at: number
}

/** Says nothing by itself: it notes when each log row was written, and by which transaction, which the log does not tell. */
const STAND = `
  create table witness (n bigserial, shard text, seq bigint, tx text, at bigint, primary key (shard, seq));
  create function witness() returns trigger language plpgsql as $$
    begin
      insert into witness (shard, seq, tx, at)
      select shard, seq, pg_current_xact_id()::text, (extract(epoch from clock_timestamp()) * 1000)::bigint from added order by seq;
      return null;
    end
  $$;
  create trigger witness after insert on journal referencing new table as added for each statement execute function witness();
`

/**
 * Every writer holds the locks of the shards and accounts that it changes from before its first row until its commit. So of two
 * transactions that share an account or a market, all rows of one are noted before all rows of the other, and sorted by the first row of
 * each they are in an order in which they might have been done one at a time.
 */
export class Witness {
  readonly #db: Db
  readonly #read: Map<string, number>

  private constructor(db: Db, read: Map<string, number>) {
    this.#db = db
    this.#read = read
  }

  /** Called while nothing happens but prices. */
  static async stand(db: Db): Promise<Witness> {
    await sql.raw(STAND).execute(db)
    const heads = await db.selectFrom('shards').select(['shard', 'head']).execute()
    return new Witness(db, new Map(heads.map(({ shard, head }) => [shard, head])))
  }

  /** Everything that was committed since the last call. */
  async next(): Promise<Transaction[]> {
    const { rows } = await sql<Noted>`
      select l.shard, l.seq, l.row, w.tx, w.at
      from unnest(${[...this.#read.keys()]}::text[], ${[...this.#read.values()]}::bigint[]) as r(shard, seq)
      join journal l on l.shard = r.shard and l.seq > r.seq
      join witness w on w.shard = l.shard and w.seq = l.seq
      order by w.n
    `.execute(this.#db)
    for (const { shard, seq } of rows) this.#read.set(shard, seq)
    return [...Map.groupBy(rows, ({ tx }) => tx).values()].map((entries) => ({
      at: Math.min(...entries.map(({ at }) => at)),
      entries,
    }))
  }
}
