/** Explains a batch from its statement: demand and supply over the band, the rule that chose the price, shares and fees. Pure. */
import type { BatchStatement, Place, StatedOrder } from '../../domain/proof/batch-statement.ts'
import { fromE18 } from '../decimals.ts'
import { type Tranche, tranchesOf } from './curves.ts'
import { PRICE_RULES } from './price-rules.ts'

/** Prices from `from` to `to`, both inclusive, with constant demand and supply. Amounts are decimals. */
export interface PriceRange {
  readonly from: string
  readonly to: string
  /** Quantity of the buys that accept these prices. */
  readonly demand: string
  /** Quantity of the sells that accept these prices. */
  readonly supply: string
  /** The smaller of demand and supply. */
  readonly volume: string
  /** Demand less supply: negative if there is more supply. */
  readonly surplus: string
  /** True if the range contains the clearing price. */
  readonly clearing: boolean
}

/** An order that filled, or that ended with the batch. */
export interface ExplainedOrder {
  /** Place in the statement. */
  readonly order: number
  readonly side: string
  readonly type: string
  readonly limit: string | null
  /** Quantity of the order that took part in the batch. */
  readonly quantity: string
  readonly filled: string
  /** Part of `filled` at the maker rate. */
  readonly maker: string
  readonly fee: string
  /** Reason of the end; null if the order stays open or is filled. */
  readonly ended: string | null
}

export interface BatchExplanation {
  readonly batch_id: number
  readonly as_of: string
  readonly oracle_price: string
  /** The lowest and the highest price that the batch could have. */
  readonly band: readonly [lowest: string, highest: string]
  /** Stated orders that took part in the batch. */
  readonly candidates: number
  /** Ranges that cover the band, ascending by price. */
  readonly ranges: readonly PriceRange[]
  /** The prices with the largest volume; null if no orders crossed. */
  readonly largest_volume: readonly [lowest: string, highest: string] | null
  /** The prices of `largest_volume` with the smallest surplus: `rule` chose one of these prices. */
  readonly smallest_surplus: readonly [lowest: string, highest: string] | null
  readonly price: string | null
  readonly rule: string | null
  readonly reason: string
  readonly volume: string
  readonly allocation: string
  readonly orders: readonly ExplainedOrder[]
  readonly pairs: number
  readonly parts: number
}

/** In ticks and steps. */
interface Range {
  readonly from: number
  readonly to: number
  readonly demand: number
  readonly supply: number
}

const volumeOf = ({ demand, supply }: Range): number => Math.min(demand, supply)
const surplusOf = ({ demand, supply }: Range): number => Math.abs(demand - supply)

/** Demand changes right above the limit of a buy, supply at the limit of a sell. */
function rangesOf(statement: BatchStatement): Range[] {
  const { lo, hi } = statement.result
  const byLimit = (a: Tranche, b: Tranche): number => a.limit - b.limit
  const buys = tranchesOf(statement, 'LONG').sort(byLimit)
  const sells = tranchesOf(statement, 'SHORT').sort(byLimit)
  const changes = [...buys.map(({ limit }) => limit + 1), ...sells.map(({ limit }) => limit)]
  const starts = [...new Set([lo, ...changes.filter((tick) => tick > lo && tick <= hi)])].sort(
    (a, b) => a - b,
  )
  let demand = buys.reduce((sum, { steps }) => sum + steps, 0)
  let supply = 0
  let nextBuy = 0
  let nextSell = 0
  return starts.map((from, at) => {
    for (let buy = buys[nextBuy]; buy !== undefined && buy.limit < from; buy = buys[++nextBuy])
      demand -= buy.steps
    for (let sell = sells[nextSell]; sell !== undefined && sell.limit <= from; sell = sells[++nextSell])
      supply += sell.steps
    return { from, to: (starts[at + 1] ?? hi + 1) - 1, demand, supply }
  })
}

/**
 * The ranges with the largest `of`. They are adjacent, because demand falls and supply rises with the price.
 */
function largest(ranges: readonly Range[], of: (range: Range) => number): Range[] {
  const most = ranges.reduce((found, range) => Math.max(found, of(range)), Number.NEGATIVE_INFINITY)
  return ranges.filter((range) => of(range) === most)
}

export function explainBatch(statement: BatchStatement): BatchExplanation {
  const { market, result, oracle, batchId, asOf } = statement
  const price = (ticks: number): string => fromE18(BigInt(ticks) * market.tick)
  const quantity = (steps: number): string => fromE18(BigInt(steps) * market.step)
  const ends = (ranges: readonly Range[]): [string, string] => [
    price((ranges[0] as Range).from),
    price((ranges.at(-1) as Range).to),
  ]
  const ranges = rangesOf(statement)
  const fullest = result.price === null ? null : largest(ranges, volumeOf)
  const tied = fullest === null ? null : largest(fullest, (range) => -surplusOf(range))
  return {
    batch_id: batchId,
    as_of: new Date(asOf).toISOString(),
    oracle_price: fromE18(oracle.price),
    band: [price(result.lo), price(result.hi)],
    candidates: result.tranches.length,
    ranges: ranges.map((range) => ({
      from: price(range.from),
      to: price(range.to),
      demand: quantity(range.demand),
      supply: quantity(range.supply),
      volume: quantity(volumeOf(range)),
      surplus: quantity(range.demand - range.supply),
      clearing: result.price !== null && range.from <= result.price && result.price <= range.to,
    })),
    largest_volume: fullest === null ? null : ends(fullest),
    smallest_surplus: tied === null ? null : ends(tied),
    price: result.price === null ? null : price(result.price),
    rule: result.rule,
    reason: result.rule === null ? 'No buy accepts the price of a sell.' : PRICE_RULES[result.rule],
    volume: quantity(result.volume),
    allocation: allocationOf(statement, quantity),
    orders: explainedOrders(statement),
    pairs: result.pairs.length,
    parts: result.parts.length,
  }
}

function allocationOf({ result }: BatchStatement, quantity: (steps: number) => string): string {
  const { demand, supply, volume } = result
  if (volume === 0) return 'Nothing was traded.'
  if (demand === supply) return 'Both sides fill completely.'
  const [left, other, eligible] = demand > supply ? ['Buys', 'sells', demand] : ['Sells', 'buys', supply]
  return `${left} are left over: each fills ${quantity(volume)} / ${quantity(eligible)} of its quantity, within one step. All ${other} fill completely.`
}

function explainedOrders({ market, orders, result }: BatchStatement): ExplainedOrder[] {
  const quantity = (steps: number): string => fromE18(BigInt(steps) * market.step)
  const fills = new Map(result.fills.map((fill) => [fill.order, fill]))
  const cancels = new Map(result.cancels.map(({ order, reason }) => [order, reason]))
  const tranches = new Map(result.tranches.map((each) => [each.order, each.reducing + each.opening]))
  const places = [...new Set([...fills.keys(), ...cancels.keys()])].sort((a, b) => a - b)
  return places.map((place: Place): ExplainedOrder => {
    const { side, type, limit } = orders[place - 1] as StatedOrder
    const fill = fills.get(place)
    return {
      order: place,
      side,
      type,
      limit: type === 'MARKET' ? null : fromE18(BigInt(limit) * market.tick),
      quantity: quantity(tranches.get(place) ?? 0),
      filled: quantity(fill?.steps ?? 0),
      maker: quantity(fill?.makerSteps ?? 0),
      fee: fromE18(fill?.fee ?? 0n),
      ended: cancels.get(place) ?? null,
    }
  })
}
