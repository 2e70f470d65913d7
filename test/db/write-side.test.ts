/** The statements that write a table of the write side stand in db/ and nowhere else. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { WRITE_SIDE } from '../../db/grants.ts'

const PRODUCT = [
  'domain',
  'service',
  'keeper',
  'indexer',
  'api',
  'client',
  'stack',
  'bench',
  'tasks',
  'ignition',
]
const NAME = `["']?(?:public\\.)?["']?([a-z_.]+)`
const WRITES = [
  `(?:insertInto|updateTable|deleteFrom|mergeInto|replaceInto)\\(\\s*${NAME}`,
  `(?:insert\\s+into|delete\\s+from|merge\\s+into|copy)\\s+(?:only\\s+)?${NAME}`,
  `update\\s+(?:only\\s+)?${NAME}["']?\\s+(?:(?:as\\s+)?[a-z_]+\\s+)?set\\b`,
]
const TRUNCATED = /truncate\s+(?:table\s+)?([^`;]*)/gi

/** Tables of the write side that the text writes. */
function writtenBy(text: string): string[] {
  const named = WRITES.flatMap((pattern) =>
    [...text.matchAll(new RegExp(pattern, 'gi'))].map(([, name]) => name ?? ''),
  )
  const truncated = [...text.matchAll(TRUNCATED)].flatMap(([, list = '']) => list.match(/[a-z_.]+/g) ?? [])
  return [...new Set([...named, ...truncated])].filter((name) => WRITE_SIDE.includes(name))
}

describe('the writers of the write side', () => {
  it('when product code outside db/ has a statement that writes a table of the write side, its file and table are named', () => {
    const files = execFileSync('git', ['ls-files', '-z', ...PRODUCT], { encoding: 'utf8' }).split('\0')
    const found = files
      .filter((path) => path.endsWith('.ts') && existsSync(path))
      .flatMap((path) => writtenBy(readFileSync(path, 'utf8')).map((table) => `${path}: ${table}`))
    expect(found).to.deep.equal([])
  })

  for (const [statement, table] of [
    ["db.insertInto('orders').values(row)", 'orders'],
    ["tx\n  .updateTable(\n    'orders')", 'orders'],
    ["tx.deleteFrom('leases as l')", 'leases'],
    ['insert into public.journal (shard) values ($1)', 'journal'],
    ['update orders o set reserved = 0', 'orders'],
    ['with x as (UPDATE ONLY markets SET mode = 0 returning 1) select', 'markets'],
    ['delete from "session_keys" where true', 'session_keys'],
    ['truncate read.orders, batches', 'batches'],
    ['truncate shards, journal cascade', 'shards'],
  ]) {
    it(`when the text is ${JSON.stringify(statement)}, it finds ${table}`, () => {
      expect(writtenBy(statement ?? '')).to.include(table)
    })
  }

  for (const statement of [
    "tx.selectFrom('orders').forUpdate()",
    'insert into read.orders (order_id) select 1',
    'on conflict (user_id) do update set size = 1',
    'select * from orders for update',
  ]) {
    it(`when the text is ${JSON.stringify(statement)}, it finds nothing`, () => {
      expect(writtenBy(statement)).to.deep.equal([])
    })
  }
})
