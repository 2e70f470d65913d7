/** Stands for publisher, ingest and workers: repeats reports, passes over the chain and its head every 250 ms, so that each owner has them. */
import type { Millis, Price } from '../../domain/units.ts'
import type { Engine } from '../../keeper/engine/link/engine.ts'
import type { BenchMarket } from '../intake/orders.ts'
import type { Cluster } from './cluster.ts'

const EVERY_MS = 250
const MAX_AGE_MS = 60_000

export class Outside {
  /** While it is false, no node responds: placements are accepted, and no batch runs. */
  hasHead = true
  readonly #clients: Readonly<Record<'publisher' | 'ingest' | 'worker', Engine>>
  readonly #markets: readonly BenchMarket[]
  readonly #timer: NodeJS.Timeout

  private constructor(clients: Outside['clients'], markets: readonly BenchMarket[]) {
    this.#clients = clients
    this.#markets = markets
    this.#timer = setInterval(() => void this.inform(), EVERY_MS)
  }

  static async open(cluster: Cluster, markets: readonly BenchMarket[]): Promise<Outside> {
    const [publisher, ingest, worker] = await Promise.all([
      cluster.connect('publisher'),
      cluster.connect('ingest'),
      cluster.connect('worker'),
    ])
    const outside = new Outside({ publisher, ingest, worker }, markets)
    await outside.inform()
    return outside
  }

  get clients(): Readonly<Record<'publisher' | 'ingest' | 'worker', Engine>> {
    return this.#clients
  }

  async inform(): Promise<void> {
    const now = Date.now() as Millis
    const { publisher, ingest, worker } = this.#clients
    await Promise.all([
      ingest.inform({ kind: 'inform_pass', at: now }),
      worker.inform({ kind: 'inform_head', time: this.hasHead ? now : null }),
      ...this.#markets.flatMap((market) => [
        publisher.inform({
          kind: 'inform_reports',
          marketId: market.spec.marketId,
          report: reportOf(market, now),
          session: null,
        }),
        worker.inform({ kind: 'inform_rules', marketId: market.spec.marketId, rules: rulesOf(market) }),
      ]),
    ])
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

export const reportOf = ({ spec, oracle }: BenchMarket, observedAt: Millis) => ({
  price: (BigInt(oracle) * spec.tick) as Price,
  observedAt,
  signatures: '0x' as const,
})

const rulesOf = ({ spec }: BenchMarket) => ({
  kind: spec.kind,
  tick: spec.tick,
  maxAge: MAX_AGE_MS as Millis,
  moveBase: 1_000_000n,
  moveSlope: 0n,
  moveWindow: 1 as Millis,
})
