/** `read.batches`: one row per cleared batch with the states of its parts, and `read.candles`, which follow from them. */
import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import type { BatchPartState } from '../../../db/read-market-data-schema.ts'
import { PROJECTED_TABLES, type ReadBatchesTable } from '../../../db/read-schema.ts'
import type {
  BatchCleared,
  BatchVoided,
  MatchedFill,
  PartSettled,
} from '../../../domain/journal/batch-rows.ts'
import { SPANS, spanStart } from '../../../domain/market-data/interval.ts'
import { keyColumns, type Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { byMarket, type RowChange, RowChanges, type ShardEntry, signOfRow } from '../row-change.ts'
import { candlesOf, extendedCandles } from './candles.ts'

type ReadBatch = Selectable<ReadBatchesTable>

const BATCHES = tableOf<ReadBatch>({
  table: 'read.batches',
  key: ['market_id', 'batch_id'],
  columns: {
    market_id: 'integer',
    batch_id: 'bigint',
    as_of: 'bigint',
    price: 'bigint',
    lo: 'bigint',
    hi: 'bigint',
    volume: 'bigint',
    demand: 'bigint',
    supply: 'bigint',
    rule: 'text',
    rule_version: 'integer',
    parts: 'integer',
    settled_parts: 'integer',
    status: 'text',
    oracle_price: 'numeric',
    oracle_at: 'bigint',
    filled: 'bigint',
    fills: 'integer',
    part_states: 'jsonb',
    is_final: 'boolean',
  },
})

export const batches: Projection = {
  name: 'batches',
  version: 2,
  tables: PROJECTED_TABLES.batches,
  async project(tx, entries) {
    const changes = entries.flatMap(batchChanges)
    if (changes.length === 0) return { clauses: [] }
    const [stored, { clause, computed }] = await Promise.all([
      readBatches(tx, [...new Set(changes.map(({ key }) => key))]),
      extendedCandles(tx, clearedBatches(entries)),
    ])
    for (const change of changes) stored.apply(change)
    const changed = stored.changed()
    return {
      clauses: [BATCHES.replace(changed), clause],
      feed: changed.map((batch) => ({ marketId: batch.market_id, batches: [batch] })),
      after: computed.flatMap((marketId) => {
        const minutes = minutesOf(marketId, entries, stored)
        return minutes.length === 0 ? [] : candlesOf(marketId, minutes)
      }),
    }
  },
}

const batchKey = (marketId: number, batchId: number): string => `${marketId} ${batchId}`

async function readBatches(tx: Tx, keys: readonly string[]): Promise<RowChanges<ReadBatch>> {
  const [markets, ids] = keyColumns(keys, 2)
  const { rows } = await sql<ReadBatch>`
    select stored.* from unnest(${markets}::integer[], ${ids}::bigint[]) as touched (market_id, batch_id)
    cross join lateral (
      select * from read.batches where market_id = touched.market_id and batch_id = touched.batch_id offset 0
    ) stored
  `.execute(tx)
  return new RowChanges(rows.map((batch) => [batchKey(batch.market_id, batch.batch_id), batch] as const))
}

/** The batches that clear in each market; null for a market of which a batch is voided. */
const clearedBatches = (entries: readonly ShardEntry[]): Map<number, readonly ReadBatch[] | null> =>
  new Map(
    [...byMarket(entries)].map(([marketId, own]) => [
      marketId,
      own.some(({ row }) => row.kind === 'batch_voided')
        ? null
        : own.flatMap(({ row }) => (row.kind === 'batch_cleared' ? cleared(marketId, row) : [])),
    ]),
  )

/** The minutes whose candles the market's rows change: those of batches that cleared or were voided. */
function minutesOf(market: number, entries: readonly ShardEntry[], stored: RowChanges<ReadBatch>): number[] {
  const touched = entries.flatMap(({ marketId, row }) =>
    marketId === market && (row.kind === 'batch_cleared' || row.kind === 'batch_voided')
      ? (stored.get(batchKey(marketId, row.batch_id))?.as_of ?? [])
      : [],
  )
  return [...new Set(touched.map((at) => spanStart(SPANS[0], at)))]
}

function batchChanges({ marketId, row }: ShardEntry): RowChange<ReadBatch>[] {
  switch (row.kind) {
    case 'batch_cleared': {
      const batch = cleared(marketId, row)
      return [{ key: batchKey(marketId, row.batch_id), apply: () => batch }]
    }
    case 'part_submitted':
      return [
        changeIfKnown(marketId, row.batch_id, (batch) =>
          withPart(batch, row.part, { status: 'SUBMITTED', tx_hash: row.tx_hash }),
        ),
      ]
    case 'part_settled':
      return [changeIfKnown(marketId, row.batch_id, (batch) => settled(batch, row))]
    case 'part_confirmed':
      return [
        changeIfKnown(marketId, row.batch_id, (batch) => withPart(batch, row.part, { status: 'CONFIRMED' })),
      ]
    case 'batch_voided':
      return [changeIfKnown(marketId, row.batch_id, (batch) => voided(batch, row))]
    default:
      return []
  }
}

const cleared = (marketId: number, row: BatchCleared): ReadBatch => ({
  market_id: marketId,
  batch_id: row.batch_id,
  as_of: row.as_of,
  price: row.price,
  lo: row.lo,
  hi: row.hi,
  volume: row.volume,
  demand: row.demand,
  supply: row.supply,
  rule: row.rule,
  rule_version: row.rule_version ?? null,
  parts: row.parts,
  settled_parts: 0,
  status: 'SETTLING',
  oracle_price: BigInt(row.oracle_price),
  oracle_at: row.oracle_at,
  filled: stepsOf(row.fills),
  fills: row.fills.length,
  part_states: Array.from({ length: row.parts }, () => ({ status: 'MATCHED', tx_hash: null })),
  is_final: false,
})

/** Steps of one side. Both sides of a batch, and of each part, are equal. */
const stepsOf = (fills: readonly MatchedFill[]): number =>
  fills.reduce((sum, { side, steps }) => (side === 'LONG' ? sum + steps : sum), 0)

function withPart(batch: ReadBatch, part: number, change: Partial<BatchPartState>): ReadBatch {
  const part_states = batch.part_states.map((state, at) =>
    at === part - 1 ? { ...state, ...change } : state,
  )
  const is_final = part_states.every(({ status }) => status === 'CONFIRMED' || status === 'VOIDED')
  return { ...batch, part_states, is_final }
}

function settled(batch: ReadBatch, row: PartSettled): ReadBatch {
  const status = row.rollback ? 'RETRYING' : 'MINED'
  return mined(
    withPart(batch, row.part, { status, tx_hash: row.tx_hash }),
    batch.settled_parts + signOfRow(row),
  )
}

function voided(before: ReadBatch, { fills }: BatchVoided): ReadBatch {
  const parts = [...new Set(fills.map(({ part }) => part))]
  const batch = parts.reduce((each, part) => withPart(each, part, { status: 'VOIDED' }), before)
  const filled = before.filled - stepsOf(fills)
  return { ...batch, status: 'VOIDED', filled, fills: before.fills - fills.length }
}

/** A voided batch stays voided, also if its earlier parts are mined. */
const mined = (batch: ReadBatch, settled_parts: number): ReadBatch => {
  const status = settled_parts === batch.parts ? 'SETTLED' : 'SETTLING'
  return { ...batch, settled_parts, status: batch.status === 'VOIDED' ? batch.status : status }
}

/** A batch that this database did not clear has no row. */
const changeIfKnown = (
  marketId: number,
  batchId: number,
  change: (batch: ReadBatch) => ReadBatch,
): RowChange<ReadBatch> => ({
  key: batchKey(marketId, batchId),
  apply: (batch) => batch && change(batch),
})
