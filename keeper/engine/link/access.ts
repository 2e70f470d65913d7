/** Where the engine is, and the keys by which its clients prove their roles. */
import { readFileSync } from 'node:fs'
import type { TlsSource } from '../../../service/certificates.ts'
import { type Env, environment, orNoted, rejectVariable } from '../../../service/environment.ts'
import type { Role } from './messages.ts'
import { linkTls } from './tls.ts'

/** A Unix socket, or a host and its port. */
export type Address = { readonly path: string } | { readonly host: string; readonly port: number }

const HOST_AND_PORT = /^([\w.-]+|\[[0-9a-f:]+\]):(\d{1,5})$/i

export function addressOf(variable: string, text: string): Address {
  if (text.startsWith('/')) return { path: text }
  const [, host, port] = HOST_AND_PORT.exec(text) ?? []
  if (host === undefined || Number(port) > 65_535)
    rejectVariable(variable, `is ${JSON.stringify(text)}: expected the path of a socket, or host:port`)
  return { host: (host as string).replace(/^\[|\]$/g, ''), port: Number(port) }
}

/** The keys of the roles, 32 bytes each, which the file has in hexadecimal digits. An error never repeats a key. */
export function keysOf<Name extends Role>(
  variable: string,
  file: string,
  wanted: readonly Name[],
): ReadonlyMap<Name, Buffer> {
  const stored = readKeys(variable, file)
  return new Map(
    wanted.map((role) => {
      const key = stored[role]
      if (typeof key !== 'string' || !/^[0-9a-f]{64}$/.test(key))
        rejectVariable(variable, `has no key for the role ${role}: expected 64 hexadecimal digits`)
      return [role, Buffer.from(key as string, 'hex')]
    }),
  )
}

function readKeys(variable: string, file: string): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? 'it is not JSON'
    return rejectVariable(
      variable,
      `is ${JSON.stringify(file)}, which cannot be read: ${why}; expected the path of a JSON object of roles and their keys`,
    )
  }
}

/** How a process reaches the engine. */
export interface EngineAccess<Name extends Role> {
  /** Addresses of all members, as the variable has them. */
  readonly members: readonly string[]
  readonly keys: ReadonlyMap<Name, Buffer>
  /** Null or absent: connections without TLS, for Unix sockets and the loopback interface. */
  readonly tls?: TlsSource | null
}

/** `ENGINE_URL`: the members, separated by commas. */
export function engineAccess<Name extends Role>(
  env: Env,
  processName: string,
  roles: readonly Name[],
): EngineAccess<Name> {
  const { text } = environment(env, processName)
  const members = text('ENGINE_URL').split(',')
  for (const member of members) orNoted<unknown>(() => addressOf('ENGINE_URL', member), null)
  const keys = orNoted(() => keysOf('ENGINE_KEYS_FILE', text('ENGINE_KEYS_FILE'), roles), new Map())
  const socket = members.find((member) => member.startsWith('/')) ?? null
  return { members, keys, tls: orNoted(() => linkTls(env, 'ENGINE_URL', socket), null) }
}
