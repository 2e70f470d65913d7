/**
 * Saves two round trips per transaction: `begin` is sent with the first statement, `commit` with the last, if marked.
 * Only for transactions with one writing statement.
 */
import type pg from 'pg'
import { PreparingClient } from './prepared.ts'

const MARK = '/* commits */ '

/** The text of a statement that is the last of its transaction. If it fails, the server turns the commit into a rollback. */
export const committing = (text: string): string => `${MARK}${text}`

interface Corkable {
  cork?(): void
  uncork?(): void
}

/** The client's socket, if it can buffer writes. */
const streamOf = (client: pg.ClientBase): Corkable | undefined =>
  (client as { connection?: { stream?: Corkable } }).connection?.stream

/** One write wakes the server once. */
function inOneWrite<Result>(client: pg.ClientBase, send: () => Result): Result {
  const stream = streamOf(client)
  stream?.cork?.()
  try {
    return send()
  } finally {
    stream?.uncork?.()
  }
}

/** Collects writes until the current promise jobs have run, so that they leave in one packet. */
function untilNextTick(client: pg.ClientBase): void {
  const stream = streamOf(client)
  stream?.cork?.()
  process.nextTick(() => stream?.uncork?.())
}

const DONE: pg.QueryResult = { command: '', rowCount: null, oid: 0, fields: [], rows: [] }

export class TransactionClient extends PreparingClient {
  #begun: Promise<unknown> = Promise.resolve()
  #hasCommitted = false

  protected override send(args: readonly unknown[]): Promise<pg.QueryResult> {
    const [text] = args
    if (text === 'begin') return this.#begin(args)
    if (text === 'commit' || text === 'rollback') return this.#end(text, args)
    if (typeof text === 'string' && text.startsWith(MARK)) return this.#commitWith(args)
    return super.send(args)
  }

  /**
   * A refusal rejects the commit. Statements sent with a refused `begin` have run on their own, so a transaction may
   * have only one writing statement.
   */
  #begin(args: readonly unknown[]): Promise<pg.QueryResult> {
    untilNextTick(this)
    const begun = super.send(args)
    begun.catch(() => {})
    this.#begun = begun
    this.#hasCommitted = false
    return Promise.resolve(DONE)
  }

  async #end(text: 'commit' | 'rollback', args: readonly unknown[]): Promise<pg.QueryResult> {
    if (this.#hasCommitted) return DONE
    const [begun, ended] = await Promise.allSettled([this.#begun, super.send(args)])
    if (begun.status === 'rejected' && text === 'commit') throw begun.reason
    if (ended.status === 'rejected') throw ended.reason
    return ended.value
  }

  /** Rejects with the error of the statement, else with that of the commit. */
  async #commitWith(args: readonly unknown[]): Promise<pg.QueryResult> {
    this.#hasCommitted = true
    const sent = inOneWrite(this, () => [super.send(args), super.send(['commit'])] as const)
    const [begun, result, committed] = await Promise.allSettled([this.#begun, ...sent])
    for (const each of [begun, result, committed]) if (each.status === 'rejected') throw each.reason
    return (result as PromiseFulfilledResult<pg.QueryResult>).value
  }
}
