/** Sends several statements of a pipelined connection in one write, which wakes the server once. */
import type pg from 'pg'

interface Corkable {
  cork?(): void
  uncork?(): void
}

/** The client's socket, if it can buffer writes. */
const streamOf = (client: pg.ClientBase): Corkable | undefined =>
  (client as { connection?: { stream?: Corkable } }).connection?.stream

export function inOneWrite<Result>(client: pg.ClientBase, send: () => Result): Result {
  const stream = streamOf(client)
  stream?.cork?.()
  try {
    return send()
  } finally {
    stream?.uncork?.()
  }
}

/** What is sent from now on leaves with what the current promise jobs send after it. */
export function untilNextTick(client: pg.ClientBase): void {
  const stream = streamOf(client)
  stream?.cork?.()
  process.nextTick(() => stream?.uncork?.())
}
