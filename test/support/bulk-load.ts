/** Fills large tables: their indexes and keys are dropped before and built after, which takes a fraction of the time of maintaining them. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'

/** A statement that drops an index or a constraint, and the one that creates it again. */
interface Dropped {
  readonly drop: string
  readonly create: string
}

/** Indexes and constraints of the tables, and foreign keys that name them; in the sequence in which they can be created. */
async function definitions(tx: Tx, tables: readonly string[]): Promise<readonly Dropped[]> {
  const { rows } = await sql<Dropped>`
    with filled as (select unnest(${tables}::regclass[]) as relation)
    select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as create,
      case contype when 'f' then 2 else 0 end as place
    from pg_constraint
    where contype in ('p', 'u', 'f') and (conrelid in (table filled) or confrelid in (table filled))
    union all
    select format('drop index %s', indexrelid::regclass), pg_get_indexdef(indexrelid), 1
    from pg_index
    where indrelid in (table filled) and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u'))
    order by place
  `.execute(tx)
  return rows
}

async function run(tx: Tx, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(tx)
}

/** Runs `fill`, in one transaction and without triggers, while the tables have no index and no key. The connection must be a superuser's. */
export async function bulkLoad(
  db: Db,
  tables: readonly string[],
  fill: (tx: Tx) => Promise<void>,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await run(tx, [
      'set local session_replication_role = replica',
      `set local maintenance_work_mem = '256MB'`,
    ])
    const dropped = await definitions(tx, tables)
    await run(
      tx,
      dropped.toReversed().map(({ drop }) => drop),
    )
    await fill(tx)
    await run(
      tx,
      dropped.map(({ create }) => create),
    )
  })
}
