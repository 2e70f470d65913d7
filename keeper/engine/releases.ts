/**
 * Decides when the engine may drop ended entries: samples of the journals' heads show which rows no rollback can reach.
 * A restart loses the samples and only delays releases.
 */
import { CHAIN as CHAIN_SHARD } from '../../domain/exchange/apply.ts'
import type { ReleaseEnded } from '../../domain/exchange/decide/chain/release.ts'
import { ACCOUNTS } from '../../domain/exchange/draft.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import { CHAIN } from '../../domain/exchange/tables/blocks.ts'
import type { MarketId, Millis, Seq } from '../../domain/units.ts'

interface Sample {
  readonly at: Millis
  /** The first block whose facts have rows behind the heads. */
  readonly block: number
  readonly heads: ReadonlyMap<MarketId, Seq>
}

export interface ReleasePolicy {
  /** Between two samples. */
  readonly sampleMs: number
  /** Ended orders and requests are kept at least this long: repeated commands and cancels are answered from memory meanwhile. */
  readonly keepMs: number
}

/** While the chain stands still, the oldest samples wait, and no further samples are taken. */
const MOST_SAMPLES = 100

export const RELEASE_POLICY: ReleasePolicy = { sampleMs: 10_000, keepMs: 60_000 }

export class Releases {
  readonly #policy: ReleasePolicy
  /** Ascending by time. */
  readonly #samples: Sample[] = []

  constructor(policy: ReleasePolicy = RELEASE_POLICY) {
    this.#policy = policy
  }

  /** Samples the state if that is due. Returns the commands that release what has become final, which the caller submits one after the other. */
  poll(state: ExchangeState, now: Millis): ReleaseEnded[] {
    const last = this.#samples.at(-1)
    const isDue = last === undefined || now - last.at >= this.#policy.sampleMs
    if (isDue && this.#samples.length < MOST_SAMPLES) this.#samples.push(sampleOf(state, now))
    const keptFrom = state.chain.get(CHAIN)?.kept_from ?? 0
    const isFinal = ({ at, block }: Sample): boolean => now - at >= this.#policy.keepMs && block <= keptFrom
    const at = this.#samples.findLastIndex(isFinal)
    if (at < 0) return []
    const { heads } = this.#samples[at] as Sample
    this.#samples.splice(0, at + 1)
    return [...heads].map(([marketId, upTo]) => ({ kind: 'release_ended', marketId, upTo }))
  }
}

/** Accounts are market 0; requests wait for no block, but are released with the markets' orders. */
function sampleOf(state: ExchangeState, at: Millis): Sample {
  const heads = new Map<MarketId, Seq>()
  for (const { marketId, seq } of state.heads.rows()) {
    const isMarket =
      marketId !== CHAIN_SHARD && marketId !== ACCOUNTS && state.markets.get(String(marketId)) !== undefined
    if (isMarket || marketId === ACCOUNTS) heads.set(marketId, seq)
  }
  // A block of which a part is applied has rows on both sides of the heads.
  const next = state.chain.get(CHAIN)?.next_block ?? 0
  const isOpen = state.blocks.get(String(next)) !== undefined
  return { at, block: isOpen ? next + 1 : next, heads }
}
