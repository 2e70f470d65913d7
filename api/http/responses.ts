/**
 * The answers of an operation as its description shows them: the error codes of each status, and the headers. Error answers that many
 * operations have in common become named components.
 */
import type { RouteOptions } from 'fastify'
import type { Status } from '../catalogue-entry.ts'
import type { ErrorCode } from '../error-catalogue.ts'
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

/** The error of every operation, restricted to this operation's codes. */
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

const PARTS = [
  { suffix: '', caller: false, bookmark: false },
  { suffix: 'ForCaller', caller: true, bookmark: false },
  { suffix: 'AfterWrite', caller: false, bookmark: true },
  { suffix: 'ForCallerAfterWrite', caller: true, bookmark: true },
] as const

/**
 * Returns a function that names an error answer shared by all operations of this kind. It returns null if the codes
 * include codes declared by the operation or by its fields.
 */
function createNames(route: Route): (status: Status, codes: readonly ErrorCode[]) => string | null {
  const { access, readOnly } = route.config ?? {}
  const kinds = PARTS.map(({ suffix, caller, bookmark }) => {
    const config = { ...(caller && access ? { access } : {}), ...(readOnly ? { readOnly } : {}) }
    const schema = bookmark ? { querystring: BookmarkQuery } : {}
    return { suffix, codes: new Map(errorsByStatus({ method: route.method, config, schema })) }
  })
  const command = isRead(route) ? '' : 'Command'
  return (status, codes) => {
    const kind = kinds.find((each) => String(each.codes.get(status)) === String(codes))
    return kind === undefined ? null : `${command}${MEANINGS[status][0]}${kind.suffix}`
  }
}

interface Described {
  readonly description?: string
}

/** Error answers by status. Adds those with a name to `components`. */
export function errorResponses(route: Route, components: Map<string, object>): Record<string, object> {
  // The description of the answer says what the error is of.
  const { description: _, ...error } = (isRead(route) ? ErrorSchema : CommandErrorSchema) as Described
  const nameOf = createNames(route)
  return Object.fromEntries(
    errorsByStatus(route).map(([status, codes]) => {
      const response = errorResponse(status, codes, error)
      const name = nameOf(status, codes)
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
