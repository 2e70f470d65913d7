/** CSV content of each kind of file: columns, rows page by page, and the line of a row. */
import type { Db, Tx } from '../../db/client.ts'
import type { FileKey } from '../../db/history-files.ts'
import { type MarketSpec, priceOf, quantityOf, tickStepValue } from '../../domain/market/market.ts'
import type { HistoryKind } from '../../domain/market-data/history-kind.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import { publicFillId } from '../fills/view.ts'
import { decimalText, isoTime } from '../wire/amounts.ts'
import type { Cell } from '../wire/csv.ts'
import {
  batchesOfDay,
  candlesOfDay,
  fillsOfDay,
  fundingRatesOfDay,
  type HistoryBatch,
  type HistoryCandle,
  type HistoryFill,
  type HistoryFundingRate,
  type RowPage,
} from './query.ts'

export interface Content<Row> {
  readonly columns: readonly string[]
  /** Rows after `after` in file order; fewer than `limit` at the file's end. */
  readonly page: (db: Db | Tx, key: FileKey, page: RowPage<Row>) => Promise<Row[]>
  readonly cells: (spec: MarketSpec, row: Row) => readonly Cell[]
}

const decimal = (wei: bigint): Cell => ({ decimal: decimalText(wei) })
const price = (spec: MarketSpec, ticks: number): Cell => decimal(priceOf(spec, ticks as Ticks))
const quantity = (spec: MarketSpec, steps: number): Cell => decimal(quantityOf(spec, steps as Steps))

const fills: Content<HistoryFill> = {
  columns: [
    ...['fill_id', 'batch_id', 'part', 'side', 'forced', 'price', 'quantity', 'taker_quantity'],
    ...['tx_hash', 'block_number', 'created_at'],
  ],
  page: fillsOfDay,
  cells: (spec, row) => [
    ...[publicFillId(row), row.batch_id, row.part, row.side, String(row.forced)],
    ...[price(spec, row.price), quantity(spec, row.steps), quantity(spec, row.taker_steps)],
    ...[row.tx_hash, row.block, isoTime(row.matched_at)],
  ],
}

const auctions: Content<HistoryBatch> = {
  columns: [
    ...[
      'batch_id',
      'as_of',
      'status',
      'price',
      'volume',
      'filled_volume',
      'fills',
      'parts',
      'demand',
      'supply',
    ],
    ...['lowest_price', 'highest_price', 'oracle_price', 'oracle_price_at', 'rule', 'rule_version'],
  ],
  page: batchesOfDay,
  cells: (spec, row) => [
    ...[row.batch_id, isoTime(row.as_of), row.status, price(spec, row.price), quantity(spec, row.volume)],
    ...[
      quantity(spec, row.filled),
      row.fills,
      row.parts,
      quantity(spec, row.demand),
      quantity(spec, row.supply),
    ],
    ...[price(spec, row.lo), price(spec, row.hi), decimal(row.oracle_price), isoTime(row.oracle_at)],
    ...[row.rule, row.rule_version],
  ],
}

const candles: Content<HistoryCandle> = {
  columns: ['start', 'open', 'high', 'low', 'close', 'volume', 'notional', 'trades', 'fills'],
  page: candlesOfDay,
  cells: (spec, row) => [
    ...[isoTime(row.start), price(spec, row.open), price(spec, row.high), price(spec, row.low)],
    ...[price(spec, row.close), quantity(spec, row.steps), decimal(row.turnover * tickStepValue(spec))],
    ...[row.auctions, row.fills],
  ],
}

const funding: Content<HistoryFundingRate> = {
  columns: [
    ...['action_id', 'effective_at', 'valid_until', 'rate_per_step', 'funding_index', 'oracle_price'],
    ...['oracle_price_at', 'tx_hash'],
  ],
  page: fundingRatesOfDay,
  cells: (_spec, row) => [
    ...[
      row.action_id,
      isoTime(row.as_of),
      isoTime(row.valid_until),
      decimal(row.rate),
      decimal(row.funding_index),
    ],
    ...[decimal(row.oracle_price), isoTime(row.oracle_at), row.tx_hash],
  ],
}

export const CONTENTS = { fills, auctions, candles, funding } as unknown as Readonly<
  Record<HistoryKind, Content<unknown>>
>
