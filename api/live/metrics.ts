/** The Prometheus metrics of the live feed's connections. */
import type { Instruments } from '../../service/metrics.ts'
import type { CloseReason } from './session.ts'

export interface LiveMetrics {
  opened(): void
  /** `client`: closed by it; `lost`: without a closing handshake. */
  closed(reason: CloseReason | 'client' | 'lost'): void
  subscribed(change: number): void
  /** Bytes sent, without those of the protocol. */
  sent(bytes: number): void
  /** An operation, or `unknown`. */
  received(op: string): void
  /** Messages were left out for a slow client, which gets one that replaces them later. */
  conflated(count: number): void
}

export function createLiveMetrics({ counter, gauge }: Instruments): LiveMetrics {
  const connections = gauge('api_live_connections', 'Open connections of the live feed')
  const subscriptions = gauge('api_live_subscriptions', 'Subscriptions of all connections')
  const bytes = counter('api_live_sent_bytes_total', 'Bytes of messages sent to connections')
  const messages = counter('api_live_received_total', 'Messages of clients by operation', ['op'])
  const conflations = counter('api_live_conflations_total', 'Messages that were left out for slow clients')
  const closed = counter('api_live_closed_total', 'Ended connections by reason', ['reason'])
  return {
    opened: () => connections.inc(),
    closed(reason) {
      connections.dec()
      closed.inc({ reason })
    },
    subscribed: (change) => subscriptions.inc(change),
    sent: (count) => bytes.inc(count),
    received: (op) => messages.inc({ op }),
    conflated: (count) => conflations.inc(count),
  }
}
