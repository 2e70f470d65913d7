/**
 * A connection of our own to Postgres: what belongs to a session (LISTEN, advisory locks) cannot live in a pool. It connects again
 * for as long as it is wanted; what was held or announced meanwhile is lost, and the caller is told.
 */
import pg from 'pg'

const AGAIN_MS = 1_000

export interface DatabaseSessionOptions {
  readonly url: string
  readonly name: string
  readonly channels: readonly string[]
  readonly onNotify: (channel: string, payload: string) => void
  /** Connected, for the first time or again: whatever was announced before went unheard. */
  readonly onConnect: () => void
  readonly onError: (error: Error) => void
}

export class DatabaseSession {
  readonly #options: DatabaseSessionOptions
  #client: pg.Client | null = null
  #again: NodeJS.Timeout | undefined
  #isWanted = true
  #locks = new Set<string>()

  constructor(options: DatabaseSessionOptions) {
    this.#options = options
  }

  start(): void {
    void this.#connect()
  }

  /**
   * Whether this session holds the lock of that name, taking it where it is free. The lock is Postgres's own: it ends with the
   * session, and another process takes over at once.
   */
  async holdsLock(name: string): Promise<boolean> {
    const client = this.#client
    if (client === null) return false
    if (this.#locks.has(name)) return true
    const { rows } = await client.query('select pg_try_advisory_lock(hashtext($1)) as taken', [name])
    if (rows[0].taken === true && client === this.#client) this.#locks.add(name)
    return this.#locks.has(name)
  }

  async stop(): Promise<void> {
    this.#isWanted = false
    clearTimeout(this.#again)
    const client = this.#client
    this.#client = null
    this.#locks.clear()
    await client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    const { url, name, channels, onNotify, onConnect, onError } = this.#options
    const client = new pg.Client({ connectionString: url, application_name: name })
    let isLost = false
    const lost = (error?: Error): void => {
      if (isLost) return
      isLost = true
      client.removeAllListeners('notification')
      if (this.#client === client) this.#forget()
      if (error) onError(error)
      this.#connectAgain()
    }
    // One broken connection tells of it more than once, and an error that nobody hears would end the process.
    client.on('error', lost)
    client.on('end', () => lost())
    client.on('notification', ({ channel, payload }) => onNotify(channel, payload ?? ''))
    try {
      await client.connect()
      for (const channel of channels) await client.query(`listen ${client.escapeIdentifier(channel)}`)
      if (!this.#isWanted) return void (await client.end())
      this.#client = client
      onConnect()
    } catch (error) {
      await client.end().catch(() => {})
      lost(error as Error)
    }
  }

  #forget(): void {
    this.#client = null
    this.#locks.clear()
  }

  #connectAgain(): void {
    clearTimeout(this.#again)
    if (this.#isWanted) this.#again = setTimeout(() => void this.#connect(), AGAIN_MS)
  }
}
