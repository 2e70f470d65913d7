/** Connections to Redis: one server, or the primary that Sentinels name. */
import { Redis, type RedisOptions } from 'ioredis'
import { clientTls, identityOf, openCertificates, type TlsMaterial } from './certificates.ts'
import { type Env, orNoted, rejectVariable } from './config-error.ts'

export interface SentinelAddress {
  readonly host: string
  readonly port: number
}

/** URL of a server, or Sentinels that know the primary. */
export type RedisAddress =
  | { readonly url: string; readonly isTls: boolean }
  | {
      readonly sentinels: readonly SentinelAddress[]
      /** Name of the primary in the Sentinel configuration. */
      readonly name: string
      readonly password: string | null
      /** For Sentinels and servers. */
      readonly isTls: boolean
    }

/** Parameters of the URL, which the variables set, so that every connection is opened by them. */
const FILES = {
  ca_file: 'REDIS_CA_FILE',
  cert_file: 'REDIS_CERT_FILE',
  key_file: 'REDIS_KEY_FILE',
} as const

const VALID =
  'expected redis://host:port, or redis+sentinel://:password@host:port,host:port,host:port/name; rediss for TLS'
const SENTINELS = /^redis(s?)\+sentinel:\/\/(?::([^@/]*)@)?([\w.-]+:\d{1,5}(?:,[\w.-]+:\d{1,5})*)\/([\w.-]+)$/

/**
 * Parses a Redis address. Throws a ConfigError that names the variable, but not its value, which may contain a password.
 */
export function redisAddressOf(variable: string, text: string): RedisAddress {
  if (!/^rediss?\+sentinel:/.test(text)) {
    const protocol = URL.canParse(text) ? new URL(text).protocol : ''
    return ['redis:', 'rediss:'].includes(protocol)
      ? { url: text, isTls: protocol === 'rediss:' }
      : rejectVariable(variable, `is no URL of Redis: ${VALID}`)
  }
  const [, s, password, hosts, name] = SENTINELS.exec(text) ?? []
  if (hosts === undefined || name === undefined)
    return rejectVariable(variable, `is no URL of Sentinels: ${VALID}`)
  const sentinels = hosts.split(',').map((each) => {
    const [host = '', port] = each.split(':')
    return { host, port: Number(port) }
  })
  return {
    sentinels,
    name,
    password: password === undefined ? null : decodeURIComponent(password),
    isTls: s === 's',
  }
}

/** Validated `REDIS_URL`, with the files of its certificates; null if it is not set. */
export const redisUrlOf = (env: Env): string | null => orNoted(() => checkedUrl(env), null)

function checkedUrl(env: Env): string | null {
  const { REDIS_URL: url } = env
  if (!url) return null
  const { isTls } = redisAddressOf('REDIS_URL', url)
  const files = Object.entries(FILES).flatMap(([parameter, variable]): [string, string][] => {
    const path = env[variable]
    return path ? [[parameter, path]] : []
  })
  if (files.length === 0) return url
  if (!isTls)
    rejectVariable('REDIS_URL', 'has no TLS although files of certificates are set: expected rediss://')
  const secured = `${url}${url.includes('?') ? '&' : '?'}${new URLSearchParams(files)}`
  tlsOf(splitFiles(secured).files)
  return secured
}

/** The URL without the files of its certificates, and these. */
function splitFiles(text: string): { readonly url: string; readonly files: Env } {
  const [url = '', query = ''] = text.split('?')
  const parameters = new URLSearchParams(query)
  const files = Object.fromEntries(
    Object.entries(FILES).map(([parameter, variable]) => [variable, parameters.get(parameter) ?? undefined]),
  )
  for (const parameter of Object.keys(FILES)) parameters.delete(parameter)
  return { url: parameters.size === 0 ? url : `${url}?${parameters}`, files }
}

function tlsOf(files: Env): TlsMaterial {
  const ca = files[FILES.ca_file]
  const identity = identityOf(files, FILES.cert_file, FILES.key_file)
  if (!ca && identity === null) return {}
  return clientTls(
    openCertificates('redis', { ca: ca ? { variable: FILES.ca_file, path: ca } : null, identity }),
  )
}

/**
 * Opens a connection. Sentinels and servers share one password. After a failover it reconnects to the new primary.
 */
export function openRedis(text: string, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const { url, files } = splitFiles(text)
  const address = redisAddressOf('REDIS_URL', url)
  const tls = address.isTls ? tlsOf(files) : null
  // A URL of the protocol rediss would set the option itself, to the defaults.
  if ('url' in address)
    return new Redis(address.url.replace(/^rediss:/, 'redis:'), { ...options, ...(tls && { tls }) })
  const { sentinels, name, password } = address
  return new Redis({
    ...options,
    sentinels: [...sentinels],
    name,
    ...(password !== null && { password, sentinelPassword: password }),
    ...(tls && { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
    failoverDetector: true,
  })
}
