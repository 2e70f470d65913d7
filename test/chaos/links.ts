/** Proxies before every address that a process of the stack connects to. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../stack/ports.ts'
import type { ProcessSpec } from '../../stack/process-spec.ts'
import { type Endpoint, Link } from './link.ts'
import { FaultyNode } from './node.ts'

/** A connection between two processes, by their names with numbers, for example `keeper 2` and `primary`. */
export interface NamedLink {
  readonly from: string
  readonly to: string
  readonly link: Link
}

type Variables = Record<string, string>

export class Links {
  readonly all: NamedLink[] = []
  readonly nodes = new Map<string, FaultyNode>()
  readonly #dir: string
  readonly #random: () => number
  #sockets = 0

  /** `dir`: of the sockets; its path is short. */
  constructor(dir: string, random: () => number) {
    this.#dir = dir
    this.#random = random
  }

  of(name: string): readonly NamedLink[] {
    return this.all.filter(({ from, to }) => from === name || to === name)
  }

  /** The process with the addresses of proxies. */
  async adapt(name: string, spec: ProcessSpec): Promise<ProcessSpec> {
    const { env } = spec
    const changed: Variables = {}
    for (const [variable, change] of Object.entries(this.#changes(name))) {
      const value = env[variable]
      if (value !== undefined) changed[variable] = await change(value)
    }
    if (env.RPC_URL !== undefined) Object.assign(changed, await this.#chain(name, env.RPC_URL, env))
    return { ...spec, env: { ...env, ...changed } }
  }

  async close(): Promise<void> {
    for (const node of this.nodes.values()) await node.close()
    for (const { link } of this.all) await link.close()
  }

  #changes(name: string): Readonly<Record<string, (value: string) => Promise<string>>> {
    return {
      DATABASE_URL: (value) => this.#database(name, value),
      ENGINE_URL: async (value) =>
        (
          await Promise.all(
            value.split(',').map((path, at) => this.#socket(name, `engine ${at + 1}`, path, 'engine')),
          )
        ).join(','),
      AUTH_JWKS_URL: (value) => this.#web(name, 'issuer', value),
      BASE_URL: (value) => this.#web(name, 'api 1', value),
    }
  }

  async #start(from: string, to: string, own: Endpoint, target: Endpoint): Promise<void> {
    this.all.push({ from, to, link: await Link.start(own, target, this.#random) })
  }

  async #socket(name: string, to: string, target: Endpoint, file: string): Promise<string> {
    const folder = join(this.#dir, `${this.#sockets++}`)
    mkdirSync(folder)
    const path = join(folder, file)
    await this.#start(name, to, path, target)
    return path
  }

  async #database(name: string, value: string): Promise<string> {
    const url = new URL(value)
    const file = `.s.PGSQL.${url.port}`
    const folder = url.searchParams.get('host')
    const path = await this.#socket(name, 'primary', folder ? join(folder, file) : Number(url.port), file)
    url.searchParams.set('host', path.slice(0, -file.length - 1))
    return url.href
  }

  async #web(name: string, to: string, value: string): Promise<string> {
    const url = new URL(value)
    const own = await freePort()
    await this.#start(name, to, own, Number(url.port))
    url.port = `${own}`
    return url.href.replace(/\/$/, '')
  }

  async #chain(name: string, value: string, { RPC_WS_URL }: Variables): Promise<Variables> {
    const url = await this.#web(name, 'chain', value)
    const node = await FaultyNode.start(url)
    this.nodes.set(name, node)
    return {
      RPC_URL: node.url,
      ...(RPC_WS_URL === undefined ? {} : { RPC_WS_URL: url.replace(/^http/, 'ws') }),
    }
  }
}
