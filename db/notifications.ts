/** One connection that LISTENs for the whole process and reconnects after a failure. */
import pg from 'pg'
import { connectionConfig } from './client.ts'
import type { Statement } from './round-trip.ts'

/** Notifications of the database, by channel. */
export interface Notifications {
  on(channel: string, listener: (payload: string) => void): void
  /** Called when the connection breaks: notifications until the reconnect are lost. */
  onLost(listener: () => void): void
  isListening(): boolean
  /** Runs this process's listeners immediately, because the notification of its own commit arrives later. */
  announce(channel: string, payload: string): void
}

export interface RunningNotifications extends Notifications {
  start(): Promise<void>
  stop(): Promise<void>
}

export interface Notice {
  readonly channel: string
  readonly payload: string
}

/** The commit does not wait for the disk: other commits wait for it, and a notification need not outlive a crash. */
const NOTIFY = `
  select set_config('synchronous_commit', 'off', true), pg_notify(channel, payload)
  from unnest($1::text[], $2::text[]) n (channel, payload)
`

export const notifyQuery = (notices: readonly Notice[]): Statement => ({
  name: 'notify',
  text: NOTIFY,
  values: [notices.map(({ channel }) => channel), notices.map(({ payload }) => payload)],
})

/** Notifies listeners in a separate transaction, because commits with notifications wait for each other. */
export async function announce(pool: pg.Pool, notices: readonly Notice[]): Promise<void> {
  if (notices.length === 0) return
  const { name, text, values } = notifyQuery(notices)
  await pool.query({ name, text, values: [...values] })
}

const RECONNECT_MS = 500

/** `name`: name of the process. Listeners are registered before the start. */
export function createNotifications(url: string, name: string): RunningNotifications {
  const listeners = new Map<string, ((payload: string) => void)[]>()
  const lostListeners: (() => void)[] = []
  let client: pg.Client | null = null
  let timer: NodeJS.Timeout | undefined
  let isListening = false
  let isStopped = false

  const announce = (channel: string, payload: string): void => {
    for (const listener of listeners.get(channel) ?? []) listener(payload)
  }

  const lose = (broken: pg.Client): void => {
    if (client !== broken) return
    client = null
    isListening = false
    broken.end().catch(() => {})
    for (const listener of lostListeners) listener()
    if (!isStopped) timer = setTimeout(() => void connect(), RECONNECT_MS)
  }

  const connect = async (): Promise<void> => {
    const fresh = new pg.Client(connectionConfig({ url, name: `clearbatch ${name} listen` }))
    client = fresh
    fresh.on('error', () => lose(fresh))
    fresh.on('end', () => lose(fresh))
    fresh.on('notification', ({ channel, payload }) => announce(channel, payload ?? ''))
    try {
      await fresh.connect()
      for (const channel of listeners.keys()) await fresh.query(`listen ${pg.escapeIdentifier(channel)}`)
      isListening = client === fresh
    } catch {
      lose(fresh)
    }
  }

  return {
    on(channel, listener) {
      listeners.set(channel, [...(listeners.get(channel) ?? []), listener])
    },
    onLost: (listener) => void lostListeners.push(listener),
    isListening: () => isListening,
    announce,
    start: connect,
    async stop() {
      isStopped = true
      clearTimeout(timer)
      const last = client
      client = null
      isListening = false
      await last?.end().catch(() => {})
    },
  }
}
