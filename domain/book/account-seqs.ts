/** Index of live orders by account. */
import type { Seq, UserId } from '../units.ts'

export class AccountSeqs {
  readonly #accounts = new Map<UserId, Set<Seq>>()

  add(account: UserId, seq: Seq): void {
    const seqs = this.#accounts.get(account)
    if (seqs === undefined) this.#accounts.set(account, new Set([seq]))
    else seqs.add(seq)
  }

  remove(account: UserId, seq: Seq): void {
    const seqs = this.#accounts.get(account)
    if (seqs?.delete(seq) && seqs.size === 0) this.#accounts.delete(account)
  }

  /** Ascending. */
  of(account: UserId): Seq[] {
    return [...(this.#accounts.get(account) ?? [])].sort((a, b) => a - b)
  }
}
