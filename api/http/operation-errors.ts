/** The error codes that an operation can answer: those that follow from its route, and those that the route declares. */
import type { RouteOptions } from 'fastify'
import type { Status } from '../catalogue-entry.ts'
import { CATALOGUE, type ErrorCode } from '../error-catalogue.ts'
import { isRead } from './operation.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Codes of the operation that do not follow from its method, access and schemas. */
    readonly errors?: readonly ErrorCode[]
  }
}

const EVERY: readonly ErrorCode[] = [
  'MALFORMED_REQUEST',
  'UNKNOWN_FIELD',
  'REQUEST_TIMEOUT',
  'RATE_LIMITED',
  'TOO_MANY_CONNECTIONS',
  'LIMITS_UNAVAILABLE',
  'INTERNAL',
  'DATABASE_UNAVAILABLE',
  'SHUTTING_DOWN',
]
const OF_BODY: readonly ErrorCode[] = [
  'INVALID_FIELD',
  'INVALID_JSON',
  'DUPLICATE_FIELD',
  'PRECISION_LOST',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_ENCODING',
  'UNSUPPORTED_CONTENT_TYPE',
]
const OF_CREDENTIAL: readonly ErrorCode[] = [
  'CREDENTIAL_MISSING',
  'CREDENTIAL_MALFORMED',
  'API_KEY_UNKNOWN',
  'BEARER_UUID_REFUSED',
  'BEARER_INVALID',
  'BEARER_EXPIRED',
  'BEARER_NOT_YET_VALID',
  'BEARER_ALGORITHM',
  'BEARER_KEY_UNKNOWN',
  'BEARER_NOT_CONFIGURED',
  'ADDRESS_NOT_ALLOWED',
  'IDENTITY_PROVIDER_UNAVAILABLE',
]
const OF_BOOKMARK: readonly ErrorCode[] = [
  'INCOMPLETE_BOOKMARK',
  'HTV1_READ_AFTER_STALE_BOOKMARK',
  'HTV1_READ_AFTER_CAPACITY',
  'HTV1_READ_AFTER_PENDING',
  'HTV1_READ_AFTER_UNAVAILABLE',
  'READ_MODEL_FILLING',
]

interface Part {
  readonly properties?: Readonly<Record<string, unknown>>
  readonly required?: readonly string[]
}

type Route = Pick<RouteOptions, 'method' | 'config' | 'schema'>

const namesIn = (part: unknown): string[] => Object.keys((part as Part | undefined)?.properties ?? {})
const requiredIn = (part: unknown): readonly string[] => (part as Part | undefined)?.required ?? []

function ofFields({ params, querystring, body }: NonNullable<Route['schema']>): ErrorCode[] {
  const query = namesIn(querystring)
  return [
    ...([params, querystring, body].some((part) => namesIn(part).length > 0)
      ? (['INVALID_FIELD'] as const)
      : []),
    ...([querystring, body].some((part) => requiredIn(part).length > 0) ? (['MISSING_FIELD'] as const) : []),
    ...(namesIn(params).includes('market_id') ? (['MARKET_NOT_FOUND'] as const) : []),
    ...(query.includes('limit') ? (['LARGE_PAGE_LIMIT'] as const) : []),
    ...(query.includes('cursor') ? (['INVALID_CURSOR'] as const) : []),
    ...(query.includes('read_after_shard_id') ? OF_BOOKMARK : []),
  ]
}

function ofAccess({ method, config, schema }: Route): ErrorCode[] {
  if (config?.access !== 'user') return []
  return [
    ...OF_CREDENTIAL,
    ...(isRead({ method, config }) ? [] : (['READ_ONLY_KEY'] as const)),
    ...(namesIn(schema?.params).includes('user_id') ? (['NOT_YOURS'] as const) : []),
  ]
}

/** Whether an error of this code can have the header `Retry-After`. */
export const hasRetryAfter = (code: ErrorCode): boolean =>
  CATALOGUE[code].retryable || code === 'ADJUSTMENT_IN_FLIGHT'

/** In the order of the catalogue. */
export function errorsOf(route: Route): ErrorCode[] {
  const { config, schema = {} } = route
  const codes = new Set<ErrorCode>([
    ...EVERY,
    ...(schema.body === undefined ? [] : OF_BODY),
    ...ofFields(schema),
    ...ofAccess(route),
    ...(config?.errors ?? []),
  ])
  return (Object.keys(CATALOGUE) as ErrorCode[]).filter((code) => codes.has(code))
}

/** The codes of the operation by their status, ascending. */
export function errorsByStatus(route: Route): [Status, ErrorCode[]][] {
  const byStatus = Map.groupBy(errorsOf(route), (code) => CATALOGUE[code].status)
  return [...byStatus].sort(([one], [other]) => one - other)
}
