/** Polls a read until a condition holds, for events without a bookmark, such as a fill by a later batch. */
import { ClearbatchError, CODES } from './errors.ts'

export interface WaitOptions {
  readonly budgetMs?: number
  readonly everyMs?: number
}

/** Returns the first value for which `done` is true. Throws `CLIENT_TIMEOUT` after `budgetMs`. */
export async function waitFor<Value>(
  read: () => Promise<Value>,
  done: (value: Value) => boolean,
  { budgetMs = 15_000, everyMs = 50 }: WaitOptions = {},
): Promise<Value> {
  const deadline = Date.now() + budgetMs
  for (;;) {
    const value = await read()
    if (done(value)) return value
    if (Date.now() + everyMs > deadline) throw timedOut(budgetMs, value)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

const timedOut = (budgetMs: number, last: unknown): ClearbatchError =>
  new ClearbatchError(`the condition was not met within ${budgetMs} ms`, {
    code: CODES.timeout,
    outcome: 'unknown',
    details: { last },
  })
