/** Demand and supply of a batch as step curves, from its statement. Pure. */
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'

/** The curve has `steps` at `price` (in ticks), and stays constant up to the next point. */
export interface CurvePoint {
  readonly price: number
  readonly steps: number
}

export interface Curves {
  /** Steps of buys that accept the price: falls with it. */
  readonly demand: readonly CurvePoint[]
  /** Steps of sells that accept the price: grows with it. */
  readonly supply: readonly CurvePoint[]
  readonly lowest: number
  readonly highest: number
  readonly most: number
}

/** Steps of one order that accept prices up to `limit` (a buy) or from it (a sell), in ticks. */
export interface Tranche {
  readonly limit: number
  readonly steps: number
}

export function tranchesOf({ orders, result }: BatchStatement, side: 'LONG' | 'SHORT'): Tranche[] {
  return result.tranches.flatMap(({ order, reducing, reducingLimit, opening, openingLimit }) => {
    if (orders[order - 1]?.side !== side) return []
    return [
      { limit: reducingLimit as number | null, steps: reducing as number },
      { limit: openingLimit as number | null, steps: opening as number },
    ].filter((each): each is Tranche => each.limit !== null && each.steps > 0)
  })
}

/** Cumulative steps from the most aggressive limit on. */
function cumulative(tranches: readonly Tranche[], sign: 1 | -1): CurvePoint[] {
  const points: CurvePoint[] = []
  let steps = 0
  for (const tranche of tranches.toSorted((a, b) => sign * (a.limit - b.limit))) {
    steps += tranche.steps
    const last = points.at(-1)
    if (last?.price === tranche.limit) points[points.length - 1] = { price: tranche.limit, steps }
    else points.push({ price: tranche.limit, steps })
  }
  return points
}

/** Margin outside the outermost limits, as a fraction of their distance. */
const MARGIN = 0.08

export function curvesOf(statement: BatchStatement): Curves {
  const demand = cumulative(tranchesOf(statement, 'LONG'), -1)
  const supply = cumulative(tranchesOf(statement, 'SHORT'), 1)
  const { price, lo, hi } = statement.result
  const limits = [...demand, ...supply].map((point) => point.price).filter((each) => each > lo && each < hi)
  const known = price === null ? limits : [...limits, price as number]
  const all = known.length > 0 ? known : [lo, hi]
  const [low, high] = [Math.min(...all), Math.max(...all)]
  const room = Math.max(2, (high - low) * MARGIN)
  const most = Math.max(demand.at(-1)?.steps ?? 0, supply.at(-1)?.steps ?? 0, 1)
  return { demand, supply, lowest: low - room, highest: high + room, most }
}

/**
 * Size of a drawing. The left edge is the lowest price; the top leaves a margin above the largest number of steps.
 */
export interface Box {
  readonly width: number
  readonly height: number
}

/** Maps prices and steps to coordinates in a box. Prices beyond the outermost limits lie outside the box. */
export function scaleOf({ lowest, highest, most }: Curves, { width, height }: Box) {
  return {
    x: (price: number): number => ((price - lowest) / (highest - lowest)) * width,
    y: (steps: number): number => height - (steps / most) * height * 0.92,
  }
}

/** The path of a curve from the left to the right edge of the box. */
export function pathOf(
  points: readonly CurvePoint[],
  side: 'demand' | 'supply',
  curves: Curves,
  box: Box,
): string {
  const { width, height } = box
  const scale = scaleOf(curves, box)
  const { y } = scale
  const x = (price: number): number => scale.x(Math.min(Math.max(price, curves.lowest), curves.highest))
  // Demand is drawn from its most aggressive limit at the right, supply from the left.
  const start = side === 'demand' ? width : 0
  const end = side === 'demand' ? 0 : width
  let path = `M${start} ${height}`
  let last = height
  for (const { price, steps } of points) {
    path += `L${x(price).toFixed(1)} ${last.toFixed(1)}L${x(price).toFixed(1)} ${y(steps).toFixed(1)}`
    last = y(steps)
  }
  return `${path}L${end} ${last.toFixed(1)}`
}
