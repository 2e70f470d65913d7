/** Whatever fails in a request, as an error of the catalogue. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isConnectionError, isTimeout } from '../database-errors.ts'
import { ApiError, type ErrorContext, errorBody } from '../errors.ts'

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

const expectedOf = ({ keyword, params, message }: Problem): unknown =>
  keyword === 'enum' ? params.allowedValues : keyword === 'type' ? params.type : message

/** The first problem, most telling kind first: an unknown field, a missing one, then a value. */
export function validationError(problems: readonly Problem[], part: unknown): ApiError {
  const unknown = problems.find(({ keyword }) => keyword === 'additionalProperties')
  if (unknown) {
    const names = unknown.params.additionalProperties as string[]
    const prefix = unknown.instancePath ? `${fieldOf(unknown.instancePath)}.` : ''
    return new ApiError('UNKNOWN_FIELD', { field: `${prefix}${names[0]}`, unknown_fields: names })
  }
  const missing = problems.find(({ keyword }) => keyword === 'required')
  if (missing) {
    const names = missing.params.requiredProperties as string[]
    const prefix = missing.instancePath ? `${fieldOf(missing.instancePath)}.` : ''
    return new ApiError('MISSING_FIELD', { field: `${prefix}${names[0]}`, missing_fields: names })
  }
  const problem = problems[0]
  if (problem === undefined) return new ApiError('MALFORMED_REQUEST')
  const context: ErrorContext = {
    field: fieldOf(problem.instancePath) || 'body',
    expected: expectedOf(problem),
    received: valueAt(part, problem.instancePath),
  }
  return new ApiError('INVALID_FIELD', context)
}

function frameworkError(error: FastifyError): ApiError | null {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError('BODY_TOO_LARGE')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new ApiError('UNSUPPORTED_CONTENT_TYPE', { field: 'content-type', expected: 'application/json' })
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new ApiError('INVALID_JSON')
    default:
      break
  }
  const status = error.statusCode ?? 500
  return status >= 400 && status < 500 ? new ApiError('MALFORMED_REQUEST', { received: error.message }) : null
}

function toApiError(error: FastifyError, request: FastifyRequest): ApiError {
  if (error instanceof ApiError) return error
  if (error.validation) {
    const part =
      error.validationContext === 'querystring' ? request.query : request[error.validationContext as 'body']
    return validationError(error.validation as unknown as Problem[], part)
  }
  const known = frameworkError(error)
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
