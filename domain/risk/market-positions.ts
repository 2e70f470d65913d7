/** Matched positions of a market, with two derived values: the market pool and the liquidation scanner. */

import { FLAT, type Position, poolShare } from '../positions/position.ts'
import type { Quote, UserId } from '../units.ts'
import { PositionScanner } from './scanner.ts'

/** Mutable; kept equal to the stored positions by `set`. */
export class MarketPositions {
  readonly #positions: Map<UserId, Position>
  readonly scanner: PositionScanner
  #pool: bigint

  constructor(positions: Iterable<readonly [UserId, Position]> = []) {
    this.#positions = new Map(positions)
    this.scanner = PositionScanner.of(this.#positions)
    this.#pool = 0n
    for (const position of this.#positions.values()) this.#pool += poolShare(position)
  }

  /** Market pool at the bank once every unsettled fill is mined. Exact to the wei. */
  get pool(): Quote {
    return this.#pool as Quote
  }

  /** The position of the account; flat if it has none. */
  readonly of = (account: UserId): Position => this.#positions.get(account) ?? FLAT

  set(account: UserId, position: Position): void {
    this.#pool += poolShare(position) - poolShare(this.of(account))
    this.#positions.set(account, position)
    this.scanner.set(account, position)
  }

  accounts(): IterableIterator<UserId> {
    return this.#positions.keys()
  }

  values(): IterableIterator<Position> {
    return this.#positions.values()
  }

  [Symbol.iterator](): IterableIterator<[UserId, Position]> {
    return this.#positions.entries()
  }
}
