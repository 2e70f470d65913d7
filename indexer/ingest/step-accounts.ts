/**
 * The account rows of facts that are applied together. A step of matched parts alone locks them with its last change: it reads only balances that
 * no other transaction changes meanwhile (`plan-steps.ts`), and the parallel steps of accounts that trade in many markets would otherwise wait for each
 * other. Other facts lock the rows first.
 */
import { changeLedger, type LedgerChange, lockAccounts } from '../../db/accounts.ts'
import type { Tx } from '../../db/client.ts'

export class StepAccounts {
  readonly #tx: Tx
  readonly #userIds: readonly number[]
  #isLocked: boolean
  readonly #last: LedgerChange[] = []

  constructor(tx: Tx, userIds: Iterable<number>, { isLocked }: { readonly isLocked: boolean }) {
    this.#tx = tx
    this.#userIds = [...userIds]
    this.#isLocked = isLocked
  }

  async lock(): Promise<void> {
    if (!this.#isLocked) await lockAccounts(this.#tx, this.#userIds)
    this.#isLocked = true
  }

  /** `isLast`: nothing that comes after it reads or locks account rows. */
  async change(changes: readonly LedgerChange[], { isLast }: { readonly isLast: boolean }): Promise<void> {
    if (isLast && !this.#isLocked) this.#last.push(...changes)
    else {
      await this.lock()
      await changeLedger(this.#tx, changes)
    }
  }

  /** Writes what was left for the end. */
  async write(): Promise<void> {
    await changeLedger(this.#tx, this.#last)
  }
}
