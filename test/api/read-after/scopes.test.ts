/**
 * Each read declares the tables of the read model that it shows, and waits for their projections. Every operation that accepts a bookmark
 * is called; the tables in its statements must belong to exactly the projections for which it waited.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { runAuction } from '../support/keeper-turns.ts'

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
}

/** The view is read as its tables. */
const VIEWS: Readonly<Record<string, readonly string[]>> = {
  'read.order_events': ['read.order_changes', 'read.orders'],
}

const projectionOf = (table: string): string => {
  const found = Object.entries(PROJECTED_TABLES).find(([, tables]) =>
    (tables as readonly string[]).includes(table),
  )
  if (found === undefined) throw new Error(`no projection fills ${table}`)
  return found[0]
}

/** Statements of one read: those of the queries, and the projections of the statement that compares the bookmark. */
interface Recorded {
  readonly needed: readonly string[]
  readonly tables: readonly string[]
}

function analyse(statements: readonly { text: string; values: readonly unknown[] }[]): Recorded {
  const comparing = statements.find(({ text }) => text.includes('needed (projection)'))
  const needed = comparing?.values.find((value) => Array.isArray(value)) as string[] | undefined
  const named = statements
    // The live feed reads its rows meanwhile.
    .filter((statement) => statement !== comparing && !statement.text.includes('read.feed_state'))
    .flatMap(({ text }) => [...text.replaceAll('"', '').matchAll(/\bread\.\w+/g)].map(([name]) => name))
  const tables = named.filter((name) => name !== 'read.places').flatMap((name) => VIEWS[name] ?? [name])
  return { needed: needed ?? [], tables }
}

describe('the tables that a read declares', () => {
  let exchange: ExchangeFixture
  let alice: User
  let values: Readonly<Record<string, string>>
  const query = pg.Client.prototype.query
  let statements: { text: string; values: readonly unknown[] }[] = []

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    await exchange.project()
    const label = { client_order_id: 'label' }
    const { body } = await exchange.send(alice, 'POST', '/v0/orders', { ...signedBody(alice).body, ...label })
    const bob = await createUser(exchange.db, 'bob')
    await exchange.place(bob, { side: 'SHORT' })
    const batch = await runAuction(exchange)
    values = {
      ...{ user_id: String(alice.userId), address: alice.address, market_id: '1', symbol: 'BTC-PERP' },
      ...{ order_id: body.order.order_id, order_hash: body.order.order_hash, ...label },
      batch_id: String(batch),
      read_after_shard_id: body.read_after.shard_id,
      read_after_shard_seq: body.read_after.shard_seq,
    }
    pg.Client.prototype.query = function recording(this: pg.Client, ...args: unknown[]) {
      const [statement, parameters] = args
      const { text, values = [] } =
        typeof statement === 'string'
          ? { text: statement, values: parameters as unknown[] | undefined }
          : (statement as pg.QueryConfig)
      statements.push({ text, values: values as unknown[] })
      return Reflect.apply(query, this, args)
    } as typeof query
  })
  after(async () => {
    pg.Client.prototype.query = query
    await exchange.stop()
  })

  it('when an operation accepts a bookmark, it waits for exactly the projections of the tables in its statements', async () => {
    const { paths } = (await exchange.get(null, '/v0/openapi.json')).body
    const reads = Object.entries<Record<string, { parameters?: Parameter[] }>>(paths).flatMap(
      ([path, { get }]) => {
        const parameters = get?.parameters ?? []
        return parameters.some(({ name }) => name === 'read_after_shard_id') ? [{ path, parameters }] : []
      },
    )
    expect(reads.length).to.be.at.least(14)
    for (const { path, parameters } of reads) {
      const filled = path.replace(/\{(\w+)\}/g, (_, name) => values[name] as string)
      const required = parameters.filter(
        ({ name, in: place, required }) => place === 'query' && (required || name.startsWith('read_after')),
      )
      const search = new URLSearchParams(
        required.map(({ name }): [string, string] => [name, values[name] ?? '']),
      )
      statements = []
      const { status, body } = await exchange.get(alice, `${filled}?${search}`)
      expect(status, `${path} ${JSON.stringify(body)}`).to.equal(200)
      const { needed, tables } = analyse(statements)
      expect([...needed].sort(), path).to.deep.equal([...new Set(tables.map(projectionOf))].sort())
      expect(needed, path).to.have.length.at.least(1)
    }
  })
})
