/**
 * Signers that the oracle's contract accepts, by feed. Only reports that a batch can settle with are published, also
 * while a feed's signers change or the configuration is wrong.
 */
import type { FeedId } from '../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'

/** Signers of a feed for observations at one time. */
export interface SignerSet {
  readonly signers: ReadonlySet<Address>
  /** Signatures that a report has, exactly. */
  readonly threshold: number
}

export interface SignerSetPorts {
  readonly read: (feedId: FeedId, observedAt: Millis) => Promise<SignerSet>
  readonly clock: Clock
  readonly logger: Logger
}

export interface SignerSets {
  /** Null while it is not known: the chain has not answered, or the signers are about to change. */
  at(feedId: FeedId, observedAt: Millis): SignerSet | null
  /** Reads what is not known for long enough. Resolves without an error; a failure is logged and repeated by the next call. */
  refresh(feedIds: readonly FeedId[]): Promise<void>
}

/** New signers become valid a notice after they are set, so what is read now holds for this long. The oracle's notice must not be shorter. */
const LONG_MS = 120_000
/** Near a change: for so long at most nothing is published. */
const SHORT_MS = 2_000
const CONCURRENT_READS = 16

interface Known {
  readonly set: SignerSet
  readonly from: number
  readonly until: number
  /** How far the last read reached; half of it later it is repeated. */
  readonly span: number
}

const isSame = (a: SignerSet, b: SignerSet): boolean =>
  a.threshold === b.threshold &&
  a.signers.size === b.signers.size &&
  [...a.signers].every((signer) => b.signers.has(signer))

export function createSignerSets({ read, clock, logger }: SignerSetPorts): SignerSets {
  const known = new Map<FeedId, Known>()
  let running: Promise<void> | null = null

  const isDue = (feedId: FeedId): boolean => {
    const { until, span } = known.get(feedId) ?? { until: 0, span: 0 }
    return until - clock.now() < span / 2 || until <= clock.now()
  }

  /**
   * The oracle has at most one announced change, so signers that are equal now and later are valid for the whole time
   * between.
   */
  async function readOne(feedId: FeedId): Promise<void> {
    const now = clock.now()
    const set = await read(feedId, now)
    if (set.threshold === 0) {
      known.delete(feedId)
      logger.error({ feed_id: feedId }, 'the oracle does not know the feed; no report of it is published')
      return
    }
    for (const span of [LONG_MS, SHORT_MS]) {
      if (!isSame(set, await read(feedId, (now + span) as Millis))) continue
      const before = known.get(feedId)
      const from = before !== undefined && before.until >= now && isSame(before.set, set) ? before.from : now
      known.set(feedId, { set, from, until: now + span, span })
      return
    }
    known.delete(feedId)
    logger.info({ feed_id: feedId }, 'signers of the feed change now; no report is published meanwhile')
  }

  async function readAll(feedIds: readonly FeedId[]): Promise<void> {
    const due = feedIds.filter(isDue)
    const next = due.values()
    const work = async (): Promise<void> => {
      for (const feedId of next) await readOne(feedId)
    }
    const results = await Promise.allSettled(Array.from({ length: CONCURRENT_READS }, work))
    const failed = results.find((one) => one.status === 'rejected')
    if (failed !== undefined)
      logger.warn(
        { err: failed.reason },
        'reading the signers of price feeds from the oracle failed; will retry',
      )
  }

  return {
    at(feedId, observedAt) {
      const found = known.get(feedId)
      return found !== undefined && found.from <= observedAt && observedAt <= found.until ? found.set : null
    },
    refresh(feedIds) {
      running ??= readAll(feedIds).finally(() => {
        running = null
      })
      return running
    },
  }
}
