/** A member of the engine behind a Unix socket, for tests of the connection. */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { type Identity, PROTOCOL, type Role } from '../../../../keeper/engine/link/messages.ts'
import { RecentReplies } from '../../../../keeper/engine/link/recent-replies.ts'
import {
  LINK_LIMITS,
  type LinkPorts,
  type ReceivedRequest,
  serveLink,
} from '../../../../keeper/engine/link/server.ts'
import type { Reply, Request } from '../../../../keeper/engine/owner.ts'
import type { Timer } from '../../../../keeper/engine/ports.ts'
import type { Logger } from '../../../../service/logger.ts'

export interface Command {
  readonly name: string
}

export const IDENTITY: Identity = { protocol: PROTOCOL, chainId: 6343, schema: '0061', incarnation: 1 }
export const KEYS = new Map<Role, Buffer>([
  ['api', randomBytes(32)],
  ['worker', randomBytes(32)],
])
export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }
export const TIMER: Timer = {
  after(ms, work) {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  },
  soon: (work) => void setImmediate(work),
}
export const monotonic = (): number => performance.now()

/** A member of the engine behind a Unix socket; the test decides when it answers. */
export class MemberFixture {
  readonly path: string
  isOwner: boolean
  token = 1
  readonly received: ReceivedRequest<Command>[] = []
  /** Answers a command; by default at once, with its name. */
  answer: (request: Request<Command>) => Promise<Reply<unknown>> = async ({ command }) => ({
    answer: command.name,
  })
  readonly #sockets = new Set<Socket>()
  readonly #links = new Set<ReturnType<typeof serveLink>>()
  readonly #recent = new RecentReplies(100)
  readonly #member = randomBytes(8).toString('hex')
  readonly #server: Server

  constructor(path: string, isOwner: boolean, limits = LINK_LIMITS) {
    this.path = path
    this.isOwner = isOwner
    const ports: LinkPorts<Command> = {
      identity: IDENTITY,
      keys: KEYS,
      recent: this.#recent,
      member: this.#member,
      monotonic,
      token: () => (this.isOwner ? this.token : null),
      logger: SILENT,
      parse(value) {
        const { name } = value as Command
        if (typeof name !== 'string') throw new Error('name: expected a text')
        return { name }
      },
      allows: (role, { name }) => role === 'worker' || !name.startsWith('signed'),
      classify: () => ({ class: 'placement', account: 1 }),
      submit: (request) => {
        // Members that are not the owner take facts alone.
        if (!this.isOwner && !request.command.name.startsWith('fact')) return null
        this.received.push(request)
        return this.answer(request)
      },
    }
    this.#server = createServer((socket) => {
      this.#sockets.add(socket)
      this.#links.add(serveLink(socket, ports, limits))
    })
  }

  async listen(): Promise<void> {
    this.#server.listen(this.path)
    await once(this.#server, 'listening')
  }

  announce(isOwner: boolean): void {
    this.isOwner = isOwner
    for (const link of this.#links) link.announce()
  }

  /** As a stopped process: nothing is read until the returned function is called. */
  freeze(): () => void {
    const frozen = [...this.#sockets]
    for (const socket of frozen) socket.pause()
    return () => {
      for (const socket of frozen) socket.resume()
    }
  }

  cutConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }

  async stop(): Promise<void> {
    this.cutConnections()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }
}
