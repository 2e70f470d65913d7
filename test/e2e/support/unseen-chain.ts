/** Records when the engine may have refused placements with CHAIN_UNSEEN: the indexer was late, or a new owner had not heard of the chain yet. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'

/** CHAIN_MAX_AGE_MS of the api. */
const LIMIT_MS = 2_500

/** In this time at most the indexer reaches a new owner and completes a pass. */
const TAKEOVER_MS = 5_000

/** The engine may have refused placements from `from` to `until`, in Unix milliseconds. */
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

  create function record_takeover() returns trigger language plpgsql security definer set search_path = public as $$
    declare
      at bigint := (extract(epoch from clock_timestamp()) * 1000)::bigint;
    begin
      insert into unseen_chain values (at - ${LIMIT_MS}, at + ${TAKEOVER_MS});
      return null;
    end
  $$;
  create trigger record_takeover after update of token on engine_ownership for each row execute function record_takeover();
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
