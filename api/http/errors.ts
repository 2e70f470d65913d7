/** Whatever fails in a request, as an error of the catalogue. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isConnectionError, isTimeout } from '../database-errors.ts'
import { ApiError, errorBody } from '../errors.ts'
import { type Problem, validationError } from './problems.ts'

/** Larger than any request that the contract knows; a batch of 50 orders is about 40 kB. */
export const BODY_LIMIT = 128 * 1024

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
    const schema = request.routeOptions.schema?.[context]
    return validationError(error.validation as unknown as Problem[], part, schema)
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
