/**
 * `read.liquidations`: one public row per mined liquidation step, without its account. `read.liquidation_steps` and
 * `read.liquidation_legs`: decisions with evidence, for their accounts.
 */
import type { Selectable } from 'kysely'
import { sql } from 'kysely'
import type { Tx } from '../../../db/client.ts'
import type {
  ReadLiquidationLegsTable,
  ReadLiquidationStepsTable,
  ReadLiquidationsTable,
} from '../../../db/read-risk-schema.ts'
import { PROJECTED_TABLES } from '../../../db/read-schema.ts'
import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { PositionsMoved } from '../../../domain/journal/journal-row.ts'
import type { LiquidationChanged } from '../../../domain/journal/liquidation-row.ts'
import type { Projection } from '../projection.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, RowChanges, type ShardEntry } from '../row-change.ts'
import { closedOf } from './margin-change.ts'

type Liquidation = Selectable<ReadLiquidationsTable>
type Step = Selectable<ReadLiquidationStepsTable>
type Leg = Selectable<ReadLiquidationLegsTable>

const LIQUIDATIONS = tableOf<Liquidation>({
  table: 'read.liquidations',
  key: ['id'],
  columns: {
    id: 'text',
    market_id: 'integer',
    kind: 'text',
    side: 'text',
    steps: 'bigint',
    price: 'bigint',
    value: 'numeric',
    oracle_price: 'numeric',
    oracle_at: 'bigint',
    batch_id: 'bigint',
    part: 'integer',
    tx_hash: 'text',
    log_index: 'integer',
    block: 'bigint',
    at: 'bigint',
  },
})

const STEPS = tableOf<Step>({
  table: 'read.liquidation_steps',
  key: ['id'],
  columns: {
    id: 'text',
    market_id: 'integer',
    number: 'bigint',
    user_id: 'bigint',
    step: 'text',
    reason: 'text',
    order_id: 'text',
    widenings: 'integer',
    at: 'bigint',
    evidence: 'jsonb',
  },
})

const LEGS = tableOf<Leg>({
  table: 'read.liquidation_legs',
  key: ['step_id', 'place'],
  columns: {
    step_id: 'text',
    place: 'integer',
    market_id: 'integer',
    user_id: 'bigint',
    steps: 'bigint',
    score: 'numeric',
    at: 'bigint',
  },
})

export const liquidations: Projection = {
  name: 'liquidations',
  version: 1,
  tables: PROJECTED_TABLES.liquidations,
  async project(_tx, entries) {
    const mined = new RowChanges<Liquidation>([])
    for (const change of entries.flatMap(minedChanges)) mined.apply(change)
    const steps = entries.flatMap(decided)
    const removed = mined.removed()
    return {
      clauses: [
        ...(mined.changed().length === 0 ? [] : [LIQUIDATIONS.replace(mined.changed())]),
        ...(steps.length === 0 ? [] : [STEPS.replace(steps.map(({ step }) => step))]),
        ...(steps.every(({ legs }) => legs.length === 0)
          ? []
          : [LEGS.replace(steps.flatMap(({ legs }) => legs))]),
      ],
      ...(removed.length > 0 && { before: (tx: Tx) => remove(tx, removed) }),
    }
  },
}

async function remove(tx: Tx, ids: readonly string[]): Promise<void> {
  await sql`delete from read.liquidations where id = any(${ids})`.execute(tx)
}

type Fields = Pick<Liquidation, 'kind' | 'side' | 'steps'> & Partial<Liquidation>

const NONE = { price: null, value: null, oracle_price: null, oracle_at: null, batch_id: null, part: null }

/** `place`: among the row's fills. The id does not contain the account. */
function minedChange(
  marketId: number,
  row: PartSettled | PositionsMoved,
  place: number,
  fields: Fields,
): RowChange<Liquidation> {
  const { tx_hash, log_index, block, at } = row
  const id = `${tx_hash}-${log_index}-${place}`
  const liquidation = { id, market_id: marketId, ...NONE, ...fields, tx_hash, log_index, block, at }
  return { key: id, apply: () => (row.rollback ? undefined : liquidation) }
}

function minedChanges({ marketId, row }: ShardEntry): RowChange<Liquidation>[] {
  if (row.kind === 'part_settled') {
    const { price, batch_id, part } = row
    return row.fills.flatMap(({ forced, side, steps }, place) =>
      forced === undefined
        ? []
        : [
            minedChange(marketId, row, place, {
              ...{ kind: 'forced', steps, price, batch_id, part },
              // A forced order closes the position of the other side.
              side: side === 'LONG' ? 'SHORT' : 'LONG',
            }),
          ],
    )
  }
  if (row.kind !== 'positions_moved' || (row.cause !== 'inherited' && row.cause !== 'deleveraged')) return []
  const closed = closedOf(row)
  if (closed === null) return []
  const { side, steps, value } = closed
  return [
    minedChange(marketId, row, 0, {
      ...{ kind: row.cause, side, steps, value: row.cause === 'deleveraged' ? value : null },
      oracle_price: row.oracle_price === undefined ? null : BigInt(row.oracle_price),
      oracle_at: row.oracle_at ?? null,
    }),
  ]
}

function decided({
  marketId,
  seq,
  row,
}: ShardEntry): { readonly step: Step; readonly legs: readonly Leg[] }[] {
  if (row.kind !== 'liquidation_changed') return []
  const id = stepId(marketId, seq)
  return [{ step: stepOf(marketId, id, row), legs: legsOf(marketId, id, row) }]
}

/** Sorts by the journal within a market. */
const stepId = (marketId: number, seq: number): string => `${marketId}-${String(seq).padStart(12, '0')}`

function stepOf(market_id: number, id: string, row: LiquidationChanged): Step {
  const { number, user_id, step, reason, order_id, widenings, at } = row
  const { legs: _, ...evidence } = row.evidence ?? {}
  return {
    ...{ id, market_id, number, user_id, step, reason, order_id, widenings, at },
    evidence: row.evidence === null ? null : (evidence as Step['evidence']),
  }
}

const legsOf = (market_id: number, step_id: string, { evidence, at }: LiquidationChanged): Leg[] =>
  (evidence?.legs ?? []).map(({ user_id, steps, score }, place) => ({
    ...{ step_id, place, market_id, user_id, steps, score: BigInt(score), at },
  }))
