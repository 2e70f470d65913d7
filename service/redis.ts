/** Connections to Redis: one server, or the primary that Sentinels name. */
import { Redis, type RedisOptions } from 'ioredis'
import { type Env, rejectVariable } from './environment.ts'

export interface SentinelAddress {
  readonly host: string
  readonly port: number
}

/** URL of a server, or Sentinels that know the primary. */
export type RedisAddress =
  | { readonly url: string }
  | {
      readonly sentinels: readonly SentinelAddress[]
      /** Name of the primary in the Sentinel configuration. */
      readonly name: string
      readonly password: string | null
    }

const SENTINEL_PROTOCOL = 'redis+sentinel://'
const VALID = 'expected redis://host:port, or redis+sentinel://:password@host:port,host:port,host:port/name'
const SENTINELS = /^(?::([^@/]*)@)?([\w.-]+:\d{1,5}(?:,[\w.-]+:\d{1,5})*)\/([\w.-]+)$/

/**
 * Parses a Redis address. Throws a ConfigError that names the variable, but not its value, which may contain a password.
 */
export function redisAddressOf(variable: string, text: string): RedisAddress {
  if (!text.startsWith(SENTINEL_PROTOCOL)) {
    const isRedis = URL.canParse(text) && ['redis:', 'rediss:'].includes(new URL(text).protocol)
    return isRedis ? { url: text } : rejectVariable(variable, `is no URL of Redis: ${VALID}`)
  }
  const [, password, hosts, name] = SENTINELS.exec(text.slice(SENTINEL_PROTOCOL.length)) ?? []
  if (hosts === undefined || name === undefined)
    return rejectVariable(variable, `is no URL of Sentinels: ${VALID}`)
  const sentinels = hosts.split(',').map((each) => {
    const [host = '', port] = each.split(':')
    return { host, port: Number(port) }
  })
  return { sentinels, name, password: password === undefined ? null : decodeURIComponent(password) }
}

/** Validated `REDIS_URL`; null if it is not set. */
export function redisUrlOf({ REDIS_URL: url }: Env): string | null {
  if (!url) return null
  redisAddressOf('REDIS_URL', url)
  return url
}

/**
 * Opens a connection. Sentinels and servers share one password. After a failover it reconnects to the new primary.
 */
export function openRedis(text: string, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const address = redisAddressOf('REDIS_URL', text)
  if ('url' in address) return new Redis(address.url, options)
  const { sentinels, name, password } = address
  return new Redis({
    ...options,
    sentinels: [...sentinels],
    name,
    ...(password !== null && { password, sentinelPassword: password }),
    failoverDetector: true,
  })
}
