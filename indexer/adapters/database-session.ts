/**
 * A dedicated Postgres connection for LISTEN that reconnects until it is stopped. Notifications during a lost
 * connection are lost; `onConnect` reports the reconnection.
 */
import pg from 'pg'
import { connectionConfig } from '../../db/client.ts'

const RECONNECT_MS = 1_000

export interface DatabaseSessionOptions {
  readonly url: string
  readonly name: string
  readonly channels: readonly string[]
  readonly onNotify: (channel: string, payload: string) => void
  /** Called on each connection: earlier notifications were not received. */
  readonly onConnect: () => void
  readonly onError: (error: Error) => void
}

export class DatabaseSession {
  readonly #options: DatabaseSessionOptions
  #client: pg.Client | null = null
  #reconnectTimer: NodeJS.Timeout | undefined
  #isRunning = true

  constructor(options: DatabaseSessionOptions) {
    this.#options = options
  }

  start(): void {
    void this.#connect()
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    clearTimeout(this.#reconnectTimer)
    const client = this.#client
    this.#client = null
    await client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    const { url, name, channels, onNotify, onConnect, onError } = this.#options
    const client = new pg.Client(connectionConfig({ url, name }))
    let isLost = false
    const lost = (error?: Error): void => {
      if (isLost) return
      isLost = true
      client.removeAllListeners('notification')
      if (this.#client === client) this.#client = null
      if (error) onError(error)
      this.#reconnect()
    }
    // A broken connection emits several events, and an `error` without a listener would end the process.
    client.on('error', lost)
    client.on('end', () => lost())
    client.on('notification', ({ channel, payload }) => onNotify(channel, payload ?? ''))
    try {
      await client.connect()
      for (const channel of channels) await client.query(`listen ${client.escapeIdentifier(channel)}`)
      if (!this.#isRunning) return void (await client.end())
      this.#client = client
      onConnect()
    } catch (error) {
      await client.end().catch(() => {})
      lost(error as Error)
    }
  }

  #reconnect(): void {
    clearTimeout(this.#reconnectTimer)
    if (this.#isRunning) this.#reconnectTimer = setTimeout(() => void this.#connect(), RECONNECT_MS)
  }
}
