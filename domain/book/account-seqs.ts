/** Index of live orders by account. */
import type { Seq, UserId } from '../units.ts'
import { addSeq, removeSeq } from './sorted-seqs.ts'

export class AccountSeqs {
  readonly #accounts = new Map<UserId, Seq[]>()

  add(account: UserId, seq: Seq): void {
    const seqs = this.#accounts.get(account)
    if (seqs === undefined) this.#accounts.set(account, [seq])
    else addSeq(seqs, seq)
  }

  remove(account: UserId, seq: Seq): void {
    const seqs = this.#accounts.get(account)
    if (seqs === undefined) return
    removeSeq(seqs, seq)
    if (seqs.length === 0) this.#accounts.delete(account)
  }

  accounts(): Iterable<UserId> {
    return this.#accounts.keys()
  }

  /** Ascending. Changes with the index. */
  of(account: UserId): readonly Seq[] {
    return this.#accounts.get(account) ?? []
  }
}
