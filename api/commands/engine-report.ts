/** Answers of the engine as reports of the api's commands. */
import type {
  AnsweredItem,
  Done,
  Bookmark as EngineBookmark,
  Cancelled as EngineCancelled,
  Placed as EnginePlaced,
  ItemResult as EngineResult,
  OrderFacts,
} from '../../domain/exchange/decide/orders/command.ts'
import { orderColumns } from '../../domain/exchange/order-columns.ts'
import { isMarketType } from '../../domain/orders/order.ts'
import type { MarketId, Millis, Price, Seq } from '../../domain/units.ts'
import type { ApiError } from '../errors.ts'
import type { Bookmark, Cancelled, CommandReport, ItemResult, Placed } from './command.ts'
import type { EndedDuplicate } from './engine-command.ts'
import { refusedItemError } from './engine-refusals.ts'
import type { StoredOrder } from './stored-orders.ts'

export interface ReportInput {
  /** For each item of the command, the error with which the api has refused it. */
  readonly refused: readonly (ApiError | undefined)[]
  /** Address of the account. */
  readonly maker: string
  /** Stored orders by the hashes of `storedHashes`. */
  readonly stored: ReadonlyMap<string, StoredOrder>
  readonly bookmark: (at: EngineBookmark) => Bookmark
  /** Time of the answer. */
  readonly now: Millis
}

/** Orders of the answer of which the engine does not have every field. */
export const storedHashes = ({ results }: Pick<Done, 'results'>): string[] =>
  results.flatMap((result) => [storedHash(result), replacedHash(result)]).filter((hash) => hash !== null)

/** The replaced order of which the engine does not have every field. */
function replacedHash(result: EngineResult): string | null {
  const facts = result.kind === 'placed' ? result.replaced?.facts : undefined
  return facts && !isWhole(facts) ? facts.signature.hash : null
}

function storedHash(result: EngineResult): string | null {
  switch (result.kind) {
    case 'placed':
      return result.isDuplicate ? result.facts.signature.hash : null
    case 'cancelled':
      return isWholeCancel(result) ? null : result.hash
    case 'answered':
      return duplicateOf(result).order_hash
    case 'refused':
      return null
  }
}

const isWholeCancel = ({ facts, cancelled, isDuplicate }: EngineCancelled): boolean =>
  cancelled && !isDuplicate && facts !== null && isWhole(facts)

/** Whether the engine has every field of the order: a market order that has entered the book has a protection price. */
const isWhole = ({ order: { type, trigger, triggeredAt } }: OrderFacts): boolean => {
  const awaitsTrigger = trigger > 0 && triggeredAt === null
  return !isMarketType(type) || awaitsTrigger
}

export function reportOf({ results, balance, readAfter }: Done, input: ReportInput): CommandReport {
  return {
    itemResults: results.map((result, at) => resultOf(result, input, at)),
    balance,
    read_after: input.bookmark(readAfter),
  }
}

const duplicateOf = ({ answer }: AnsweredItem): EndedDuplicate => answer as unknown as EndedDuplicate

function resultOf(result: EngineResult, input: ReportInput, at: number): ItemResult {
  switch (result.kind) {
    case 'placed':
      return placedOf(result, input)
    case 'cancelled':
      return cancelledOf(result, input)
    case 'refused':
      return refusedItemError(result.refusal, input.refused[at])
    case 'answered':
      return endedDuplicate(duplicateOf(result), input)
  }
}

function placedOf(
  { facts, isDuplicate, oracle, readAfter, replaced, position }: EnginePlaced,
  input: ReportInput,
): Placed {
  const { maker, stored, bookmark } = input
  const { hash } = facts.signature
  const known = isDuplicate ? storedOf(stored, hash) : { maker, protection_price: null }
  const order = orderOf(facts, { updated_at: facts.order.acceptedAt, ...known })
  return {
    kind: 'placed',
    order,
    isDuplicate,
    oracle,
    read_after: bookmark(readAfter),
    ...(position !== undefined && { position }),
    ...(replaced?.facts && { replaced: replacedOrder(replaced.facts, input) }),
  }
}

function replacedOrder(facts: OrderFacts, { maker, stored, now }: ReportInput): StoredOrder {
  const updated_at = facts.order.endedAt ?? now
  if (isWhole(facts)) return orderOf(facts, { maker, protection_price: null, updated_at })
  return orderOf(facts, { ...storedOf(stored, facts.signature.hash), updated_at })
}

/** An order that has ended is in no book, so its view needs no oracle price. */
const NOT_IN_BOOK: Price | null = null

function endedDuplicate({ order_hash, read_after }: EndedDuplicate, input: ReportInput): Placed {
  const at = { marketId: read_after.market_id as MarketId, seq: read_after.seq as Seq }
  const order = storedOf(input.stored, order_hash)
  return {
    kind: 'placed',
    order,
    isDuplicate: true,
    oracle: NOT_IN_BOOK,
    read_after: input.bookmark(at),
  }
}

function cancelledOf(result: EngineCancelled, input: ReportInput): Cancelled {
  const { cancelled, isDuplicate, readAfter } = result
  const order = cancelledOrder(result, input)
  return { kind: 'cancelled', order, cancelled, isDuplicate, read_after: input.bookmark(readAfter) }
}

function cancelledOrder(result: EngineCancelled, { maker, stored, now }: ReportInput): StoredOrder {
  const { facts, hash, cancelled, isDuplicate } = result
  if (facts !== null && isWholeCancel(result))
    return orderOf(facts, { maker, protection_price: null, updated_at: facts.order.endedAt ?? now })
  const known = storedOf(stored, hash)
  if (facts === null) return known
  const hasCancelled = cancelled && !isDuplicate
  return orderOf(facts, {
    ...known,
    updated_at: facts.order.endedAt ?? (hasCancelled ? now : known.updated_at),
  })
}

/** Rows of orders are never deleted, and they were read once the tables had caught up. */
function storedOf(stored: ReadonlyMap<string, StoredOrder>, hash: string): StoredOrder {
  const order = stored.get(hash)
  if (order === undefined) throw new Error(`the engine has answered with the order ${hash}, which has no row`)
  return order
}

/** Fields of an order that the engine does not have. */
type ReadFields = Pick<StoredOrder, 'maker' | 'protection_price' | 'updated_at'>

/** The order in the state in which the command was decided. */
const orderOf = (facts: OrderFacts, { maker, protection_price, updated_at }: ReadFields): StoredOrder => ({
  ...orderColumns(facts),
  filled_value: facts.order.filledValue,
  fee: facts.order.fee,
  maker,
  protection_price,
  updated_at,
})
