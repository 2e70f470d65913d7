/** Bounds what an assistant may trade: markets, notional per order, and total notional of the process. */
import { fromE18, toE18 } from '../../client/decimals.ts'
import { CommandError } from '../failure.ts'

export interface Limits {
  readonly maxNotional: string
  readonly markets: readonly string[]
}

const ONE = 10n ** 18n

export class TradeGuard {
  readonly #most: bigint
  readonly #markets: readonly string[]
  #used = 0n

  constructor({ maxNotional, markets }: Limits) {
    this.#most = toE18(maxNotional)
    this.#markets = markets
  }

  /** Notional of the orders placed so far, in USDM. */
  get used(): string {
    return fromE18(this.#used)
  }

  checkMarket(symbol: string): void {
    if (!this.#markets.includes(symbol))
      throw new CommandError(`this server may trade in ${this.#markets.join(', ')}; received ${symbol}`)
  }

  /** Reserves the notional before the order is sent. Returns a function that gives it back if the order was certainly not placed. */
  reserve(quantity: bigint, price: bigint): () => void {
    const notional = (quantity * price) / ONE
    const left = this.#most - this.#used
    if (notional > left)
      throw new CommandError(
        `the order's notional of at most ${fromE18(notional)} USDM is above what is left of --max-notional: ${fromE18(left)} of ${fromE18(this.#most)}`,
      )
    this.#used += notional
    let isReserved = true
    return () => {
      if (isReserved) this.#used -= notional
      isReserved = false
    }
  }
}
