/** A database of the previous schema, with rows in every table, is migrated to the newest schema and back without a loss. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import { createMigrator, migrate } from '../../db/migrator.ts'
import { DEFAULT_PRICE_PROTECTION } from '../../domain/market/price-protection.ts'
import { connect, type TestDatabase } from '../indexer/support/database.ts'
import { emptyDatabase } from '../support/postgres.ts'

/** The newest migration of the previous version. */
const PREVIOUS = '0009-lean-reads'

interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
}

type Row = Readonly<Record<string, unknown>>

const KINDS = ['perpetual', 'future', 'binary_future'] as const

/** Columns that distinguish the rows of a table or matter to a migration. Every other column is filled by its type. */
const ROWS: Readonly<Record<string, readonly Row[]>> = {
  shard_log: [
    { seq: 1, row: '{"kind": "order_placed", "order_id": "1-1", "note": "batch_unwound"}' },
    { seq: 2, row: '{"kind":"batch_unwound","batch_id":1,"why":"\\"kind\\": \\"batch_unwound\\""}' },
    { seq: 3, row: '{ "batch_id" : 2, "kind" : "batch_unwound", "reopened": ["1-1"] }' },
    { seq: 4, row: '{"kind": "positions_moved", "cause": "insolvent_listed", "rollback": true}' },
    { seq: 5, row: '{"kind":"positions_moved","cause":"inherited","rollback":false}' },
    {
      seq: 6,
      row: '{"kind": "order_ended", "reason": "USER_CANCELLED", "note": "\\"cause\\": \\"insolvent_listed\\""}',
    },
  ],
  markets: KINDS.map((kind, at) => ({
    ...{ market_id: at + 1, kind },
    spec: `{"fundingSession": ${kind === 'perpetual'}}`,
  })),
  'read.markets': KINDS.map((kind, at) => ({ market_id: at + 1, kind })),
  batches: ['SETTLING', 'SETTLED', 'UNWOUND'].map((status, at) => ({
    ...{ market_id: 1, batch_id: at + 1, status, oracle_at: at + 5 },
  })),
  'read.batches': [1, 2, 3].map((batch_id) => ({ market_id: 1, batch_id })),
  actions: ['QUEUED', 'SIGNED', 'SUBMITTED', 'MINED', 'REVERTED', 'UNWOUND'].map((status, at) => ({
    queue_no: at + 1,
    kind: 'settle_part',
    status,
  })),
  fills: ['MATCHED', 'SUBMITTED', 'MINED', 'CONFIRMED', 'RETRYING', 'FAILED'].map((status, at) => ({
    fill_id: `1-1-1-${at}`,
    place: at,
    status,
  })),
  orders: [
    ['PENDING_TRIGGER', null, null],
    ['OPEN', null, 'MARKET_REMAINDER'],
    ['CANCEL_PENDING_FINALIZE', null, 'USER_CANCELLED'],
    ['FILLED', 'FILLED', null],
    ['CANCELLED', 'SETTLEMENT_REVERTED', null],
    ['EXPIRED', 'SIGNER_EXPIRED', null],
  ].map(([status, status_reason, closing_reason], at) => ({
    ...{ order_id: `1-${at}`, seq: at, salt: at, hash: `0x${at}`, status, status_reason, closing_reason },
    ...{ quantity: 9, filled: 2, settling: 3, ended_at: status_reason === null ? null : 7 },
  })),
  relayer_transactions: ['SIGNED', 'BROADCAST', 'MINED', 'REVERTED', 'REPLACED'].map((status, at) => ({
    tx_hash: `0x${at}`,
    status,
    error: status === 'REVERTED' ? 'unnamed: reverted' : null,
  })),
  relay_requests: ['REQUESTED', 'SIGNED', 'MINED', 'FAILED'].map((status, at) => ({
    request_id: at + 1,
    kind: 'faucet',
    status,
  })),
  'read.fills': [{ fill_id: '1-1-1-0' }, { fill_id: '1-1-1-1', failure: 'reverted', tx_hash: null }],
}

/** A value that only this column has, as text. */
function sampleOf({ name, type }: Column, at: number): unknown {
  if (type === 'numeric') return `${10n ** 40n + BigInt(at)}`
  if (type === 'bigint' || type === 'integer') return 11 + at
  if (type === 'boolean') return at % 2 === 0
  if (type === 'bytea') return `\\x0${at}ff`
  if (type === 'ARRAY') return `{a,"b ${at}"}`
  if (type === 'json' || type === 'jsonb') return `{"${name}": [${at}, "1.50"]}`
  return `${name} ${at}`
}

/** The row without the columns that a later migration has added. */
const only =
  (names: readonly string[]) =>
  (row: Row): Row =>
    Object.fromEntries(names.map((name) => [name, row[name]]))

describe('a database of the previous schema', function () {
  this.timeout(60_000)
  let test: TestDatabase
  before(async () => {
    test = connect(await emptyDatabase())
    const { error } = await createMigrator(test.db).migrateTo(PREVIOUS)
    expect(error).to.equal(undefined)
  })
  after(() => test.close())

  async function tables(): Promise<Map<string, Column[]>> {
    const { rows } = await sql<Column>`
      select case table_schema when 'read' then 'read.' else '' end || table_name as table, column_name as name, data_type as type
      from information_schema.columns join information_schema.tables using (table_schema, table_name)
      where table_schema in ('public', 'read') and table_type = 'BASE TABLE' and table_name not like 'kysely%'
      order by ordinal_position
    `.execute(test.db)
    return Map.groupBy(rows, ({ table }) => table)
  }

  /** Without references and triggers, so that every table can be filled by itself. */
  const fill = async (): Promise<void> => {
    const all = await tables()
    await test.db.transaction().execute(async (tx) => {
      await sql`set local session_replication_role = replica`.execute(tx)
      for (const [table, columns] of all) {
        for (const [at, given] of (ROWS[table] ?? [{}]).entries()) {
          const values = columns.map((column) =>
            column.name in given ? given[column.name] : sampleOf(column, at),
          )
          await sql`
            insert into ${sql.table(table)} (${sql.join(columns.map(({ name }) => sql.ref(name)))})
            overriding system value values (${sql.join(values)})
          `.execute(tx)
        }
      }
    })
  }

  /** Every row as text, so that the spacing of stored JSON counts too. */
  const dump = async (): Promise<Record<string, Row[]>> => {
    const content: Record<string, Row[]> = {}
    for (const [table, columns] of await tables()) {
      const texts = columns.map(({ name }) => sql`${sql.ref(name)}::text as ${sql.ref(name)}`)
      const { rows } = await sql<Row>`select ${sql.join(texts)} from ${sql.table(table)}`.execute(test.db)
      content[table] = rows.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
    }
    return content
  }

  const reword = (text: unknown): unknown =>
    String(text)
      .replace(/^(.*?"kind"\s*:\s*)"batch_unwound"/, '$1"batch_voided"')
      .replace(/^(.*?"cause"\s*:\s*)"insolvent_listed"/, '$1"insolvency_reported"')

  it('when it is migrated to the newest schema and back, every row of every table but the logs of blocks is carried over and restored', async () => {
    await fill()
    const before = await dump()
    expect(Object.values(before).every((rows) => rows.length > 0)).to.equal(true)

    await migrate(test.db)
    const {
      shard_log: journal = [],
      relay_requests: requests,
      // The chain has them, and the table had no reader any more.
      chain_logs: _logs,
      'read.projection': places = [],
      ...others
    } = before
    const hexOf = (text: unknown) => Buffer.from(String(text)).toString('hex')
    const voided = (rows: readonly Row[] = []): Row[] =>
      rows.map((row) => ({ ...row, status: row.status === 'UNWOUND' ? 'VOIDED' : row.status }))
    const expected = {
      ...others,
      faucet_requests: requests,
      journal: journal.map((row) => ({ ...row, row: reword(row.row) })),
      actions: voided(before.actions),
      batches: voided(before.batches).map((row) => ({ ...row, inputs: `\\x${hexOf(row.inputs)}` })),
      ...{ funding_states: [], price_averages: [], 'read.funding_rates': [], 'read.price_candles': [] },
      ...{ 'read.candles': [], 'read.open_interest_changes': [] },
      ...{ auth_challenges: [], relay_operations: [], forwarder_nonces: [], margin_nonce_floors: [] },
      ...{ adjustment_attempts: [], used_margin_nonces: [], 'read.adjustment_attempts': [] },
      ...{ 'read.withdrawal_events': [], 'read.position_states': [], 'read.realized_profits': [] },
      ...{ 'read.ledger_transactions': [], 'read.funding_indexes': [] },
      ...{ 'read.funding_positions': [], 'read.funding_spans': [], 'read.open_interest': [] },
      ...{ 'read.liquidations': [], 'read.liquidation_steps': [], 'read.liquidation_legs': [] },
      ...{ 'read.market_risk': [], deleveraging_ranks: [], liquidations: [], final_prices: [] },
      calendar_exceptions: [{ calendar: 'NYSE', day: '2025-01-09', opens: null, closes: null }],
      ...{ recent_reports: [], used_reports: [], connection_switches: [], keepers: [], indexer_leases: [] },
      engine_groups: [],
      engine_ownership: [{ token: '0' }],
      engine_lease: [{ token: '0', renewals: '0', is_released: 'true' }],
      engine_checkpoints: [],
      relayer_choices: [],
      engine_checkpoint_chunks: [],
      // A random key.
      proof_keys: [{}],
      ...{ 'read.feed': [], 'read.feed_heads': [], 'read.feed_state': [] },
      'read.places': places.flatMap((row) =>
        ['users', 'markets', 'batches', 'balances', 'orders'].map((projection) => ({
          ...{ ...row, projection, version: '1', fill_to: null },
        })),
      ),
    }
    const migrated = await dump()
    expect(Object.keys(migrated)).to.have.members(Object.keys(expected))
    for (const [table, rows = []] of Object.entries(expected)) {
      const names = Object.keys(rows[0] ?? {})
      expect(migrated[table]?.map(only(names)), table).to.have.deep.members(rows)
    }
    const calendars = migrated.markets?.map(only(['kind', 'calendar']))
    expect(calendars).to.have.deep.members(
      KINDS.map((kind) => ({ kind, calendar: kind === 'perpetual' ? 'NYSE' : null })),
    )
    for (const table of ['markets', 'read.markets']) {
      const widths = migrated[table]?.map(only(['kind', 'price_protection', 'next_price_protection_at']))
      expect(widths, table).to.have.deep.members(
        KINDS.map((kind) => ({
          ...{ kind, price_protection: `${DEFAULT_PRICE_PROTECTION[kind]}`, next_price_protection_at: null },
        })),
      )
    }
    const batches = migrated['read.batches']?.map(only(['batch_id', 'status', 'oracle_at', 'rule_version']))
    expect(batches).to.have.deep.members(
      ['SETTLING', 'SETTLED', 'VOIDED'].map((status, at) => ({
        ...{ batch_id: `${at + 1}`, status, oracle_at: `${at + 5}`, rule_version: null },
      })),
    )
    const kinds = migrated.journal?.map(({ row }) => JSON.parse(String(row)).kind)
    expect(kinds?.filter((kind) => kind === 'batch_voided')).to.have.length(2)

    const { error } = await createMigrator(test.db).migrateTo(PREVIOUS)
    expect(error).to.equal(undefined)
    expect(await dump()).to.deep.equal({ ...before, chain_logs: [] })
  })
})
