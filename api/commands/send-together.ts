/** Statements that are sent together. */
import type pg from 'pg'

/** The client's socket, where it can hold writes back. */
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
 * Sends statements in one write, which wakes the server once, and waits for their answers. Where one fails, those behind it fail because
 * of it: the first failure is the one that counts, and it is told when all are answered.
 */
export async function pipelined<Answers extends readonly unknown[]>(
  client: pg.ClientBase,
  send: () => { readonly [At in keyof Answers]: Promise<Answers[At]> },
): Promise<Answers> {
  const settled = await Promise.allSettled(inOneWrite(client, send))
  return settled.map((answer) => {
    if (answer.status === 'rejected') throw answer.reason
    return answer.value
  }) as unknown as Answers
}
