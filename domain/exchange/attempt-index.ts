/** Finds adjustment attempts by digest, account and transaction. Derived from their table. */
import { isInFlight } from '../positions/adjustment-attempt.ts'
import type { MarketId, UserId } from '../units.ts'
import { DocumentGroups } from './document-groups.ts'
import type { DocumentTable } from './document-table.ts'
import type { AttemptRow } from './tables/chain.ts'

const ofAccount = (marketId: number, account: number): string => `${marketId}-${account}`

export class AttemptIndex {
  readonly #byDigest: DocumentGroups<AttemptRow>
  readonly #byAccount: DocumentGroups<AttemptRow>
  readonly #byTransaction: DocumentGroups<AttemptRow>
  readonly #inFlight: DocumentGroups<AttemptRow>
  /** Signed attempts that were aborted. */
  readonly #failed: DocumentGroups<AttemptRow>

  constructor(attempts: DocumentTable<AttemptRow>) {
    const keyOf = ({ adjustment_id }: AttemptRow): string => adjustment_id
    this.#byDigest = new DocumentGroups(attempts, {
      keyOf,
      groupOf: ({ market_id, digest }) => `${market_id}-${digest}`,
    })
    this.#byAccount = new DocumentGroups(attempts, {
      keyOf,
      groupOf: ({ market_id, user_id }) => ofAccount(market_id, user_id),
    })
    this.#byTransaction = new DocumentGroups(attempts, {
      keyOf,
      groupOf: ({ market_id, tx_hash, relayer }) =>
        tx_hash !== null && relayer !== null ? `${market_id}-${tx_hash}` : null,
    })
    this.#inFlight = new DocumentGroups(attempts, {
      keyOf,
      groupOf: ({ market_id, user_id, status }) =>
        isInFlight(status) ? ofAccount(market_id, user_id) : null,
    })
    this.#failed = new DocumentGroups(attempts, {
      keyOf,
      groupOf: ({ market_id, user_id, status, relayer_nonce }) =>
        status === 'ABORTED' && relayer_nonce !== null ? ofAccount(market_id, user_id) : null,
    })
  }

  withDigest(marketId: MarketId, digest: string): AttemptRow | undefined {
    return this.#byDigest.of(`${marketId}-${digest}`)[0]
  }

  /** In no particular order. */
  of(marketId: MarketId, account: number): AttemptRow[] {
    return this.#byAccount.of(ofAccount(marketId, account))
  }

  /** The market's attempt that this transaction sent. */
  sentWith(marketId: number, txHash: string): AttemptRow | undefined {
    return this.#byTransaction.of(`${marketId}-${txHash}`)[0]
  }

  /** The account's attempts in the market with an open outcome, oldest first. After a fork there can be several. */
  allInFlight(marketId: MarketId, account: UserId): AttemptRow[] {
    return this.#inFlight.of(ofAccount(marketId, account)).sort(byAge)
  }

  /** The oldest of them. */
  inFlight(marketId: MarketId, account: UserId): AttemptRow | undefined {
    return this.allInFlight(marketId, account)[0]
  }

  /** Time at which the account's last signed attempt in the market was aborted; null: never. */
  failedAt(marketId: MarketId, account: UserId): number | null {
    const times = this.#failed.of(ofAccount(marketId, account)).map(({ updated_at }) => updated_at)
    return times.length === 0 ? null : times.reduce((last, at) => Math.max(last, at))
  }
}

const byAge = (a: AttemptRow, b: AttemptRow): number =>
  a.created_at - b.created_at || (a.adjustment_id < b.adjustment_id ? -1 : 1)
