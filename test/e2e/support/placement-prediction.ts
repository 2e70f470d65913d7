/**
 * Predicts the response to every placement. A placement that wrote rows has exactly one valid response, given by the model's state before
 * its transaction. For one that wrote nothing, the response of every state during the request is valid.
 */
import { priceBand } from '../../../domain/market/band.ts'
import { highestPrice, priceOf } from '../../../domain/market/market.ts'
import { isConditional, isMarketType } from '../../../domain/orders/order.ts'
import { reservedPriceOf } from '../../../domain/orders/reservation.ts'
import { isBelowRequirement } from '../../support/margin-requirement.ts'
import type { MarketRecord } from './market-record.ts'
import type { Prices } from './prices.ts'
import { CLOCK_SLACK_MS, type PlacementAttempt, type SentOrder } from './trader-notes.ts'
import type { Transaction } from './transaction-recorder.ts'
import type { UnseenTime } from './unseen-chain.ts'

/** Valid responses of one request at most: before and after one transaction of the account, times before and after one expiry. */
const MAX_RESPONSES = 4
/** Counts attempts with several valid responses, because a transaction or a time limit fell within the request. */
export const RACED = 'predicted up to a race'
/** The rank of a dry-run order: after all orders of the model. */
const NEWEST = Number.MAX_SAFE_INTEGER

interface PredictionContext {
  readonly markets: ReadonlyMap<number, MarketRecord>
  readonly prices: Prices
  readonly available: (account: number) => bigint
  readonly count: (name: string) => void
}

export class PlacementPrediction {
  /** Revoked session keys. */
  readonly revoked = new Set<string>()
  readonly #context: PredictionContext
  #open = new Map<PlacementAttempt, Set<string>>()
  #unseen: readonly UnseenTime[] = []
  #last = 0

  constructor(context: PredictionContext) {
    this.#context = context
  }

  begin(attempts: readonly PlacementAttempt[], unseen: readonly UnseenTime[]): void {
    this.#unseen = unseen
    this.#open = new Map(attempts.map((attempt) => [attempt, new Set()]))
  }

  /** Must be called before the model applies the transaction. */
  before({ at, entries }: Transaction): string[] {
    this.#addPredictions(at)
    const placed = new Map(
      entries.flatMap(({ row }) =>
        row.kind === 'order_placed' && !row.forced ? [[row.hash, row.accepted_at]] : [],
      ),
    )
    const problems = [...placed.keys()].flatMap((hash) =>
      this.#attemptOf(hash, at) === undefined ? [`no request was placing ${hash}`] : [],
    )
    for (const attempt of new Set([...placed.keys()].flatMap((hash) => this.#attemptOf(hash, at) ?? []))) {
      const hash = attempt.orders.find((order) => placed.has(order.hash))?.hash as string
      const predicted = this.#predict(attempt, placed.get(hash) as number)
      if (predicted !== attempt.answer) problems.push(`${nameOf(attempt)}; the model: ${predicted}`)
      this.#context.count('predicted')
      this.#open.delete(attempt)
    }
    return problems
  }

  /** Must be called after the last transaction. Checks the attempts that wrote nothing. */
  end(): string[] {
    this.#addPredictions(Number.POSITIVE_INFINITY)
    return [...this.#open].flatMap(([attempt, answers]) => {
      const few = answers.size <= MAX_RESPONSES
      this.#context.count(answers.size === 1 ? 'predicted' : RACED)
      return answers.has(attempt.answer) && few
        ? []
        : [`${nameOf(attempt)}; the model: ${[...answers].join(' or ')}`]
    })
  }

  /** The attempt that was in flight when the order was written. */
  #attemptOf(hash: string, at: number): PlacementAttempt | undefined {
    return [...this.#open.keys()].find(
      ({ sentAt, answeredAt, accepted }) =>
        accepted.has(hash) && sentAt <= at + CLOCK_SLACK_MS && at <= answeredAt + CLOCK_SLACK_MS,
    )
  }

  /** The model's state is valid until `until`. Adds its predictions to every attempt that was in flight and wrote nothing. */
  #addPredictions(until: number): void {
    for (const [attempt, answers] of this.#open) {
      const { sentAt, answeredAt } = attempt
      if (
        attempt.accepted.size > 0 ||
        sentAt > until + CLOCK_SLACK_MS ||
        answeredAt < this.#last - CLOCK_SLACK_MS
      )
        continue
      for (const now of [Math.max(this.#last, sentAt), Math.min(until, answeredAt)])
        answers.add(this.#predict(attempt, now))
      // A client sends a single order and an atomic batch again until the chain has been seen.
      const isUnseen = this.#unseen.some(({ from, until }) => from <= answeredAt && sentAt <= until)
      if (isUnseen && attempt.mode === 'best_effort') answers.add(this.#predict(attempt, sentAt, true))
    }
    if (until !== Number.POSITIVE_INFINITY) this.#last = Math.max(this.#last, until)
  }

  #predict({ account, orders, mode }: PlacementAttempt, now: number, isUnseen = false): string {
    const malformed = orders.map(malformedCode)
    const firstMalformed = malformed.find((code) => code !== null)
    if (mode === 'atomic' && firstMalformed != null) return firstMalformed
    const codes = orders.map(
      (sentOrder, at) => malformed[at] ?? this.#admit(account, sentOrder, now, isUnseen),
    )
    for (const { model } of this.#context.markets.values()) model.forget(({ rank }) => rank === NEWEST)
    const rejected = codes.find((code) => code !== null)
    return mode === 'atomic' && rejected != null ? rejected : codes.map((code) => code ?? 'accepted').join()
  }

  /** The code of a rejection, or null. Adds an accepted order to the model, where later orders of the command see it. */
  #admit(account: number, sentOrder: SentOrder, now: number, isUnseen: boolean): string | null {
    const { order, signer } = sentOrder
    const { model, spec } = this.#context.markets.get(order.marketId) as MarketRecord
    if (this.revoked.has(signer)) return 'SESSION_KEY_REVOKED'
    if (isUnseen) return 'CHAIN_UNSEEN'
    if (order.expiration !== 0 && now > order.expiration * 1000) return 'ORDER_EXPIRED'
    const oracle = this.#context.prices.now(order.marketId)
    const isBuy = order.side === 'LONG'
    if (!isMarketType(order.type)) {
      const { lo, hi } = priceBand(spec, isConditional(order.type) ? priceOf(spec, order.trigger) : oracle)
      if (isBuy ? order.price > hi : order.price < lo) return 'PRICE_BAND'
    }
    const size = model.sizeOf(account)
    if (order.reduceOnly && !isConditional(order.type) && (isBuy ? size >= 0 : size <= 0))
      return 'REDUCE_ONLY_NO_POSITION'
    const placed = model.place(
      {
        ...{ id: sentOrder.hash, account, signer, side: order.side, type: order.type, price: order.price },
        ...{ trigger: order.trigger, quantity: order.quantity, leverage: order.leverage },
        ...{ reduceOnly: order.reduceOnly, expiration: order.expiration, aliveUntil: order.expiration },
        ...{ acceptedAt: now, status: 'OPEN' },
        reservedPrice: reservedPriceOf(spec, order, priceBand(spec, oracle)),
      },
      NEWEST,
    )
    const isBelow = order.type === 'LIMIT' && placed.openable > 0 && isBelowRequirement(spec, order, oracle)
    if (!isBelow && this.#context.available(account) >= 0n) return null
    model.forget((order) => order === placed)
    return isBelow ? 'MARGIN_REQUIREMENT' : 'INSUFFICIENT_MARGIN'
  }
}

/** The code of an error in the order itself, which does not depend on the state of the exchange. */
function malformedCode({ order, spec }: SentOrder): string | null {
  if (isMarketType(order.type)) return null
  if (order.price > highestPrice(spec)) return 'MAX_ORDER_PRICE'
  return order.price < spec.minPrice ? 'MIN_ORDER_PRICE' : null
}

const nameOf = ({ by, mode, orders, answer }: PlacementAttempt): string =>
  `trader ${by}, ${mode} of ${orders.map(({ hash }) => hash.slice(0, 10))}: ${answer}`
