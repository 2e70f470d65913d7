/** `read.fills`: one row per order and part, from its match to its confirmation. */
import type { Selectable } from 'kysely'
import type { ReadFillsTable } from '../../../db/read-schema.ts'
import type {
  BatchCleared,
  FillSettled,
  PartSettled,
  PartSubmitted,
} from '../../../domain/journal/batch-rows.ts'
import { tableOf } from '../read-table.ts'
import { type RowChange, type ShardEntry, signOfRow } from '../row-change.ts'

export type ReadFill = Selectable<ReadFillsTable>

export const FILLS = tableOf<ReadFill>({
  table: 'read.fills',
  key: ['fill_id'],
  columns: {
    fill_id: 'text',
    market_id: 'integer',
    batch_id: 'bigint',
    part: 'integer',
    place: 'integer',
    order_id: 'text',
    user_id: 'bigint',
    side: 'text',
    price: 'bigint',
    steps: 'bigint',
    taker_steps: 'bigint',
    protection_price: 'bigint',
    fee: 'numeric',
    realized_pnl: 'numeric',
    available_margin_delta: 'numeric',
    status: 'text',
    tx_hash: 'text',
    block: 'bigint',
    action_id: 'bigint',
    matched_at: 'bigint',
    submitted_at: 'bigint',
    mined_at: 'bigint',
    confirmed_at: 'bigint',
    failed_at: 'bigint',
    failure: 'text',
    updated_at: 'bigint',
    forced: 'boolean',
    builder: 'text',
  },
})

/** Columns that change with the fill's part. */
const OF_PART = [
  'status',
  'tx_hash',
  'block',
  'action_id',
  'submitted_at',
  'mined_at',
  'confirmed_at',
  'failed_at',
  'failure',
  'updated_at',
] as const
const AMOUNTS = ['fee', 'realized_pnl', 'available_margin_delta'] as const

type PartChange = Partial<Pick<ReadFill, (typeof OF_PART)[number]>>

export const changeFills = FILLS.update([...OF_PART, ...AMOUNTS])
/** Each row stands for all fills of its part. */
export const changePartsOfFills = FILLS.update(OF_PART, ['market_id', 'batch_id', 'part'])

/** The fills of one part. They change together, because a part is one transaction. */
export type PartFills = readonly ReadFill[]

export const partKey = (batchId: number, part: number): string => `${batchId}-${part}`

/** Order fields shown with a fill, when its row is applied; undefined if the order is unknown. */
export type OrderOfFill = (orderId: string) => ShownOfOrder | undefined

interface ShownOfOrder {
  readonly protection_price: number | null
  readonly forced: boolean
  readonly builder: string | null
}

export function fillChanges({ marketId, row }: ShardEntry, orderOf: OrderOfFill): RowChange<PartFills>[] {
  switch (row.kind) {
    case 'batch_cleared':
      return matched(marketId, row, orderOf)
    case 'part_submitted':
      return [changeEveryFill(row, () => submitted(row))]
    case 'part_settled':
      return [
        {
          key: partKey(row.batch_id, row.part),
          apply: (fills = []) => settled(marketId, row, fills, orderOf),
        },
      ]
    case 'part_confirmed':
      return [changeEveryFill(row, () => ({ status: 'CONFIRMED', confirmed_at: row.at, updated_at: row.at }))]
    case 'batch_voided': {
      const parts = [...new Set(row.fills.map(({ part }) => part))]
      const failed = new Set(row.fills.map(({ fill_id }) => fill_id))
      return parts.map((part) =>
        changeEveryFill({ batch_id: row.batch_id, part }, ({ fill_id }) =>
          failed.has(fill_id)
            ? { status: 'FAILED', failed_at: row.at, failure: row.why, updated_at: row.at }
            : {},
        ),
      )
    }
    default:
      return []
  }
}

const NO_AMOUNTS = { fee: null, realized_pnl: null, available_margin_delta: null } as const
const NOT_MINED = { block: null, mined_at: null, confirmed_at: null } as const

const minedBy = ({ tx_hash, block, action_id, at }: PartSettled) => ({
  tx_hash,
  block,
  action_id,
  mined_at: at,
})

const submitted = ({ tx_hash, action_id, at }: PartSubmitted): PartChange => ({
  status: 'SUBMITTED',
  tx_hash,
  action_id,
  submitted_at: at,
  updated_at: at,
})

const changeEveryFill = (
  { batch_id, part }: { batch_id: number; part: number },
  fields: (fill: ReadFill) => PartChange,
): RowChange<PartFills> => ({
  key: partKey(batch_id, part),
  apply: (fills = []) => fills.map((fill) => ({ ...fill, ...fields(fill) })),
})

function matched(marketId: number, row: BatchCleared, orderOf: OrderOfFill): RowChange<PartFills>[] {
  const parts = Map.groupBy(row.fills, ({ part }) => part)
  return [...parts].map(([part, fills]) => ({
    key: partKey(row.batch_id, part),
    apply: () =>
      fills.map(({ fill_id, order_id, user_id, side, steps, taker_steps }, place) => ({
        fill_id,
        market_id: marketId,
        batch_id: row.batch_id,
        part,
        place,
        order_id,
        user_id,
        side,
        price: row.price,
        steps,
        taker_steps,
        protection_price: orderOf(order_id)?.protection_price ?? null,
        forced: orderOf(order_id)?.forced ?? false,
        builder: orderOf(order_id)?.builder ?? null,
        ...NO_AMOUNTS,
        status: 'MATCHED',
        tx_hash: null,
        ...NOT_MINED,
        action_id: null,
        matched_at: row.as_of,
        submitted_at: null,
        failed_at: null,
        failure: null,
        updated_at: row.as_of,
      })),
  }))
}

/** How a chunk writes the fills of its parts. */
export interface FillWrites {
  readonly added: readonly ReadFill[]
  readonly changed: readonly ReadFill[]
  /** One fill of each part whose fills change alike. */
  readonly parts: readonly ReadFill[]
}

/** `before`: the fills of each part, without parts whose fills the chunk deletes first. */
export function fillWrites(parts: readonly PartFills[], before: (part: ReadFill) => PartFills): FillWrites {
  const writes = { added: [] as ReadFill[], changed: [] as ReadFill[], parts: [] as ReadFill[] }
  for (const fills of parts) {
    const [first] = fills
    if (first === undefined) continue
    const known = new Map(before(first).map((fill) => [fill.fill_id, fill]))
    const isAlike = (fill: ReadFill): boolean => {
      const old = known.get(fill.fill_id)
      return (
        old !== undefined &&
        OF_PART.every((column) => fill[column] === first[column]) &&
        AMOUNTS.every((column) => fill[column] === old[column])
      )
    }
    if (fills.every(isAlike)) writes.parts.push(first)
    else for (const fill of fills) writes[known.has(fill.fill_id) ? 'changed' : 'added'].push(fill)
  }
  return writes
}

/** The fills are MINED, or RETRYING if the block was rolled back. Unmatched fills exist only while their block is on the chain. */
function settled(marketId: number, row: PartSettled, fills: PartFills, orderOf: OrderOfFill): PartFills {
  const settlements = new Map(row.fills.map((fill) => [fill.fill_id, fill]))
  const unmatched = row.fills.filter((fill) => !fill.matched)
  const unmatchedIds = new Set(unmatched.map(({ fill_id }) => fill_id))
  const matched = fills.filter(({ fill_id }) => !unmatchedIds.has(fill_id))
  const changed = matched.map((fill): ReadFill => {
    const settlement = settlements.get(fill.fill_id)
    return settlement === undefined ? fill : { ...fill, ...settlementFields(row, settlement) }
  })
  if (row.rollback) return changed
  const next = matched.reduce((place, fill) => Math.max(place, fill.place + 1), 0)
  const added = unmatched.map((fill, at) => ({
    ...fromChain(marketId, row, fill, next + at),
    builder: orderOf(fill.order_id)?.builder ?? null,
  }))
  return [...changed, ...added]
}

const settlementFields = (row: PartSettled, fill: FillSettled) =>
  signOfRow(row) === 1
    ? ({
        ...amountsOf(fill),
        status: 'MINED',
        ...minedBy(row),
        updated_at: row.at,
      } as const)
    : ({ ...NO_AMOUNTS, status: 'RETRYING', ...NOT_MINED, updated_at: row.at } as const)

/** A debit beyond the free balance was paid from a pending withdrawal, and is no change of the free balance. */
const amountsOf = (fill: FillSettled) => ({
  fee: BigInt(fill.fee),
  realized_pnl: BigInt(fill.realized_pnl),
  available_margin_delta: BigInt(fill.free_delta) + BigInt(fill.from_pending),
})

const fromChain = (
  marketId: number,
  row: PartSettled,
  fill: FillSettled,
  place: number,
): Omit<ReadFill, 'builder'> => ({
  fill_id: fill.fill_id,
  market_id: marketId,
  batch_id: row.batch_id,
  part: row.part,
  place,
  order_id: fill.order_id,
  user_id: fill.user_id,
  side: fill.side,
  price: row.price,
  steps: fill.steps,
  taker_steps: fill.taker_steps,
  protection_price: null,
  ...amountsOf(fill),
  status: 'MINED',
  ...minedBy(row),
  confirmed_at: null,
  matched_at: row.at,
  submitted_at: null,
  failed_at: null,
  failure: null,
  updated_at: row.at,
  forced: fill.forced ?? false,
})
