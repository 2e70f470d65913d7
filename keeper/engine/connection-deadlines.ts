/**
 * When the dead-man switch of each connection fires. Renewals change nothing else, so they are in no row; after a takeover each connection has
 * its whole time again.
 */
import type { ConnectionSwitch } from '../../domain/exchange/decide/orders/switches.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import type { Millis } from '../../domain/units.ts'

export interface DueConnection {
  readonly connectionId: string
  readonly fireAt: Millis
}

export class ConnectionDeadlines {
  readonly #fireAt = new Map<string, Millis>()

  /** A new owner begins with the connections that its state has. */
  restart(state: ExchangeState, now: Millis): void {
    this.#fireAt.clear()
    for (const { connection_id, timeout_seconds } of state.connectionSwitches.rows())
      this.#fireAt.set(connection_id, (now + timeout_seconds * 1_000) as Millis)
  }

  held(connections: readonly ConnectionSwitch[], now: Millis): void {
    for (const { connectionId, fireInMs } of connections)
      this.#fireAt.set(connectionId, (now + fireInMs) as Millis)
  }

  ended(connections: readonly string[]): void {
    for (const connectionId of connections) this.#fireAt.delete(connectionId)
  }

  due(now: Millis): DueConnection[] {
    const due: DueConnection[] = []
    for (const [connectionId, fireAt] of this.#fireAt) if (fireAt <= now) due.push({ connectionId, fireAt })
    return due
  }

  /** A connection that was renewed meanwhile keeps its new deadline. */
  fired(due: readonly DueConnection[]): void {
    for (const { connectionId, fireAt } of due)
      if (this.#fireAt.get(connectionId) === fireAt) this.#fireAt.delete(connectionId)
  }
}
