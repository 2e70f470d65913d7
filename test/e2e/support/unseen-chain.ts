/** Records when the indexer was so late that the api rejected placements with CHAIN_UNSEEN. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'

/** CHAIN_MAX_AGE_MS of the api. */
const LIMIT_MS = 2_500

/** The api rejected placements from `from` to `until`, in Unix milliseconds. */
export interface UnseenTime {
  readonly from: number
  readonly until: number
}

const INSTALL = `
  create table unseen_chain (seen_at bigint, until bigint);
  create function record_unseen_chain() returns trigger language plpgsql security definer set search_path = public as $$
    begin
      insert into unseen_chain values (old.completed_at, (extract(epoch from clock_timestamp()) * 1000)::bigint);
      return null;
    end
  $$;
  create trigger record_unseen_chain after update of completed_at on chain_progress for each row
    when (extract(epoch from clock_timestamp()) * 1000 - old.completed_at > ${LIMIT_MS})
    execute function record_unseen_chain();
`

export class UnseenChain {
  readonly #db: Db

  private constructor(db: Db) {
    this.#db = db
  }

  static async install(db: Db): Promise<UnseenChain> {
    await sql.raw(INSTALL).execute(db)
    return new UnseenChain(db)
  }

  async times(): Promise<readonly UnseenTime[]> {
    const { rows } = await sql<UnseenTime>`
      select seen_at + ${LIMIT_MS}::bigint as from, until from unseen_chain
    `.execute(this.#db)
    return rows
  }
}
