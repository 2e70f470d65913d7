/** What placements must be answered: by the state they met where they were written down, else by every state that they may have met. */
import { priceBand } from '../../../domain/market/band.ts'
import { highestPrice, priceOf } from '../../../domain/market/market.ts'
import { isConditional, isMarketType } from '../../../domain/orders/order.ts'
import { reservedPriceOf } from '../../../domain/orders/reservation.ts'
import type { MarketRecord } from './market-record.ts'
import { type Attempt, type PaperOrder, SLACK_MS } from './paper.ts'
import type { Prices } from './prices.ts'
import type { Transaction } from './witness.ts'

/** Before or after one transaction of the same account, or one moment, or both. */
const MOST_ANSWERS = 4
/** Counts attempts that might have been answered otherwise, had they come a moment earlier or later. */
export const RACED = 'foreseen but for a race'
/** After everything that is there. */
const NEWEST = Number.MAX_SAFE_INTEGER

interface Terms {
  readonly markets: ReadonlyMap<number, MarketRecord>
  readonly prices: Prices
  readonly available: (account: number) => bigint
  readonly count: (name: string) => void
}

export class Foresight {
  /** Keys that may not sign any more. */
  readonly revoked = new Set<string>()
  readonly #terms: Terms
  #open = new Map<Attempt, Set<string>>()
  #last = 0

  constructor(terms: Terms) {
    this.#terms = terms
  }

  begin(attempts: readonly Attempt[]): void {
    this.#open = new Map(attempts.map((attempt) => [attempt, new Set()]))
  }

  /** To be told of each transaction before the model takes it. */
  before({ at, entries }: Transaction): string[] {
    this.#consider(at)
    const placed = new Map(
      entries.flatMap(({ row }) => (row.kind === 'order_placed' ? [[row.hash, row.accepted_at]] : [])),
    )
    const wrong = [...placed.keys()].flatMap((hash) =>
      this.#writer(hash, at) === undefined ? [`nobody was placing ${hash}`] : [],
    )
    for (const attempt of new Set([...placed.keys()].flatMap((hash) => this.#writer(hash, at) ?? []))) {
      const hash = attempt.orders.find((order) => placed.has(order.hash))?.hash as string
      const foreseen = this.#foresee(attempt, placed.get(hash) as number)
      if (foreseen !== attempt.answer) wrong.push(`${nameOf(attempt)}; the model: ${foreseen}`)
      this.#terms.count('foreseen')
      this.#open.delete(attempt)
    }
    return wrong
  }

  /** After the last transaction: attempts that wrote nothing. */
  end(): string[] {
    this.#consider(Number.POSITIVE_INFINITY)
    return [...this.#open].flatMap(([attempt, answers]) => {
      const few = answers.size <= MOST_ANSWERS
      this.#terms.count(answers.size === 1 ? 'foreseen' : RACED)
      return answers.has(attempt.answer) && few
        ? []
        : [`${nameOf(attempt)}; the model: ${[...answers].join(' or ')}`]
    })
  }

  /** Whoever was sending the order when it was written down. */
  #writer(hash: string, at: number): Attempt | undefined {
    return [...this.#open.keys()].find(
      ({ sentAt, answeredAt, accepted }) =>
        accepted.has(hash) && sentAt <= at + SLACK_MS && at <= answeredAt + SLACK_MS,
    )
  }

  /** The state as it is holds until `until`. What was on its way meanwhile, and has written nothing, may have met it. */
  #consider(until: number): void {
    for (const [attempt, answers] of this.#open) {
      const { sentAt, answeredAt } = attempt
      if (attempt.accepted.size > 0 || sentAt > until + SLACK_MS || answeredAt < this.#last - SLACK_MS)
        continue
      for (const now of [Math.max(this.#last, sentAt), Math.min(until, answeredAt)])
        answers.add(this.#foresee(attempt, now))
    }
    if (until !== Number.POSITIVE_INFINITY) this.#last = Math.max(this.#last, until)
  }

  #foresee({ account, orders, mode }: Attempt, now: number): string {
    const ill = orders.map(illFormed)
    const formless = ill.find((code) => code !== null)
    if (mode === 'atomic' && formless != null) return formless
    const codes = orders.map((mine, at) => ill[at] ?? this.#try(account, mine, now))
    for (const { model } of this.#terms.markets.values()) model.forget(({ rank }) => rank === NEWEST)
    const refused = codes.find((code) => code !== null)
    return mode === 'atomic' && refused != null ? refused : codes.map((code) => code ?? 'accepted').join()
  }

  /** Puts it where it would be, for those that come after it in the same command. */
  #try(account: number, mine: PaperOrder, now: number): string | null {
    const { order, signer } = mine
    const { model, spec } = this.#terms.markets.get(order.marketId) as MarketRecord
    if (this.revoked.has(signer)) return 'SESSION_KEY_REVOKED'
    if (order.expiration !== 0 && now > order.expiration * 1000) return 'ORDER_EXPIRED'
    const oracle = this.#terms.prices.now(order.marketId)
    const isBuy = order.side === 'LONG'
    if (!isMarketType(order.type)) {
      const { lo, hi } = priceBand(spec, isConditional(order.type) ? priceOf(spec, order.trigger) : oracle)
      if (isBuy ? order.price > hi : order.price < lo) return 'PRICE_BAND'
    }
    const size = model.sizeOf(account)
    if (order.reduceOnly && !isConditional(order.type) && (isBuy ? size >= 0 : size <= 0))
      return 'REDUCE_ONLY_NO_POSITION'
    const tried = model.place(
      {
        ...{ id: mine.hash, account, signer, side: order.side, type: order.type, price: order.price },
        ...{ trigger: order.trigger, quantity: order.quantity, leverage: order.leverage },
        ...{ reduceOnly: order.reduceOnly, expiration: order.expiration, aliveUntil: order.expiration },
        ...{ acceptedAt: now, status: 'OPEN' },
        reservedPrice: reservedPriceOf(spec, order, priceBand(spec, oracle)),
      },
      NEWEST,
    )
    if (this.#terms.available(account) >= 0n) return null
    model.forget((known) => known === tried)
    return 'INSUFFICIENT_MARGIN'
  }
}

/** What the order itself is refused for, whatever the state of the exchange. */
function illFormed({ order, spec }: PaperOrder): string | null {
  if (isMarketType(order.type)) return null
  if (order.price > highestPrice(spec)) return 'MAX_ORDER_PRICE'
  return order.price < spec.minPrice ? 'MIN_ORDER_PRICE' : null
}

const nameOf = ({ by, mode, orders, answer }: Attempt): string =>
  `trader ${by}, ${mode} of ${orders.map(({ hash }) => hash.slice(0, 10))}: ${answer}`
