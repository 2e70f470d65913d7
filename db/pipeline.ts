/** Sends the statements of a transaction without waiting for earlier results. The server runs them in order. */
import {
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import type { Tx } from './client.ts'
import type { Database } from './schema.ts'

const DRIVER = new DummyDriver()
const DIALECT: Dialect = {
  createAdapter: () => new PostgresAdapter(),
  createDriver: () => DRIVER,
  createIntrospector: (db) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
}

const transactions = new WeakMap<DatabaseConnection, Tx>()

/** Kysely's own transaction sends a statement only after the previous result. */
function transactionOn(connection: DatabaseConnection): Tx {
  const known = transactions.get(connection)
  if (known !== undefined) return known
  const executor = new DefaultQueryExecutor(DIALECT.createQueryCompiler(), DIALECT.createAdapter(), {
    provideConnection: (consumer) => consumer(connection),
  })
  const config = { dialect: DIALECT }
  const tx = new Kysely<Database>({ config, dialect: DIALECT, driver: DRIVER, executor }) as Tx
  transactions.set(connection, tx)
  return tx
}

/** Runs `work` on the connection of `tx`, in its transaction. Statements that `work` starts at once are sent at once. */
export const pipelined = <T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> =>
  tx.getExecutor().provideConnection((connection) => work(transactionOn(connection)))

type Results<P extends readonly Promise<unknown>[]> = { -readonly [K in keyof P]: Awaited<P[K]> }

/** The error of a statement that was not executed because one before it has failed. */
const IN_FAILED_TRANSACTION = '25P02'

/**
 * Results of statements started together, in order. Waits for all of them even if one fails, so that none is sent after
 * the rollback; throws the first error that is not a consequence.
 */
export async function together<const P extends readonly Promise<unknown>[]>(started: P): Promise<Results<P>> {
  const settled = await Promise.allSettled(started)
  const errors = settled.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []))
  const isOwn = (error: unknown): boolean => (error as { code?: string }).code !== IN_FAILED_TRANSACTION
  if (errors.length > 0) throw errors.find(isOwn) ?? errors[0]
  return settled.map((one) => (one as PromiseFulfilledResult<unknown>).value) as Results<P>
}
