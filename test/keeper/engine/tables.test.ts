/** Tables that follow an exchange which decides everything: comparisons after groups that were stored, refused and taken back. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, it } from 'mocha'
import pg from 'pg'
import { waitFor } from '../../../client/wait-for.ts'
import type { Statement } from '../../../db/round-trip.ts'
import { recompute } from '../../../domain/auction/auction.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { OrderRow } from '../../../domain/exchange/tables/orders.ts'
import type { Millis, Quote, Steps, UserId } from '../../../domain/units.ts'
import { JournalUnavailable } from '../../../keeper/engine/ports.ts'
import { createTables } from '../../../keeper/engine/store.ts'
import type { BatchEvidence } from '../../../keeper/engine/tables/batch-evidence.ts'
import { ACCOUNT_IDS, addressOf, entriesOfGenesis } from '../../../simulate/exchange/trading/genesis.ts'
import { tradingExchange } from '../../../simulate/exchange/trading/scenario.ts'
import { randomOf } from '../../../simulate/random.ts'
import { loadInputs } from '../../support/rows/batches.ts'
import { BusyExchange } from './support/busy-exchange.ts'
import { limitOrder } from './support/limit-order.ts'
import { WrittenTables } from './support/written-tables.ts'

const SEED = 7
const TICKS = 120

/** Kinds of rows that a run must have, so that its comparisons mean something. */
const KINDS = [
  ...[
    'order_placed',
    'order_ended',
    'order_ending',
    'batch_cleared',
    'batch_voided',
    'prices_updated',
    'request_completed',
  ],
  ...[
    'action_queued',
    'action_numbered',
    'action_signed',
    'part_submitted',
    'lane_registered',
    'nonces_assigned',
  ],
  ...[
    'block_begun',
    'block_completed',
    'block_left',
    'blocks_confirmed',
    'settlement_mismatched',
    'balance_changed',
  ],
  ...['session_key_changed', 'forward_request_executed', 'margin_nonces_invalidated', 'bank_pause_changed'],
  ...[
    'ending_changed',
    'market_listed',
    'market_restricted',
    'fees_announced',
    'protection_announced',
    'calendar_set',
  ],
  ...['switch_armed', 'switch_disarmed', 'switches_fired', 'switches_completed', 'connection_switch_armed'],
  ...[
    'connection_switches_disarmed',
    'relay_changed',
    'adjustment_changed',
    'user_created',
    'command_spanned',
  ],
]

describe('tables that follow an exchange', () => {
  let tables: WrittenTables
  beforeEach(async () => {
    tables = await WrittenTables.open()
    const rows = entriesOfGenesis()
    tables.apply(rows)
    await tables.store(rows)
  })
  afterEach(() => tables.close())

  /** Inputs of batches, which a decision that is repeated states again. */
  let decided: Parameters<BatchEvidence['keep']>[] = []

  function keepInputs(...batch: Parameters<BatchEvidence['keep']>): void {
    decided.push(batch)
    tables.evidence.keep(...batch)
  }

  const exchangeOf = () => tradingExchange(tables.applied, { keepInputs })

  /** Stores the rows, which were applied from the position on, perhaps after an attempt that is refused. */
  async function storeOpen(
    busy: BusyExchange,
    position: number,
    { isRefused = false, isBehind = false },
  ): Promise<void> {
    const rows = busy.rows
    busy.rows = []
    if (rows.length === 0) return
    if (isRefused) {
      tables.refuse(rows, position)
      tables.apply(rows)
      for (const batch of decided) tables.evidence.keep(...batch)
    }
    if (isBehind) await tables.storeBehind(rows)
    else await tables.store(rows)
    decided = []
  }

  it('when traders, operators, workers, owners and the chain act at once, the tables equal the state, also after a restart', async () => {
    const random = randomOf(SEED)
    const busy = new BusyExchange(exchangeOf(), random)
    let position = tables.applied.position() - busy.rows.length
    for (let tick = 1; tick <= TICKS; tick++) {
      await busy.tick()
      if (random.chance(0.4)) continue
      const isCompared = tick % 10 === 0
      await storeOpen(busy, position, {
        isRefused: random.chance(0.2),
        isBehind: !isCompared && random.chance(0.5),
      })
      if (tick % 40 === 0) {
        await tables.restart()
        busy.exchange = exchangeOf()
      }
      position = tables.applied.position()
      if (isCompared && busy.rows.length === 0 && tables.isWritten)
        expect(await tables.compare(), `tick ${tick}`).to.deep.equal([])
    }
    await storeOpen(busy, position, {})
    expect(await tables.compare()).to.deep.equal([])
    await tables.compareJournal({ hasBlocks: true })
    expect(KINDS.filter((kind) => !busy.kinds.has(kind))).to.deep.equal([])
    await compareChain()
    await compareEvidence()
  }).timeout(300_000)

  /** Blocks that can still be rolled back, the next block, and armed connections. */
  async function compareChain(): Promise<void> {
    const { state } = tables.applied
    const blocks = await tables.db.selectFrom('chain_blocks').selectAll().orderBy('number').execute()
    const kept = [...state.blocks.rows()]
      .map(({ number, hash, parent_hash, timestamp }) => ({ number, hash, parent_hash, timestamp }))
      .sort((a, b) => a.number - b.number)
    const from = state.chain.need('chain').kept_from
    expect(blocks.filter(({ number }) => number >= from)).to.deep.equal(
      kept.filter(({ number }) => number >= from),
    )
    const { next_block } = await tables.db
      .selectFrom('chain_progress')
      .select('next_block')
      .executeTakeFirstOrThrow()
    expect(next_block).to.equal(state.chain.need('chain').next_block)
    const connections = await tables.db
      .selectFrom('connection_switches')
      .select(['connection_id', 'user_id', 'timeout_seconds', 'key_name'])
      .orderBy('connection_id')
      .execute()
    expect(connections).to.deep.equal(
      [...state.connectionSwitches.rows()].sort((a, b) => (a.connection_id < b.connection_id ? -1 : 1)),
    )
    const { rows: found } = await sql<{ mismatches: number }>`
      select count(distinct row ->> 'tx_hash')::integer as mismatches from journal where row ->> 'kind' = 'settlement_mismatched'
    `.execute(tables.db)
    const stored = await tables.db.selectFrom('settlement_mismatches').selectAll().execute()
    expect(stored).to.have.length(found[0]?.mismatches ?? 0)
  }

  /** Every batch has the inputs from which it can be recomputed, and its report; every request its answer. */
  async function compareEvidence(): Promise<void> {
    const batches = await tables.db
      .selectFrom('batches as b')
      .leftJoin('used_reports as u', (join) =>
        join
          .onRef('u.market_id', '=', 'b.market_id')
          .onRef('u.observed_at', '=', 'b.oracle_at')
          .on('u.feed', '=', 'index'),
      )
      .select(['b.market_id', 'b.batch_id', 'b.price', 'b.volume', 'b.oracle_price', 'u.price as reported'])
      .execute()
    expect(batches.length).to.be.greaterThan(5)
    for (const { market_id, batch_id, price, volume, oracle_price, reported } of batches) {
      const inputs = await loadInputs(tables.db, market_id, batch_id)
      expect(inputs, `${market_id}-${batch_id}`).to.not.equal(undefined)
      if (inputs !== undefined) expect(recompute(inputs)).to.include({ price, volume })
      expect(reported).to.equal(oracle_price)
    }
    const requests = await tables.db.selectFrom('client_requests').selectAll().execute()
    expect(requests).to.have.length(tables.state.requests.size)
    for (const { user_id, client_request_id, digest, answer } of requests) {
      const {
        results,
        balance,
        read_after,
        digest: expected,
      } = tables.state.requests.need(`${user_id}-${client_request_id}`)
      expect(digest.toString('hex')).to.equal(expected)
      expect(JSON.parse(answer)).to.deep.equal({ results, balance, read_after })
    }
  }

  it('when an owner has lost the journal, it changes no table', async () => {
    const rows: Entry[] = [
      {
        shard: 'accounts',
        seq: 2 * ACCOUNT_IDS.length + 1,
        row: { kind: 'user_created', user_id: 6, address: addressOf(6), at: 1 },
      },
    ]
    tables.apply(rows)
    const statements = tables.collect(rows)
    await sql`update engine_ownership set token = token + 1`.execute(tables.db)
    expect(await tables.append(rows)).to.equal(false)
    expect(await tables.write(statements)).to.equal(false)
    expect(
      await tables.db.selectFrom('users').select('user_id').where('user_id', '=', 6).execute(),
    ).to.deep.equal([])
    await sql`update engine_ownership set token = token - 1`.execute(tables.db)
    expect(await tables.append(rows)).to.equal(true)
    expect(await tables.write(statements)).to.equal(true)
    expect(await tables.compare()).to.deep.equal([])
  })

  /** Rows that place limit orders of the first account, decided by the exchange. */
  function placements(count: number): Entry[] {
    const exchange = exchangeOf()
    const rows: Entry[] = []
    for (let at = 0; at < count; at++) {
      const salt = tables.applied.position()
      const order = limitOrder(salt)
      const items = [{ kind: 'place', order, clientOrderId: null, absentUpTo: null } as const]
      const userId = ACCOUNT_IDS[0] as UserId
      const now = 1_800_000_000_000 as Millis
      const decision = exchange.decide(
        { kind: 'orders', userId, items, isAtomic: false, request: null },
        { now },
      )
      tables.apply(decision.rows)
      rows.push(...decision.rows)
    }
    return rows
  }

  const namesOf = (statements: readonly Statement[]): string[] => statements.map(({ name }) => name)

  it('when a group has one placement or fifty, it takes the same statements, of the tables concerned', async () => {
    const expected = ['state-put-orders']
    for (const count of [1, 50]) {
      const rows = placements(count)
      expect(rows.filter(({ row }) => row.kind === 'order_placed')).to.have.length(count)
      const statements = tables.collect(rows)
      expect(namesOf(statements)).to.deep.equal(expected)
      expect(await tables.append(rows)).to.equal(true)
      expect(await tables.write(statements)).to.equal(true)
    }
    expect(await tables.compare()).to.deep.equal([])
  })

  it('when a command is refused, the next group writes nothing of what its decision had tried', async () => {
    const exchange = exchangeOf()
    const items = Array.from({ length: 3 }, (_, at) => ({
      kind: 'place' as const,
      // The account cannot pay for the last one, so that none is placed.
      order: { ...limitOrder(900 + at), quantity: (at === 2 ? 10_000_000 : 10) as Steps },
      clientOrderId: null,
      absentUpTo: null,
    }))
    const userId = ACCOUNT_IDS[0] as UserId
    const now = 1_800_000_000_000 as Millis
    const refused = exchange.decide({ kind: 'orders', userId, items, isAtomic: true, request: null }, { now })
    expect(refused.rows).to.deep.equal([])
    const { rows } = exchange.decide({ kind: 'log_in', address: addressOf(50) }, { now })
    tables.apply(rows)
    const statements = tables.collect(rows)
    expect(namesOf(statements)).to.deep.equal(['state-put-users'])
  })

  it('when a live order fills, its row is not written; when it begins to close and when it ends, it is', async () => {
    await tables.store(placements(1))
    const { state } = tables.applied
    const order = [...state.orders.rows()].at(-1) as OrderRow
    const rows = exchangeOf().decide(
      { kind: 'log_in', address: addressOf(50) },
      { now: order.acceptedAt },
    ).rows
    const written = (change: Partial<OrderRow>): unknown[] => {
      state.orders.put({ ...order, ...change })
      const statement = tables.collect(rows).find(({ name }) => name === 'state-change-orders')
      return statement === undefined ? [] : JSON.parse(statement.values[0] as string)
    }
    const filled = { filled: 3 as Steps, settling: 2 as Steps, reserved: 1n as Quote }
    const closing = { ...filled, closingReason: 'USER_CANCELLED' } as const
    const ended = {
      ...closing,
      status: 'CANCELLED',
      settling: 0 as Steps,
      endedAt: order.acceptedAt,
    } as const
    expect(written(filled)).to.deep.equal([])
    expect(written(closing)).to.have.length(1)
    expect(written({ ...closing, filled: 4 as Steps })).to.deep.equal([])
    expect(written(ended)).to.have.length(1)
    expect(written({ ...ended, filled: 5 as Steps })[0]).to.deep.include({ status: 'CANCELLED', filled: 5 })
    expect(written(filled), 'revived by a fork').to.have.length(1)
  })

  it('when the tables have been written, listeners are notified of each journal, and not before', async () => {
    const listener = new pg.Client(tables.url)
    await listener.connect()
    try {
      const heard: string[] = []
      listener.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`))
      await listener.query('listen journal')
      const readers = createTables(tables.pool, tables.state, { logger: SILENT, onRefused: fail })
      readers.begin()
      const rows = placements(2)
      const write = readers.collect(rows)
      await tables.append(rows)
      const step = { token: tables.token, from: 1, to: 2 }
      expect(await write.run({ ...step, token: tables.token + 1 })).to.equal(false)
      await listener.query('select 1')
      expect(heard).to.deep.equal([])
      expect(await write.run(step)).to.equal(true)
      await waitFor(
        () => listener.query('select 1').then(() => heard.length),
        (count) => count > 0,
      )
      expect(heard).to.deep.equal([`journal m1:${rows.at(-1)?.seq}`])
    } finally {
      await listener.end()
    }
  })

  it('when the tables lack several groups, one write has the changes of all of them, one statement per table', async () => {
    for (let count = 0; count < 5; count++) await tables.storeBehind(placements(1))
    expect(await tables.db.selectFrom('orders').select('order_id').execute()).to.have.length(0)
    const rows = placements(1)
    const statements = tables.collect(rows)
    expect(namesOf(statements)).to.deep.equal(['state-put-orders'])
    await tables.append(rows)
    expect(await tables.write(statements)).to.equal(true)
    expect(await tables.db.selectFrom('orders').select('order_id').execute()).to.have.length(6)
    expect(await tables.compare()).to.deep.equal([])
  })

  it('when the outcome of a write is lost, its repetition writes nothing, and the tables contain its groups', async () => {
    const written = createTables(tables.pool, tables.state, { logger: SILENT, onRefused: fail })
    written.begin()
    const rows = placements(1)
    const write = written.collect(rows)
    await tables.append(rows)
    const step = { token: tables.token, from: 1, to: 2 }
    expect(await write.run(step)).to.equal(true)
    expect(await write.run(step)).to.equal(false)
    expect(await written.written()).to.equal(2)
    expect(await tables.compare()).to.deep.equal([])
  })

  it('when the database refuses one row of a write, all other rows are written, and the refused row is counted and left out', async () => {
    let refused = 0
    const written = createTables(tables.pool, tables.state, { logger: SILENT, onRefused: () => refused++ })
    written.begin()
    const rows = placements(7)
    const hash = limitOrder(tables.applied.position() - 4).hash
    await sql`alter table orders add check (hash <> ${sql.lit(hash)})`.execute(tables.db)
    const write = written.collect(rows)
    await tables.append(rows)
    const step = { token: tables.token, from: 1, to: 2 }
    expect(await write.run(step).catch((error: unknown) => error)).to.be.instanceOf(JournalUnavailable)
    expect([await written.written(), refused]).to.deep.equal([1, 0])
    expect(await write.run(step)).to.equal(true)
    expect([await written.written(), refused]).to.deep.equal([2, 1])
    const stored = await tables.db.selectFrom('orders').select('hash').execute()
    expect(stored).to.have.length(6)
    expect(stored.map((order) => order.hash)).to.not.include(hash)
  })
})

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

function fail(): never {
  throw new Error('no row is refused')
}
