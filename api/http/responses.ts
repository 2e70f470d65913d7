/**
 * The answers of an operation as its description shows them: the error codes of each status, and the headers. Error answers that many
 * operations have in common become named components.
 */
import type { RouteOptions } from 'fastify'
import type { ErrorCode, Status } from '../errors.ts'
import { BookmarkQuery, CommandErrorSchema, ErrorSchema, extensible } from '../wire/schema.ts'
import { isRead } from './operation.ts'
import { errorsByStatus, hasRetryAfter } from './operation-errors.ts'
import type { HeaderName } from './response-headers.ts'

const MEANINGS: Readonly<Record<Status, readonly [name: string, description: string]>> = {
  400: ['BadRequest', 'The request is not valid, or its order or action is refused.'],
  401: ['Unauthorized', 'The credential is missing or not valid.'],
  403: ['Forbidden', 'The credential does not permit the operation.'],
  404: ['NotFound', 'The request names something that does not exist.'],
  408: [
    'Timeout',
    'The request did not arrive in time, or its outcome is not known yet: repeat the same request.',
  ],
  409: ['Conflict', 'The request conflicts with another one.'],
  429: ['TooManyRequests', 'A limit is exceeded; see `Retry-After`.'],
  500: ['InternalError', 'The exchange failed; it logged the failure under `request_id`.'],
  503: ['Unavailable', 'The operation is not available now; see `Retry-After`.'],
}

export type Route = Pick<RouteOptions, 'method' | 'config' | 'schema'>

const headersOf = (names: readonly HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const

/** The error of every operation, with the codes of this one. */
const errorResponse = (status: Status, codes: readonly ErrorCode[], error: object) => ({
  description: MEANINGS[status][1],
  headers: headersOf([
    'X-Request-Id',
    ...LIMIT_HEADERS,
    ...(codes.some(hasRetryAfter) ? (['Retry-After'] as const) : []),
  ]),
  content: {
    'application/json': {
      schema: {
        allOf: [
          error,
          {
            type: 'object',
            properties: {
              details: {
                type: 'object',
                properties: { code: { type: 'string', enum: codes, ...extensible } },
              },
            },
          },
        ],
      },
    },
  },
})

/** The codes of the route without those that it declares and those of its fields. */
function commonCodes(route: Route, parts: { readonly caller: boolean; readonly bookmark: boolean }) {
  const { access, readOnly } = route.config ?? {}
  const config = { ...(parts.caller ? { access } : {}), ...(readOnly ? { readOnly } : {}) }
  const schema = parts.bookmark ? { querystring: BookmarkQuery } : {}
  return new Map(errorsByStatus({ method: route.method, config, schema }))
}

/** The name of an error answer that does not depend on the operation itself; null if it does. */
function commonName(route: Route, status: Status, codes: readonly ErrorCode[]): string | null {
  const same = (caller: boolean, bookmark: boolean) =>
    String(commonCodes(route, { caller, bookmark }).get(status)) === String(codes)
  const [name] = MEANINGS[status]
  const command = isRead(route) ? '' : 'Command'
  if (same(false, false)) return `${command}${name}`
  if (same(true, false)) return `${command}${name}ForCaller`
  if (same(false, true)) return `${command}${name}AfterWrite`
  return same(true, true) ? `${command}${name}ForCallerAfterWrite` : null
}

interface Described {
  readonly description?: string
}

/** Error answers by status. Adds those with a name to `components`. */
export function errorResponses(route: Route, components: Map<string, object>): Record<string, object> {
  // The description of the answer says what the error is of.
  const { description: _, ...error } = (isRead(route) ? ErrorSchema : CommandErrorSchema) as Described
  return Object.fromEntries(
    errorsByStatus(route).map(([status, codes]) => {
      const response = errorResponse(status, codes, error)
      const name = commonName(route, status, codes)
      if (name === null) return [status, response]
      components.set(name, response)
      return [status, { $ref: `#/components/responses/${name}` }]
    }),
  )
}

/** The headers of an answer that is no error. */
export const answerHeaders = ({ config }: Route) =>
  headersOf([
    'X-Request-Id',
    ...LIMIT_HEADERS,
    ...(config?.cached ? (['ETag', 'Cache-Control'] as const) : []),
    ...(config?.sends ?? []),
  ])
