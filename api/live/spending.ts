/** Counts the operations of a connection in the limits of its address and its account. */
import { ApiError, errorBody } from '../errors.ts'
import type { Access, Spender } from '../http/access.ts'
import { BUCKET_OF, costOfCommand, type OrderMessage } from './operations.ts'
import type { Op } from './schema.ts'

export class Spending {
  readonly #access: Pick<Access, 'spend' | 'charge'>
  readonly #spender: () => Spender

  /** `spender`: the account can change from none to one. */
  constructor(access: Pick<Access, 'spend' | 'charge'>, spender: () => Spender) {
    this.#access = access
    this.#spender = spender
  }

  /** Before the operation is read. Throws RATE_LIMITED. */
  async spend(op: Op): Promise<void> {
    const bucket = BUCKET_OF[op]
    if (bucket === undefined) return
    await this.#access.spend(bucket, this.#spender()).catch((error: unknown) => {
      throw error instanceof ApiError ? error.beforeReading() : error
    })
  }

  /** Counts what a command has cost that ended in the error. */
  refused(message: OrderMessage, error: unknown): unknown {
    if (error instanceof ApiError)
      this.charge(message.op, costOfCommand(message, JSON.stringify(errorBody(error, '', false))))
    return error
  }

  /** Charges the cost of the operation above one request. */
  charge(op: Op, requests: number): void {
    const bucket = BUCKET_OF[op]
    if (bucket !== undefined) this.#access.charge(bucket, this.#spender(), requests)
  }
}
