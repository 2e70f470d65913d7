/** Sends several statements to Postgres in one write. */
import type pg from 'pg'

/** The client's socket, if it can buffer writes. */
const streamOf = (client: pg.ClientBase) =>
  (client as { connection?: { stream?: { cork?(): void; uncork?(): void } } }).connection?.stream

function inOneWrite<Result>(client: pg.ClientBase, send: () => Result): Result {
  const stream = streamOf(client)
  stream?.cork?.()
  try {
    return send()
  } finally {
    stream?.uncork?.()
  }
}

/**
 * Sends statements in one write, which wakes the server once, and waits for all results. If a statement fails, those after it fail as a
 * consequence, so the first error is thrown, after all statements have finished.
 */
export async function sendTogether<Answers extends readonly unknown[]>(
  client: pg.ClientBase,
  send: () => { readonly [At in keyof Answers]: Promise<Answers[At]> },
): Promise<Answers> {
  const settled = await Promise.allSettled(inOneWrite(client, send))
  return settled.map((answer) => {
    if (answer.status === 'rejected') throw answer.reason
    return answer.value
  }) as unknown as Answers
}
