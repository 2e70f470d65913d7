/** The answers of an operation as its description shows them: each status with its error codes, its headers and its body. */
import type { FastifySchema, RouteOptions } from 'fastify'
import type { ErrorCode, Status } from '../errors.ts'
import { CommandErrorSchema, ErrorSchema } from '../wire/schema.ts'
import { isRead } from './operation.ts'
import { errorsByStatus } from './operation-errors.ts'

const MEANINGS: Readonly<Record<Status, string>> = {
  400: 'The request is not valid, or its order or action is refused.',
  401: 'The credential is missing or not valid.',
  403: 'The credential does not permit the operation.',
  404: 'What the request names does not exist.',
  408: 'The request did not arrive in time, or the outcome is not known yet: repeat the same request.',
  409: 'The request conflicts with an earlier one.',
  429: 'A limit is exceeded; see `Retry-After`.',
  500: 'The exchange failed; the error is logged under the id of the request.',
  503: 'Not available now; see `Retry-After`.',
}

/** The error of a status: that of all operations, with the codes of this one. */
const errorWith = (codes: readonly ErrorCode[], error: object) => ({
  allOf: [
    error,
    {
      type: 'object',
      properties: { details: { type: 'object', properties: { code: { type: 'string', enum: codes } } } },
    },
  ],
})

type Route = Pick<RouteOptions, 'method' | 'config' | 'schema'>

/** Replaces the ranges of statuses, by which errors are serialized. */
function describedResponse(route: Route, response: object): Record<string, unknown> {
  const { '4xx': _, '5xx': __, ...answers } = response as Record<string, object>
  const error = isRead(route) ? ErrorSchema : CommandErrorSchema
  const errors = errorsByStatus(route).map(([status, codes]) => [
    status,
    {
      description: MEANINGS[status],
      content: { 'application/json': { schema: errorWith(codes, error) } },
    },
  ])
  return { ...answers, ...Object.fromEntries(errors) }
}

/** The schema of a route as its description shows it. */
export function describedSchema(route: Route): FastifySchema {
  const { schema = {} } = route
  if (schema.response === undefined) return schema
  return { ...schema, response: describedResponse(route, schema.response) }
}
