/** The fastify instance with request types that follow from the schemas. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify'
import type { TSchema } from 'typebox'
import { ErrorSchema } from '../wire/schema.ts'

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** The answers of a route: its own on success, the error body otherwise. */
export const answers = <Schema extends TSchema>(schema: Schema) => ({
  200: schema,
  '4xx': ErrorSchema,
  '5xx': ErrorSchema,
})
