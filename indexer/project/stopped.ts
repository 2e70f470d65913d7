/** The places whose projection failed alone. Chunks leave them out; each is tried alone again after a growing pause. */
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Metrics } from '../ports.ts'

export interface StoppedPlace {
  readonly shard: string
  readonly projection: string
}

interface Pause {
  readonly place: StoppedPlace
  readonly ms: number
  readonly until: number
}

interface StoppedPorts {
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'failed'>
}

/** A place's first pause, and its longest one: it doubles with each failure. */
interface PauseBounds {
  readonly leastMs: number
  readonly mostMs: number
}

export const placeName = ({ shard, projection }: StoppedPlace): string => `${shard} ${projection}`

export class Stopped {
  readonly #ports: StoppedPorts
  readonly #bounds: PauseBounds
  readonly #pauses = new Map<string, Pause>()

  constructor(ports: StoppedPorts, bounds: PauseBounds) {
    this.#ports = ports
    this.#bounds = bounds
  }

  /** As `<shard> <projection>`. */
  names(): string[] {
    return [...this.#pauses.keys()]
  }

  has(place: StoppedPlace): boolean {
    return this.#pauses.has(placeName(place))
  }

  /** Places whose pause has ended. */
  due(): StoppedPlace[] {
    const now = this.#ports.clock.now()
    // A clock that was set back ends the pauses.
    return [...this.#pauses.values()]
      .filter(({ until, ms }) => until <= now || until - now > ms)
      .map(({ place }) => place)
  }

  stop(place: StoppedPlace, error: Error): void {
    const { clock, logger, metrics } = this.#ports
    const before = this.#pauses.get(placeName(place))
    const { leastMs, mostMs } = this.#bounds
    const ms = before === undefined ? leastMs : Math.min(mostMs, 2 * before.ms)
    this.#pauses.set(placeName(place), { place, ms, until: clock.now() + ms })
    metrics.failed('project')
    logger.error({ err: error, ...place, pause_ms: ms }, 'projection failed; will retry')
  }

  /** Returns whether the place was stopped. */
  resume(place: StoppedPlace): boolean {
    return this.#pauses.delete(placeName(place))
  }
}
