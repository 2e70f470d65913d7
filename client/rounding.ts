/** Rounds prices and quantities to a market's grid, and converts them to ticks and steps. */
import type { Side } from '../domain/orders/order.ts'
import type { Steps, Ticks } from '../domain/units.ts'
import { type Decimal, fromE18, toE18 } from './decimals.ts'

/** Price and quantity grid, as returned by `GET /v0/markets`. */
export interface Grid {
  readonly tick_size_e18_raw: string
  readonly step_size_e18_raw: string
}

/** Nearest grid price that is not worse for the trader: buys round down, sells round up. */
export function roundPrice(grid: Grid, price: Decimal, side: Side): string {
  const tick = BigInt(grid.tick_size_e18_raw)
  const wanted = toE18(price)
  const below = (wanted / tick) * tick
  return fromE18(side === 'LONG' || below === wanted ? below : below + tick)
}

/** Largest grid quantity that does not exceed `quantity`. */
export function roundQuantity(grid: Grid, quantity: Decimal): string {
  const step = BigInt(grid.step_size_e18_raw)
  return fromE18((toE18(quantity) / step) * step)
}

/**
 * Converts a price to ticks. Throws if the price is off the grid; the message names the two nearest valid prices.
 */
export const toTicks = (grid: Grid, price: Decimal): Ticks =>
  onGrid('price', toE18(price), BigInt(grid.tick_size_e18_raw)) as Ticks

/**
 * Converts a quantity to steps. Throws if the quantity is off the grid; the message names the two nearest
 * valid quantities.
 */
export const toSteps = (grid: Grid, quantity: Decimal): Steps =>
  onGrid('quantity', toE18(quantity), BigInt(grid.step_size_e18_raw)) as Steps

function onGrid(what: string, value: bigint, increment: bigint): number {
  if (value % increment !== 0n) {
    const below = (value / increment) * increment
    throw new RangeError(
      `${what} ${fromE18(value)} is not a multiple of ${fromE18(increment)}: ` +
        `use ${fromE18(below)} or ${fromE18(below + increment)}`,
    )
  }
  return Number(value / increment)
}
