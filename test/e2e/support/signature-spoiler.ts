/** Replaces the signatures of orders between the api's checks and the database, so that the contract rejects the parts that fill them. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'

/** The trigger runs as its owner, because the api may not write these tables. The other signature is a valid one of another order. */
const INSTALL = `
  create table spoiling (maker text, market_id integer, orders integer);
  create table spoiled_orders (order_id text primary key);
  create function spoil_signature() returns trigger language plpgsql security definer set search_path = public as $$
    declare other text;
    begin
      select signature into other from orders where maker <> new.maker limit 1;
      if other is null then return new; end if;
      update spoiling set orders = orders - 1
      where orders > 0 and maker = new.maker and market_id = new.market_id and new.status = 'OPEN';
      if not found then return new; end if;
      new.signature := other;
      insert into spoiled_orders values (new.order_id);
      return new;
    end
  $$;
  create trigger spoil_signature before insert on orders for each row execute function spoil_signature();
`

export class SignatureSpoiler {
  readonly #db: Db

  private constructor(db: Db) {
    this.#db = db
  }

  static async install(db: Db): Promise<SignatureSpoiler> {
    await sql.raw(INSTALL).execute(db)
    return new SignatureSpoiler(db)
  }

  /** Of the trader's next orders in the market. */
  async spoil(maker: string, marketId: number, orders: number): Promise<void> {
    await sql`insert into spoiling values (${maker.toLowerCase()}, ${marketId}, ${orders})`.execute(this.#db)
  }

  /** Orders that are placed from now on keep their signatures. */
  async end(): Promise<void> {
    await sql`delete from spoiling`.execute(this.#db)
  }

  /** The ids of all orders whose signature was replaced. */
  async orders(): Promise<ReadonlySet<string>> {
    return new Set(await spoiledOrders(this.#db))
  }
}

/** The ids of all orders whose signature was replaced; empty where no spoiler is installed. */
export async function spoiledOrders(db: Db): Promise<string[]> {
  const { rows: found } = await sql<{ found: boolean }>`
    select to_regclass('spoiled_orders') is not null as found
  `.execute(db)
  if (found[0]?.found !== true) return []
  const { rows } = await sql<{ order_id: string }>`select order_id from spoiled_orders`.execute(db)
  return rows.map(({ order_id }) => order_id)
}
