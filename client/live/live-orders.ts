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
} from '../orders.ts'
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
  /** An own write was answered. */
  readonly note: (write: OwnWrite) => void
  readonly budgetMs: number
  readonly outcomes: OutcomeMemory
}

const CALL_MS = 10_000
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

/** Every command is idempotent, so that it is sent again after a lost answer. */
export class LiveOrders {
  readonly #ports: LiveOrdersPorts

  constructor(ports: LiveOrdersPorts) {
    this.#ports = ports
  }

  /** Sending the same signed order twice places it once. */
  async send({ body }: Pick<OutgoingOrder, 'body'>): Promise<Placement> {
    const placement = await this.#run<Placement>('place', body, IDENTITY.order(body))
    this.#ports.note(placement)
    return placement
  }

  async sendBatch(
    orders: readonly Pick<OutgoingOrder, 'body'>[],
    { mode = 'best_effort', clientRequestId = crypto.randomUUID() }: BatchOptions = {},
  ): Promise<Checked<BatchPlacement>> {
    const bodies = orders.map(({ body }) => body)
    const command = { client_request_id: clientRequestId, mode, orders: bodies }
    const placement = await this.#run<BatchPlacement>(
      'place_batch',
      command,
      IDENTITY.request(clientRequestId),
    )
    this.#noteAll(placement.results)
    return checked(placement)
  }

  async replace(
    target: ReplaceTarget,
    { body }: Pick<OutgoingOrder, 'body'>,
    { ifFilled }: ReplaceOptions = {},
  ): Promise<Replacement> {
    const command = replaceBody(target, body, ifFilled)
    const replacement = await this.#run<Replacement>('replace', command, IDENTITY.order(body))
    this.#noteReplaced(replacement)
    return replacement
  }

  async replaceBatch(
    replacements: readonly {
      readonly target: ReplaceTarget
      readonly order: Pick<OutgoingOrder, 'body'>
      readonly ifFilled?: IfFilled
    }[],
    { mode = 'best_effort', clientRequestId = crypto.randomUUID() }: BatchOptions = {},
  ): Promise<Checked<BatchReplacement>> {
    const orders = replacements.map(({ target, order, ifFilled }) =>
      replaceBody(target, order.body, ifFilled),
    )
    const replacement = await this.#run<BatchReplacement>(
      'replace_batch',
      { client_request_id: clientRequestId, mode, orders },
      IDENTITY.request(clientRequestId),
    )
    for (const result of replacement.results) if ('order' in result) this.#noteReplaced(result)
    return checked(replacement)
  }

  async cancel(orderHash: string, reason?: string): Promise<Cancellation> {
    const body = { order_hash: orderHash, reason }
    const cancellation = await this.#run<Cancellation>('cancel', body, IDENTITY.cancel(orderHash))
    this.#ports.note(cancellation)
    return cancellation
  }

  async cancelByClientId(clientOrderId: string, reason?: string): Promise<Cancellation> {
    const body = { client_order_id: clientOrderId, reason }
    const cancellation = await this.#run<Cancellation>('cancel_by_client_id', body)
    this.#ports.note(cancellation)
    return cancellation
  }

  async cancelBatch(
    orderHashes: readonly string[],
    { reason, clientRequestId = crypto.randomUUID() }: CancelBatchOptions = {},
  ): Promise<Checked<BatchCancellation>> {
    const command = { client_request_id: clientRequestId, orderHashes, reason }
    const identity = IDENTITY.request(clientRequestId)
    const cancellation = await this.#run<BatchCancellation>('cancel_batch', command, identity)
    this.#noteAll(cancellation.results)
    return checked(cancellation)
  }

  async cancelAll({ marketId, reason }: CancelAllOptions = {}): Promise<SweepCancellation> {
    const cancellation = await this.#run<SweepCancellation>('cancel_all', { market_id: marketId, reason })
    this.#noteAll(cancellation.results)
    return cancellation
  }

  #noteReplaced(replacement: Pick<Replacement, 'order' | 'replaced' | 'read_after'>): void {
    this.#ports.note({ order: replacement.replaced, read_after: replacement.read_after })
    this.#ports.note(replacement)
  }

  #noteAll(results: readonly object[]): void {
    for (const result of results) if ('order' in result) this.#ports.note(result as OwnWrite)
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
