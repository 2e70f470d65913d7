/** A row of the feed in memory. Its parts are parsed when a subscribed topic needs them. */
import { decodeChanges, type FeedChanges } from '../../db/feed-changes.ts'
import type { FeedBalance, FeedLevel } from '../../db/feed-schema.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { StoredRow } from './feed-query.ts'

type ListName = 'orders' | 'fills' | 'positions' | 'transactions' | 'removedTransactions' | 'adjustments'
type Lists = { readonly [Name in ListName]: NonNullable<FeedChanges[Name]> }

export interface AccountChanges extends Lists {
  readonly balance: FeedBalance | null
}

interface Parsed {
  readonly changes: FeedChanges
  readonly levels: readonly FeedLevel[]
  readonly balances: readonly FeedBalance[]
}

/** The changes by account. */
type Accounts = { readonly [Name in ListName]: ReadonlyMap<number, Lists[Name]> } & {
  readonly balances: ReadonlyMap<number, FeedBalance>
}

const account = ({ user_id }: { readonly user_id: number }): number => user_id

export class FeedRow {
  readonly seq: number
  readonly at: number
  readonly batchId: number | null
  /** Null for a row of the shard of accounts. */
  readonly marketId: number | null
  readonly readAfter: { readonly shard_id: string; readonly shard_seq: string }
  readonly #stored: StoredRow
  #parsed: Parsed | null = null
  #accounts: Accounts | null = null

  constructor(stored: StoredRow) {
    this.#stored = stored
    this.seq = stored.seq
    this.at = stored.at
    this.batchId = stored.batch_id
    this.marketId = stored.shard === ACCOUNTS_SHARD ? null : Number(stored.shard.slice(1))
    this.readAfter = {
      shard_id: `${stored.shard}.${stored.shard_epoch}`,
      shard_seq: String(stored.shard_seq),
    }
  }

  /** The topics that the row concerns. */
  get heads(): readonly string[] {
    return Object.keys(this.#stored.heads)
  }

  concerns(head: string): boolean {
    return Object.hasOwn(this.#stored.heads, head)
  }

  /** Seq of the topic's previous row. */
  prevSeq(head: string): number {
    return this.#stored.heads[head] ?? 0
  }

  /** About, in bytes. */
  get size(): number {
    const { changes, levels, balances } = this.#stored
    return changes.length + (levels?.length ?? 0) + (balances?.length ?? 0) + 200
  }

  get levels(): readonly FeedLevel[] {
    return this.#parse().levels
  }

  get changes(): FeedChanges {
    return this.#parse().changes
  }

  /** Changes of one account. Rows are grouped once, because a batch may concern hundreds of accounts. */
  ofAccount(userId: number): AccountChanges {
    const { changes, balances } = this.#parse()
    this.#accounts ??= {
      orders: Map.groupBy(changes.orders ?? [], account),
      fills: Map.groupBy(changes.fills ?? [], account),
      positions: Map.groupBy(changes.positions ?? [], account),
      transactions: Map.groupBy(changes.transactions ?? [], account),
      removedTransactions: Map.groupBy(changes.removedTransactions ?? [], account),
      adjustments: Map.groupBy(changes.adjustments ?? [], account),
      balances: new Map(balances.map((balance) => [balance[0], balance])),
    }
    const groups = this.#accounts
    return {
      orders: groups.orders.get(userId) ?? [],
      fills: groups.fills.get(userId) ?? [],
      positions: groups.positions.get(userId) ?? [],
      transactions: groups.transactions.get(userId) ?? [],
      removedTransactions: groups.removedTransactions.get(userId) ?? [],
      adjustments: groups.adjustments.get(userId) ?? [],
      balance: groups.balances.get(userId) ?? null,
    }
  }

  get isParsed(): boolean {
    return this.#parsed !== null
  }

  /** Forgets the parsed form, which takes several times the memory of the text. */
  release(): void {
    this.#parsed = null
    this.#accounts = null
  }

  #parse(): Parsed {
    const { changes, levels, balances } = this.#stored
    this.#parsed ??= {
      changes: decodeChanges(changes),
      levels: levels === null ? [] : JSON.parse(levels),
      balances: balances === null ? [] : JSON.parse(balances),
    }
    return this.#parsed
  }
}
