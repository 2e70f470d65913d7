/** A database that measures its statements: each is executed under `explain analyze` and rolled back before it is executed for good. */
import { expect } from 'chai'
import type pg from 'pg'
import { createDb, createPool, type Db } from '../../db/client.ts'

export interface ExplainedStatement {
  readonly text: string
  /** Pages of tables and indexes that the statement touched; a page may count several times. */
  readonly pages: number
}

export interface ExplainedDb {
  readonly db: Db
  /** Statements since the last call. */
  drain(): ExplainedStatement[]
}

const EXPLAINED = /^\s*(select|with|insert|update|delete)\b/i

interface Plan {
  readonly Plan: { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** The value as a literal of a type that Postgres infers. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Buffer.isBuffer(value)) return quoted(`\\x${value.toString('hex')}`)
  if (!Array.isArray(value)) return quoted(String(value))
  const items = value.map((item) => (item === null ? 'null' : JSON.stringify(String(item))))
  return quoted(`{${items.join(',')}}`)
}

async function explain(client: pg.ClientBase, text: string, values: unknown[]): Promise<number> {
  const { rows } = await client.query<{ 'QUERY PLAN': Plan[] }>(
    `explain (analyze, buffers, timing off, format json) ${text}`,
    values,
  )
  const plan = rows[0]?.['QUERY PLAN'][0]?.Plan
  return (plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0)
}

/** By the plan for these values, and by the plan that serves all values, which a prepared statement may get. */
async function pagesOf(client: pg.ClientBase, text: string, values: unknown[]): Promise<number> {
  await client.query('savepoint custom')
  const custom = await explain(client, text, values)
  await client.query('rollback to savepoint custom')
  await client.query("set local plan_cache_mode = 'force_generic_plan'")
  await client.query(`prepare explained as ${text}`)
  const generic = await explain(
    client,
    values.length === 0 ? 'execute explained' : `execute explained (${values.map(literal).join(', ')})`,
    [],
  )
  await client.query('deallocate explained')
  return Math.max(custom, generic)
}

/** The pages of the statement, without its effects. */
async function dryRun(
  client: pg.ClientBase,
  isInTransaction: boolean,
  text: string,
  values: unknown[],
): Promise<number> {
  await client.query(isInTransaction ? 'savepoint explained' : 'begin')
  try {
    return await pagesOf(client, text, values)
  } finally {
    await client.query(isInTransaction ? 'rollback to savepoint explained' : 'rollback')
  }
}

export function createExplainedDb(url: string): ExplainedDb {
  const pool = createPool({ url, connections: 2, name: 'explained' })
  const statements: ExplainedStatement[] = []
  const connect = pool.connect.bind(pool) as () => Promise<pg.PoolClient>
  const explaining = (client: pg.PoolClient): pg.PoolClient => {
    let isInTransaction = false
    // Statements that are sent together are explained one after the other.
    let earlier: Promise<unknown> = Promise.resolve()
    const run = async (text: string, values: readonly unknown[]) => {
      if (/^(begin|start transaction)/.test(text)) isInTransaction = true
      if (/^(commit|rollback)$/.test(text)) isInTransaction = false
      if (EXPLAINED.test(text))
        statements.push({ text, pages: await dryRun(client, isInTransaction, text, [...values]) })
      return client.query(text, [...values])
    }
    return new Proxy(client, {
      get(target, name) {
        if (name !== 'query') {
          const value = Reflect.get(target, name)
          return typeof value === 'function' ? value.bind(target) : value
        }
        return (text: string, values: readonly unknown[] = []) => {
          const result = earlier.then(() => run(text, values))
          earlier = result.catch(() => {})
          return result
        }
      },
    })
  }
  pool.connect = (async () => explaining(await connect())) as typeof pool.connect
  return { db: createDb(pool), drain: () => statements.splice(0) }
}

export type ExplainedRead = (db: Db) => Promise<unknown>

/** The statements that the read executes, if they touch more pages. It executes at least one. */
export async function statementsAbove(
  url: string,
  most: number,
  read: ExplainedRead,
): Promise<ExplainedStatement[]> {
  const explained = createExplainedDb(url)
  await read(explained.db)
  const statements = explained.drain()
  await explained.db.destroy()
  expect(statements.length).to.be.at.least(1)
  return statements.filter(({ pages }) => pages > most)
}
