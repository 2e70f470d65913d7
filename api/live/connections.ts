/** The connections of this process: their number, their heartbeats, the end of their credentials, and the end of the process. */

import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from '@fastify/websocket'
import { API_KEYS_CHANNEL } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'
import type { Caller } from '../auth/caller.ts'
import { currentKeys } from '../auth/query.ts'
import type { LiveConfig } from '../config.ts'
import { ApiError } from '../errors.ts'
import type { Access } from '../http/access.ts'
import { Counts } from '../http/counts.ts'
import { networkOf } from '../http/network.ts'
import type { Notifications } from '../ports.ts'
import { Connection, type ConnectionPorts } from './connection.ts'

/** An upgraded request. */
export interface Upgraded {
  readonly webSocket: WebSocket
  readonly socket: Socket
  readonly ip: string
  readonly caller: Caller | null
  readonly requestId: string
  readonly access: Pick<Access, 'spend' | 'charge'>
}

export interface Connections {
  /** Throws CONNECTION_LIMIT if the process, the address or the account has too many connections, and SHUTTING_DOWN during a stop. */
  check(ip: string, caller: Caller | null): void
  open(upgraded: Upgraded): void
  readonly size: number
  /** Accepts no more operations, and asks each client to connect again after a time of its own. */
  announceStop(): void
  /** Closes all connections. */
  stop(): Promise<void>
}

export interface ConnectionsPorts extends ConnectionPorts {
  readonly db: Db
  readonly notifications: Notifications
  /** From 0 to 1. */
  readonly random: () => number
}

/** Heartbeats are spread over this many turns. */
const SLOTS = 20
/** How long a replaced or revoked key is remembered, for connections that were authenticated a moment before. */
const REPLACED_MS = 60_000
/** How long clients may take to answer the closing. */
const CLOSING_MS = 1_000
const CLOSING_POLL_MS = 20

class LiveConnections implements Connections {
  readonly #ports: ConnectionsPorts
  readonly #config: LiveConfig
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<Connection>())
  readonly #slotOf = new Map<Connection, number>()
  readonly #ofUser = new Map<number, Set<Connection>>()
  readonly #perAddress = new Counts<string>()
  readonly #expiring = new Set<Connection>()
  /** Users of whom a key was replaced or revoked a moment ago, with the time. */
  readonly #replaced = new Map<number, number>()
  /** Users whose connections are compared with their keys in the next turn. */
  readonly #unchecked = new Set<number>()
  /** Messages by address in the window that ends at `#windowEnds`. */
  readonly #messages = new Map<string, number>()
  #windowEnds = 0
  #isListeningLost = false
  #isStopping = false
  #turns = 0
  #timer: NodeJS.Timeout

  constructor(ports: ConnectionsPorts, config: LiveConfig) {
    this.#ports = ports
    this.#config = config
    ports.notifications.on(API_KEYS_CHANNEL, (userId) => this.#keyReplaced(Number(userId)))
    ports.notifications.onLost(() => {
      this.#isListeningLost = true
    })
    this.#timer = setInterval(() => this.#turn(), config.heartbeatMs / SLOTS)
    this.#timer.unref()
  }

  get size(): number {
    return this.#slotOf.size
  }

  check(ip: string, caller: Caller | null): void {
    if (this.#isStopping) throw new ApiError('SHUTTING_DOWN', {}, '1')
    const { perProcess, perAddress } = this.#config.connections
    this.#checkLimit('process', this.size, perProcess)
    this.#checkLimit('address', this.#perAddress.of(networkOf(ip)), perAddress)
    if (caller !== null) this.#checkAccount(caller.userId)
  }

  #checkAccount(userId: number): void {
    const { perAccount } = this.#config.connections
    this.#checkLimit('account', this.#ofUser.get(userId)?.size ?? 0, perAccount)
  }

  #checkLimit(scope: string, count: number, most: number): void {
    if (count < most) return
    throw new ApiError('CONNECTION_LIMIT', { scope, expected: `at most ${most} connections` }, '5')
  }

  open({ caller, ...upgraded }: Upgraded): void {
    const membership = {
      attach: (connection: Connection, by: Caller) => this.#attach(connection, by),
      leave: (connection: Connection) => this.#leave(connection),
      admitsMessage: (ip: string) => this.#admitsMessage(networkOf(ip)),
      isStopping: () => this.#isStopping,
    }
    const connection = new Connection(this.#ports, { ...upgraded, membership })
    this.#ports.metrics.opened()
    const slot = this.#turns % SLOTS
    this.#slots[slot]?.add(connection)
    this.#slotOf.set(connection, slot)
    this.#perAddress.add(networkOf(connection.ip), 1)
    if (caller !== null) this.#attach(connection, caller)
  }

  #attach(connection: Connection, caller: Caller): void {
    const { userId, expiresAt, credential } = caller
    const own = this.#ofUser.get(userId) ?? new Set()
    if (!own.has(connection)) this.#checkAccount(userId)
    this.#ofUser.set(userId, own.add(connection))
    connection.caller = caller
    if (expiresAt === null) this.#expiring.delete(connection)
    else this.#expiring.add(connection)
    // The notification may have arrived between the check of the credential and now.
    if (credential === 'api_key' && this.#replaced.has(userId)) void this.#checkKeys([userId])
  }

  #leave(connection: Connection): void {
    const slot = this.#slotOf.get(connection)
    if (slot === undefined) return
    this.#slotOf.delete(connection)
    this.#slots[slot]?.delete(connection)
    this.#perAddress.add(networkOf(connection.ip), -1)
    this.#expiring.delete(connection)
    const userId = connection.caller?.userId
    const own = userId === undefined ? undefined : this.#ofUser.get(userId)
    if (own?.delete(connection) && own.size === 0) this.#ofUser.delete(userId as number)
  }

  #admitsMessage(ip: string): boolean {
    const now = this.#ports.clock.now()
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + this.#config.windowMs
      this.#messages.clear()
    }
    const count = (this.#messages.get(ip) ?? 0) + 1
    this.#messages.set(ip, count)
    return count <= this.#config.messagesOfAddress
  }

  // ------------------------------------------------------------------ credentials

  #keyReplaced(userId: number): void {
    this.#replaced.delete(userId)
    this.#replaced.set(userId, this.#ports.clock.now())
    if (this.#ofUser.has(userId)) void this.#checkKeys([userId])
  }

  /** Closes the connections whose API key is no longer one of their account. */
  async #checkKeys(userIds: readonly number[]): Promise<void> {
    try {
      const current = await currentKeys(this.#ports.db, userIds)
      for (const userId of userIds) {
        for (const connection of [...(this.#ofUser.get(userId) ?? [])]) {
          const { keyName, keyHash } = connection.caller ?? { keyName: null, keyHash: null }
          if (keyName === null || keyHash === null) continue
          const key = current.find((one) => one.user_id === userId && one.name === keyName)
          if (key === undefined) connection.close('revoked')
          else if (!key.key_hash.equals(keyHash)) connection.close('replaced')
        }
      }
    } catch (err) {
      for (const userId of userIds) this.#unchecked.add(userId)
      this.#ports.logger.warn({ err }, 'failed to check the keys of connections; will retry')
    }
  }

  /** Repeats failed checks, and checks all accounts once notifications arrive again after a loss. */
  #checkRest(): void {
    if (this.#isListeningLost && this.#ports.notifications.isListening()) {
      this.#isListeningLost = false
      for (const userId of this.#ofUser.keys()) this.#unchecked.add(userId)
    }
    if (this.#unchecked.size === 0) return
    const userIds = [...this.#unchecked]
    this.#unchecked.clear()
    void this.#checkKeys(userIds)
  }

  // ------------------------------------------------------------------ time

  #turn(): void {
    const now = this.#ports.clock.now()
    const slot = this.#slots[this.#turns++ % SLOTS] ?? []
    for (const connection of [...slot]) connection.turn(now)
    for (const connection of [...this.#expiring]) connection.endIfOver(now)
    if (this.#turns % SLOTS === 0) this.#checkRest()
    for (const [userId, at] of this.#replaced) {
      if (now - at < REPLACED_MS) break
      this.#replaced.delete(userId)
    }
  }

  announceStop(): void {
    this.#isStopping = true
    const { random } = this.#ports
    for (const connection of this.#slotOf.keys())
      connection.announceStop(Math.floor(random() * this.#config.reconnectMs))
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const closing = [...this.#slotOf.keys()]
    for (const connection of closing) connection.close('shutdown')
    const deadline = this.#ports.clock.now() + CLOSING_MS
    while (closing.some((one) => !one.isGone) && this.#ports.clock.now() < deadline)
      await sleep(CLOSING_POLL_MS)
    for (const connection of closing) connection.destroy()
  }
}

export const createConnections = (ports: ConnectionsPorts, config: LiveConfig): Connections =>
  new LiveConnections(ports, config)
