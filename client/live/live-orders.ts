/** Places and cancels orders over the live feed, with the answers and errors of REST. */
import { type Checked, checked } from '../batch-result.ts'
import { ClearbatchError } from '../errors.ts'
import { mayRetry } from '../http-session.ts'
import type { OutgoingOrder } from '../order-factory.ts'
import {
  type BatchOptions,
  type CancelAllOptions,
  type CancelBatchOptions,
  type IfFilled,
  type ReplaceOptions,
  type ReplaceTarget,
  replaceBody,
} from '../order-requests.ts'
import { CommandAttempts, IDENTITY, type OutcomeMemory } from '../outcomes.ts'
import type {
  BatchCancellation,
  BatchPlacement,
  BatchReplacement,
  Cancellation,
  Placement,
  Replacement,
  SweepCancellation,
} from '../responses.ts'
import type { LiveConnection } from './connection.ts'
import type { OwnWrite } from './local-account.ts'

export interface LiveOrdersPorts {
  readonly connection: () => LiveConnection
  /** Called with the answer to a write of this client. */
  readonly note: (write: OwnWrite) => void
  readonly budgetMs: number
  readonly outcomes: OutcomeMemory
}

const CALL_MS = 10_000
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

/** Commands over the live feed. Every command is idempotent, so it is sent again after a lost answer. */
export class LiveOrders {
  readonly #ports: LiveOrdersPorts

  constructor(ports: LiveOrdersPorts) {
    this.#ports = ports
  }

  /** Sending the same signed order twice places it once. */
  async send({ body }: Pick<OutgoingOrder, 'body'>): Promise<Placement> {
    return this.#write('place', body, IDENTITY.order(body))
  }

  async sendBatch(
    orders: readonly Pick<OutgoingOrder, 'body'>[],
    { mode = 'best_effort', clientRequestId }: BatchOptions = {},
  ): Promise<Checked<BatchPlacement>> {
    return this.#batch('place_batch', { mode, orders: orders.map(({ body }) => body) }, clientRequestId)
  }

  async replace(
    target: ReplaceTarget,
    { body }: Pick<OutgoingOrder, 'body'>,
    { ifFilled }: ReplaceOptions = {},
  ): Promise<Replacement> {
    return this.#write('replace', replaceBody(target, body, ifFilled), IDENTITY.order(body))
  }

  async replaceBatch(
    replacements: readonly {
      readonly target: ReplaceTarget
      readonly order: Pick<OutgoingOrder, 'body'>
      readonly ifFilled?: IfFilled
    }[],
    { mode = 'best_effort', clientRequestId }: BatchOptions = {},
  ): Promise<Checked<BatchReplacement>> {
    const orders = replacements.map(({ target, order, ifFilled }) =>
      replaceBody(target, order.body, ifFilled),
    )
    return this.#batch('replace_batch', { mode, orders }, clientRequestId)
  }

  async cancel(orderHash: string, reason?: string): Promise<Cancellation> {
    return this.#write('cancel', { order_hash: orderHash, reason }, IDENTITY.cancel(orderHash))
  }

  async cancelByClientId(clientOrderId: string, reason?: string): Promise<Cancellation> {
    return this.#write('cancel_by_client_id', { client_order_id: clientOrderId, reason })
  }

  async cancelBatch(
    orderHashes: readonly string[],
    { reason, clientRequestId }: CancelBatchOptions = {},
  ): Promise<Checked<BatchCancellation>> {
    return this.#batch('cancel_batch', { orderHashes, reason }, clientRequestId)
  }

  async cancelAll({ marketId, reason }: CancelAllOptions = {}): Promise<SweepCancellation> {
    const cancellation = await this.#run<SweepCancellation>('cancel_all', { market_id: marketId, reason })
    cancellation.results.forEach(this.#note)
    return cancellation
  }

  async #write<Answer extends object>(op: string, body: object, identity?: string): Promise<Answer> {
    const answer = await this.#run<Answer>(op, body, identity)
    this.#note(answer)
    return answer
  }

  async #batch<Answer extends { readonly results: readonly object[] }>(
    op: string,
    fields: object,
    clientRequestId: string = crypto.randomUUID(),
  ): Promise<Checked<Answer>> {
    const body = { client_request_id: clientRequestId, ...fields }
    const answer = await this.#run<Answer>(op, body, IDENTITY.request(clientRequestId))
    answer.results.forEach(this.#note)
    return checked(answer)
  }

  /** Notes the orders of a result: a replacement changes two orders, a refused item none. */
  #note = (result: object): void => {
    const { order, replaced, read_after } = result as Partial<Replacement>
    if (replaced) this.#ports.note({ order: replaced, read_after } as OwnWrite)
    if (order) this.#ports.note(result as OwnWrite)
  }

  async #run<Answer>(op: string, body: object, identity?: string): Promise<Answer> {
    const attempts = new CommandAttempts(this.#ports.outcomes, identity)
    const deadline = Date.now() + this.#ports.budgetMs
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        const { data } = await this.#ports.connection().call(op, { body }, CALL_MS)
        attempts.succeeded()
        return data as Answer
      } catch (failure) {
        if (!(failure instanceof ClearbatchError)) throw failure
        const error = attempts.failed(failure)
        if (!mayRetry({ idempotent: true }, error)) throw error
        const wait = error.retryAfterMs ?? pause
        if (Date.now() + wait > deadline) throw error
        await new Promise((resolve) => setTimeout(resolve, wait))
      }
    }
  }
}
