/** Whatever fails in a request, as an error of the catalogue. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isConnectionError, isTimeout } from '../database-errors.ts'
import { ApiError, errorBody } from '../errors.ts'

/** Larger than any request that the contract knows; a batch of 50 orders is about 40 kB. */
export const BODY_LIMIT = 128 * 1024

interface Problem {
  readonly keyword: string
  readonly instancePath: string
  readonly params: Record<string, unknown>
  readonly message?: string
}

const fieldOf = (path: string): string => path.slice(1).replaceAll('/', '.')

function valueAt(value: unknown, path: string): unknown {
  let at = value
  for (const part of path.split('/').slice(1)) at = (at as Record<string, unknown> | null | undefined)?.[part]
  return typeof at === 'bigint' ? at.toString() : at
}

type Fields = Readonly<Record<string, { readonly 'x-expected'?: string; readonly enum?: unknown }>>

/** What would be valid: in the field's own words where it has some. */
function expectedOf({ keyword, instancePath, params, message }: Problem, fields: Fields): unknown {
  const words = fields[instancePath.slice(1)]?.['x-expected']
  if (words !== undefined) return words
  return keyword === 'enum' ? params.allowedValues : keyword === 'type' ? params.type : message
}

const TOLD_NAMES = 10

/** The first problem, most telling kind first: an unknown field, a missing one, then a value. */
function validationError(problems: readonly Problem[], part: unknown, fields: Fields): ApiError {
  const namesOf = (keyword: string, param: string): readonly string[] | undefined =>
    problems.find((problem) => problem.keyword === keyword)?.params[param] as string[] | undefined
  const unknown = namesOf('additionalProperties', 'additionalProperties')
  if (unknown) {
    const names = unknown.slice(0, TOLD_NAMES)
    const field = names[0] as string
    const received = valueAt(part, `/${field}`)
    return new ApiError('UNKNOWN_FIELD', {
      ...{ field, expected: Object.keys(fields), received },
      unknown_fields: names.map((name) => name.slice(0, 100)),
    })
  }
  const missing = namesOf('required', 'requiredProperties')
  if (missing) {
    const field = missing[0] as string
    const expected = fields[field]?.['x-expected'] ?? fields[field]?.enum ?? 'a value'
    return new ApiError('MISSING_FIELD', { field, expected, missing_fields: missing })
  }
  const problem = problems[0]
  if (problem === undefined) return new ApiError('MALFORMED_REQUEST')
  return new ApiError('INVALID_FIELD', {
    field: fieldOf(problem.instancePath) || 'body',
    expected: expectedOf(problem, fields),
    received: valueAt(part, problem.instancePath),
  })
}

function frameworkError(error: FastifyError, { headers }: FastifyRequest): ApiError | null {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE': {
      const received = `${headers['content-length'] ?? 'more'} bytes`
      return new ApiError('BODY_TOO_LARGE', {
        field: 'body',
        expected: `at most ${BODY_LIMIT} bytes`,
        received,
      })
    }
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE': {
      const received = headers['content-type'] ?? null
      const context = { field: 'content-type', expected: 'application/json', received }
      return new ApiError('UNSUPPORTED_CONTENT_TYPE', context)
    }
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new ApiError('INVALID_JSON', { field: 'body', expected: 'a JSON object' })
    default:
      break
  }
  const status = error.statusCode ?? 500
  return status >= 400 && status < 500 ? new ApiError('MALFORMED_REQUEST', { received: error.message }) : null
}

function toApiError(error: FastifyError, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error
  if (error.validation) {
    const context = error.validationContext as 'body' | 'querystring' | 'params'
    const part = context === 'querystring' ? request.query : request[context]
    const schema = request.routeOptions.schema?.[context] as { readonly properties?: Fields } | undefined
    return validationError(error.validation as unknown as Problem[], part, schema?.properties ?? {})
  }
  const known = frameworkError(error, request)
  if (known) return known
  if (isConnectionError(error) || isTimeout(error)) return new ApiError('DATABASE_UNAVAILABLE', {}, '1')
  request.log.error({ err: error }, 'request failed')
  return new ApiError('INTERNAL')
}

export function sendError(reply: FastifyReply, requestId: string, error: ApiError): FastifyReply {
  if (error.retryAfter !== undefined) reply.header('retry-after', error.retryAfter)
  return reply.code(error.status).send(errorBody(error, requestId))
}

/** For requests that fastify cannot route at all. */
export const answerUnreadable = (
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply =>
  sendError(reply, request.id, new ApiError('MALFORMED_REQUEST', { received: error.message }))

export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError, request, reply) =>
    sendError(reply, request.id, toApiError(error, request)),
  )
  app.setNotFoundHandler((request, reply) =>
    sendError(
      reply,
      request.id,
      new ApiError('ROUTE_NOT_FOUND', { received: `${request.method} ${request.url}` }),
    ),
  )
}
