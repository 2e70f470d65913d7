/** Converts every failure of a request to an error of the catalogue and sends it. */
import { channel } from 'node:diagnostics_channel'
import type {
  FastifyContextConfig,
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  RouteOptions,
} from 'fastify'
import { isConnectionError, isTimeout } from '../database-errors.ts'
import type { ErrorCode } from '../error-catalogue.ts'
import { ApiError, errorBody } from '../errors.ts'
import { CommandErrorSchema, ErrorSchema } from '../wire/schema.ts'
import { isRead } from './operation.ts'
import { errorsOf, hasRetryAfter } from './operation-errors.ts'
import { type Problem, validationError } from './problems.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether an error may say that the command was not executed: see `PlacementOutcome`. */
    isCommandRead: boolean
  }
}

/** Twice the size of 100 order hashes. Limits count requests, not bytes, so bodies may not be much larger than needed. */
export const BODY_LIMIT = 16 * 1024
/** A batch of 50 orders is about 40 kB. */
export const BATCH_BODY_LIMIT = 96 * 1024

function frameworkError(error: FastifyError, { headers, routeOptions }: FastifyRequest): ApiError | null {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE': {
      const received = `${headers['content-length'] ?? 'more'} bytes`
      return new ApiError('BODY_TOO_LARGE', {
        field: 'body',
        expected: `at most ${routeOptions.bodyLimit} bytes`,
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

/** The error of the catalogue for any failure. A failure without an error of its own is logged. */
export function catalogued(error: unknown, log: { error(details: object, message: string): void }): ApiError {
  if (error instanceof ApiError) return error
  if (isConnectionError(error) || isTimeout(error)) return new ApiError('DATABASE_UNAVAILABLE', {}, '1')
  log.error({ err: error }, 'request failed')
  return new ApiError('INTERNAL')
}

function toApiError(error: FastifyError, request: FastifyRequest): ApiError {
  if (error.validation) {
    const context = error.validationContext as 'body' | 'querystring' | 'params'
    const part = context === 'querystring' ? request.query : request[context]
    const schema = request.routeOptions.schema?.[context]
    return validationError(error.validation as unknown as Problem[], part, schema)
  }
  return frameworkError(error, request) ?? catalogued(error, request.log)
}

/** Adds the schemas that serialize errors to each route that is added after this call. `responses.ts` documents them by status. */
export function describeErrors(app: FastifyInstance): void {
  app.addHook('onRoute', ({ method, config, schema }) => {
    if (schema?.response === undefined) return
    const error = isRead({ method, config }) ? ErrorSchema : CommandErrorSchema
    schema.response = { ...schema.response, '4xx': error, '5xx': error }
  })
}

/** An error that a described operation has answered. Tests compare it with the codes of the operation. */
export interface AnsweredError {
  readonly operation: string
  readonly code: ErrorCode
  /** Codes that the description of the operation lists. */
  readonly codes: readonly ErrorCode[]
  /** Whether it has a header `Retry-After` that its status does not document. */
  readonly isRetryUndocumented: boolean
}

const answered = channel('clearbatch:api:error')

interface AnsweredRoute {
  readonly method: RouteOptions['method']
  readonly url?: string | undefined
  readonly schema?: FastifySchema | undefined
  readonly config: FastifyContextConfig
}

/** An operation has answered an error: tests compare its code with the description. */
export function publishError(
  { method, url, schema, config }: AnsweredRoute,
  { code, retryAfter }: ApiError,
): void {
  if (!answered.hasSubscribers || schema === undefined || schema.hide) return
  const codes = errorsOf({ method, schema, config })
  const isRetryUndocumented = retryAfter !== undefined && !hasRetryAfter(code)
  const error: AnsweredError = { operation: `${method} ${url}`, code, codes, isRetryUndocumented }
  answered.publish(error)
}

function sendError(reply: FastifyReply, request: FastifyRequest, error: ApiError): FastifyReply {
  if (!request.is404) publishError(request.routeOptions, error)
  if (error.retryAfter !== undefined) reply.header('retry-after', error.retryAfter)
  const known = request.isCommandRead === true ? error : error.beforeReading()
  return reply.code(error.status).send(errorBody(known, request.id, isRead(request)))
}

/**
 * Marks requests that have passed credential, limits, body and schema: from here on the command counts as read. Call it after all other hooks
 * of this kind are added.
 */
export function markReadCommands(app: FastifyInstance): void {
  app.decorateRequest('isCommandRead', false)
  app.addHook('preHandler', (request, _reply, done) => {
    request.isCommandRead = true
    done()
  })
}

export const malformed = (error: Error): ApiError =>
  new ApiError('MALFORMED_REQUEST', { received: error.message })

/** Answers requests that fastify cannot route. */
export const answerUnreadable = (
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply => sendError(reply.header('x-request-id', request.id), request, malformed(error))

/** Returns a function that lists the methods of a path, for all routes that are added after this call. */
function methodsOf(app: FastifyInstance): (path: string) => string[] {
  const routes: { readonly pattern: RegExp; readonly methods: readonly string[] }[] = []
  app.addHook('onRoute', ({ url, method }) => {
    if (url.startsWith('/v0/'))
      routes.push({ pattern: new RegExp(`^${url.replace(/:\w+/g, '[^/]+')}/?$`), methods: [method].flat() })
  })
  return (path) => [...new Set(routes.flatMap(({ pattern, methods }) => (pattern.test(path) ? methods : [])))]
}

export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError, request, reply) =>
    sendError(reply, request, toApiError(error, request)),
  )
  const knownMethods = methodsOf(app)
  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = request.url.split('?')
    const methods = knownMethods(path)
    if (methods.length > 0) reply.header('allow', methods.join(', '))
    return sendError(
      reply,
      request,
      new ApiError('ROUTE_NOT_FOUND', {
        received: `${request.method} ${request.url}`,
        ...(methods.length > 0 && {
          expected: `${methods.join(' or ')}: this path has no ${request.method}`,
        }),
      }),
    )
  })
}
