/** Checks every state of an order that a response showed: the order must have had it within the time of the request. */
import { type MarketSpec, quantityOf } from '../../../domain/market/market.ts'
import type { Steps } from '../../../domain/units.ts'
import type { ModelOrder } from '../../support/order-model-terms.ts'
import type { MarketRecord } from './market-record.ts'
import { CLOCK_SLACK_MS, type Observation } from './trader-notes.ts'

type OrderState = Pick<ModelOrder, 'status' | 'reason'> & {
  readonly filled: bigint
  readonly settling: bigint
}
const textOf = ({ status, reason, filled, settling }: OrderState): string =>
  `${status} ${reason}, ${filled} filled, ${settling} settling`

/** An order that has left the book shows why in reads, and not in the responses of commands. */
const modelStates = (order: ModelOrder, spec: MarketSpec): string[] =>
  [order.reason, order.reason ?? order.leaving].map((reason) =>
    textOf({
      ...{ status: order.status, reason, filled: quantityOf(spec, order.filled as Steps) },
      settling: quantityOf(spec, order.settling as Steps),
    }),
  )

const observedState = ({ order }: Observation): string =>
  textOf({
    ...{ status: order.status, reason: order.status_reason, filled: BigInt(order.filled_quantity_e18_raw) },
    settling: BigInt(order.settling_quantity_e18_raw),
  })

export class Observations {
  readonly #markets: ReadonlyMap<number, MarketRecord>
  /** The states that each observation may show. */
  #valid = new Map<Observation, Set<string>>()
  #last = 0

  constructor(markets: ReadonlyMap<number, MarketRecord>) {
    this.#markets = markets
  }

  begin(observations: readonly Observation[]): void {
    this.#valid = new Map(observations.map((observation) => [observation, new Set()]))
  }

  /** Must be called before the model applies the transaction of this time: the model's state was valid until then. */
  before(at: number): void {
    for (const [observation, states] of this.#valid) {
      const { order: observed, source } = observation
      const market = this.#markets.get(observed.market_id) as MarketRecord
      const order = market.orders.get(observed.order_id)
      if (order === undefined || !this.#mayShow(observation, market, at)) continue
      if (source === 'cancel' && market.model.isLive(order)) continue
      for (const state of modelStates(order, market.spec)) states.add(state)
    }
    if (at !== Number.POSITIVE_INFINITY) this.#last = Math.max(this.#last, at)
  }

  /** Whether the response may show the state that lasted from the previous transaction until `until`. */
  #mayShow({ since, answeredAt }: Observation, { written }: MarketRecord, until: number): boolean {
    if (answeredAt < this.#last - CLOCK_SLACK_MS) return false
    return typeof since === 'number' ? since <= until + CLOCK_SLACK_MS : written >= Number(since.shard_seq)
  }

  /** One line per observation that shows a state which was not valid. */
  end(): string[] {
    this.before(Number.POSITIVE_INFINITY)
    return [...this.#valid].flatMap(([observation, states]) => {
      const observed = observedState(observation)
      if (states.has(observed)) return []
      const { source, order } = observation
      return [
        `${source} of ${order.order_id}: ${observed}; the model: ${[...states].join(' or ') || 'no state'}`,
      ]
    })
  }
}
