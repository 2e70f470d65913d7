/** What orders were told to be while things happened: each time what they were at a moment in which they may have been looked at. */
import { type MarketSpec, quantityOf } from '../../../domain/market/market.ts'
import type { Steps } from '../../../domain/units.ts'
import type { ModelOrder } from '../../support/order-model-terms.ts'
import type { MarketRecord } from './market-record.ts'
import { type Sighting, SLACK_MS } from './paper.ts'

type Life = Pick<ModelOrder, 'status' | 'reason'> & { readonly filled: bigint; readonly settling: bigint }
const textOf = ({ status, reason, filled, settling }: Life): string =>
  `${status} ${reason}, ${filled} filled, ${settling} settling`

const lifeOf = ({ status, reason, filled, settling }: ModelOrder, spec: MarketSpec): string =>
  textOf({
    ...{ status, reason, filled: quantityOf(spec, filled as Steps) },
    settling: quantityOf(spec, settling as Steps),
  })

const lifeTold = ({ told }: Sighting): string =>
  textOf({
    ...{ status: told.status, reason: told.status_reason, filled: BigInt(told.filled_quantity_e18_raw) },
    settling: BigInt(told.settling_quantity_e18_raw),
  })

export class Sightings {
  readonly #markets: ReadonlyMap<number, MarketRecord>
  #open = new Map<Sighting, Set<string>>()
  #last = 0

  constructor(markets: ReadonlyMap<number, MarketRecord>) {
    this.#markets = markets
  }

  begin(sightings: readonly Sighting[]): void {
    this.#open = new Map(sightings.map((sighting) => [sighting, new Set()]))
  }

  /** To be told of each transaction before the model takes it: what is so now was so until then. */
  before(at: number): void {
    for (const [sighting, lives] of this.#open) {
      const { told, what } = sighting
      const market = this.#markets.get(told.market_id) as MarketRecord
      const order = market.orders.get(told.order_id)
      if (order === undefined || !this.#mayShow(sighting, market, at)) continue
      if (what !== 'cancel' || !market.model.isLive(order)) lives.add(lifeOf(order, market.spec))
    }
    if (at !== Number.POSITIVE_INFINITY) this.#last = Math.max(this.#last, at)
  }

  #mayShow({ since, answeredAt }: Sighting, { written }: MarketRecord, until: number): boolean {
    if (answeredAt < this.#last - SLACK_MS) return false
    return typeof since === 'number' ? since <= until + SLACK_MS : written >= Number(since.shard_seq)
  }

  end(): string[] {
    this.before(Number.POSITIVE_INFINITY)
    return [...this.#open].flatMap(([sighting, lives]) => {
      const told = lifeTold(sighting)
      if (lives.has(told)) return []
      return [
        `${sighting.what} of ${sighting.told.order_id}: ${told}; the model: ${[...lives].join(' or ') || 'none of it'}`,
      ]
    })
  }
}
